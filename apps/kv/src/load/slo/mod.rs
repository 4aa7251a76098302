//! Searches the highest rate of an open loop whose latency stays within a bound.

mod bound;
mod search;

use ::load::{LoadConfig, LoadError, Pacing, Tally, Values};
use console::layout::count;
use console::terminal;
use measure::{Duration, Histogram, LoadSearch, LoadTry};
use workload::Operation;

pub(crate) use bound::{Bound, Limits, Slo};
use search::{Next, Refusal, Search};

use crate::load::watch::{Loaded, Watched};

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Searched {
    /// The tally of one try at the rate that was found, or of the last try.
    pub(crate) tally: Tally,
    /// The rate of that try.
    pub(crate) rate_per_s: f64,
    pub(crate) search: LoadSearch,
    pub(crate) interrupted: bool,
}

/// A server keeps up if at most this share of arrivals has no answer.
const LAG_MAX: f64 = 0.02;
/// Standard deviations by which random arrivals may be fewer than expected.
const DEVIATIONS: f64 = 3.0;

/// Searches, and prints the result of each try.
///
/// # Errors
/// When the server cannot be reached.
pub(crate) fn run(
    of: &LoadConfig,
    slo: &Slo,
    watched: &mut Watched,
) -> Result<Searched, LoadError> {
    let Limits { least, most } = slo.limits;
    let values = Values::of(of);
    let mut search = Search::new(least, most);
    let mut tries: Vec<(LoadTry, Tally)> = Vec::new();
    let each_ns = of.warmup.as_ns() + of.duration.map_or(0, Duration::as_ns);
    let mut interrupted = false;
    let end = loop {
        let Next::Try(rate) = search.next() else { break Some(search.next()) };
        let config = of_try(of, slo, rate, tries.len());
        let left = Duration::from_ns(each_ns * search.left() as u64);
        let shown = format!("{}  {}/s, about {left} left", slo.bound, count(whole(rate)));
        let Loaded { tally, is_interrupted } = watched.load(&config, values.as_ref(), &shown)?;
        let tried = judge(slo.bound, rate, &config, &tally);
        interrupted = is_interrupted;
        let is_wrong = !interrupted && has_failed(&tally);
        let holds = tried.holds;
        if !interrupted {
            terminal::note(&told(slo.bound, &tried));
        }
        tries.push((tried, tally));
        if interrupted || is_wrong {
            break None;
        }
        search.tell(rate, holds);
    };
    Ok(concluded(slo, tries, end, interrupted))
}

// The load of a try, with its own seed: with the same one, two tries would not be independent.
fn of_try(of: &LoadConfig, slo: &Slo, rate: f64, number: usize) -> LoadConfig {
    LoadConfig {
        pacing: Pacing::Open { per_second: rate, spacing: slo.spacing },
        seed: of.seed.wrapping_add(number as u64),
        ..of.clone()
    }
}

// The result of a try. The rate holds if every request was answered, the server kept up, and the
// latency is within the bound.
fn judge(bound: Bound, rate: f64, config: &LoadConfig, tally: &Tally) -> LoadTry {
    let latency = bound.of(&all(tally));
    let answered_per_s = tally.throughput();
    let seconds = config.duration.map_or(0.0, |time| time.as_ns_f64() / 1e9);
    let lag = LAG_MAX.max(DEVIATIONS / (rate * seconds).max(1.0).sqrt());
    let is_whole = tally.count() > 0 && tally.lost_count == 0 && tally.failed_connections == 0;
    let keeps_up = answered_per_s >= rate * (1.0 - lag);
    LoadTry {
        rate_per_s: rate,
        holds: is_whole && keeps_up && latency <= bound.time,
        latency_ns: latency.as_ns(),
        probe_latency_ns: tally.probe.as_deref().map(|probe| bound.of(&all(probe)).as_ns()),
        answered_per_s,
        request_count: tally.count(),
    }
}

// The latency of all operations together.
fn all(tally: &Tally) -> Histogram {
    let mut all = Histogram::new();
    Operation::ALL.into_iter().for_each(|operation| all.merge(&tally.of(operation).latency));
    all
}

// Whether requests were refused or answered wrongly, which a lower rate would not mend.
fn has_failed(tally: &Tally) -> bool {
    let is_bad = |operation| {
        let of = tally.of(operation);
        of.refused_count + of.wrong_count > 0
    };
    Operation::ALL.into_iter().any(is_bad)
}

// The line about a try.
fn told(bound: Bound, tried: &LoadTry) -> String {
    let verdict = if tried.holds { "holds" } else { "fails" };
    let probe = tried.probe_latency_ns.map(|ns| format!(", probe {}", Duration::from_ns(ns)));
    format!(
        "afar: {}/s {verdict}: {} {}{}, {}/s answered\n",
        count(whole(tried.rate_per_s)),
        bound.quantity,
        Duration::from_ns(tried.latency_ns),
        probe.unwrap_or_default(),
        count(whole(tried.answered_per_s)),
    )
}

// The result of all tries; `end` is `None` if the search was cut short.
fn concluded(
    slo: &Slo,
    tries: Vec<(LoadTry, Tally)>,
    end: Option<Next>,
    interrupted: bool,
) -> Searched {
    let Limits { least, most } = slo.limits;
    let found = match end {
        Some(Next::Found(found)) => Some(found),
        _ => None,
    };
    let invalid = match end {
        Some(Next::Refused(refusal)) => Some(refused(slo, refusal)),
        None if interrupted => Some("it was interrupted before a rate was found".to_owned()),
        None => Some("requests were refused or answered wrong".to_owned()),
        _ => None,
    };
    let shown = found.and_then(|found| middle(&tries, found.rate));
    let shown = shown.unwrap_or_else(|| tries.len().saturating_sub(1));
    let rate_per_s = tries[shown].0.rate_per_s;
    let (all, mut tallies): (Vec<LoadTry>, Vec<Tally>) = tries.into_iter().unzip();
    let search = LoadSearch {
        quantity: slo.bound.quantity.to_string(),
        bound_ns: slo.bound.time.as_ns(),
        limits_per_s: [least, most],
        found_per_s: found.map(|found| found.rate),
        interval_per_s: found.map(|found| found.interval),
        tries: all,
        invalid,
    };
    Searched { tally: tallies.swap_remove(shown), rate_per_s, search, interrupted }
}

// The index of the try with the median latency among those at `rate` that held.
fn middle(tries: &[(LoadTry, Tally)], rate: f64) -> Option<usize> {
    let is_it = |tried: &LoadTry| tried.holds && tried.rate_per_s == rate;
    let mut at: Vec<usize> = (0..tries.len()).filter(|&at| is_it(&tries[at].0)).collect();
    at.sort_by_key(|&at| tries[at].0.latency_ns);
    at.get(at.len() / 2).copied()
}

// Why a search found no rate.
fn refused(slo: &Slo, refusal: Refusal) -> String {
    let (bound, limits) = (slo.bound, slo.limits);
    match refusal {
        Refusal::Least => format!(
            "even {}/s, the least of --slo-rates, does not hold {bound}; give a lower rate or a \
             longer time",
            count(whole(limits.least))
        ),
        Refusal::Most => format!(
            "even {}/s, the most of --slo-rates, holds {bound}; give a higher rate",
            count(whole(limits.most))
        ),
        Refusal::Unsettled => format!(
            "tries of the same rates came out too differently for {bound}; give a longer \
             --duration, or end what else runs"
        ),
    }
}

// A rate, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}
