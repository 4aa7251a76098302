//! The highest rate whose latency stays within a bound: loads in an open loop, one after another.

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

/// What was found, and how.
#[derive(Debug)]
pub(crate) struct Searched {
    /// Of one try at the rate that was found, or the last one.
    pub(crate) tally: Tally,
    /// The rate of that try.
    pub(crate) rate_per_s: f64,
    pub(crate) search: LoadSearch,
    pub(crate) interrupted: bool,
}

/// Fewer answers than arrivals, as a share: the server does not keep up.
const LAG_MAX: f64 = 0.02;
/// Arrivals by chance are fewer than expected by so many deviations at most.
const DEVIATIONS: f64 = 3.0;

/// Searches, and says what became of each try.
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

// Draws of its own for every try: the same ones would be one try.
fn of_try(of: &LoadConfig, slo: &Slo, rate: f64, number: usize) -> LoadConfig {
    LoadConfig {
        pacing: Pacing::Open { per_second: rate, spacing: slo.spacing },
        seed: of.seed.wrapping_add(number as u64),
        ..of.clone()
    }
}

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

fn all(tally: &Tally) -> Histogram {
    let mut all = Histogram::new();
    Operation::ALL.into_iter().for_each(|operation| all.merge(&tally.of(operation).latency));
    all
}

// What no lower rate would mend.
fn has_failed(tally: &Tally) -> bool {
    let is_bad = |operation| {
        let of = tally.of(operation);
        of.refused_count + of.wrong_count > 0
    };
    Operation::ALL.into_iter().any(is_bad)
}

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

// Of the tries at a rate that held, the one whose latency is in the middle.
fn middle(tries: &[(LoadTry, Tally)], rate: f64) -> Option<usize> {
    let is_it = |tried: &LoadTry| tried.holds && tried.rate_per_s == rate;
    let mut at: Vec<usize> = (0..tries.len()).filter(|&at| is_it(&tries[at].0)).collect();
    at.sort_by_key(|&at| tries[at].0.latency_ns);
    at.get(at.len() / 2).copied()
}

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

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}
