//! What a program needs, in words, from the slowdowns that a sweep has measured.
//!
//! Slowdown is taken to grow with the round trip and to fall with bandwidth: what is good enough
//! while a faster network is not does not count. If afar by itself costs more than the bound, the
//! bound is held against what the network adds to that, and the answer says so.

use super::allowed::{self, Tried};
use super::network::{self, Limits, Verdict};
use super::section::Table;
use super::setting;
use super::sweep::{Estimate, Found};
use super::words::{bits_per_s, list, percent, slower, time_ns};

/// An answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) sentences: Vec<String>,
    /// By how much slower the program may be.
    pub(super) allowed: Option<Table>,
    /// By network.
    pub(super) verdicts: Option<Table>,
}

/// What was tried at one local memory, from the shortest round trip on.
struct Local<'a> {
    name: String,
    // In the head of a table.
    short: String,
    tries: Vec<Try<'a>>,
}

/// One combination of settings that has a slowdown.
struct Try<'a> {
    found: &'a Found,
    rtt_ns: f64,
    rate: f64,
    /// What is held against the bound.
    slowdown: Estimate,
}

impl Local<'_> {
    /// Whether a try and all on faster networks are good enough.
    fn holds(&self, one: &Try<'_>, bound: f64) -> bool {
        let is_faster = |other: &&Try<'_>| other.rtt_ns <= one.rtt_ns && other.rate >= one.rate;
        self.tries.iter().filter(is_faster).all(|other| is_good(&other, bound))
    }
}

impl Try<'_> {
    fn verdict(&self, bound: f64) -> Verdict {
        let Estimate { median, low, high, .. } = self.slowdown;
        let is_good = median <= bound;
        Verdict { is_good, is_sure: if is_good { high <= bound } else { low > bound } }
    }

    fn network(&self) -> String {
        let words = ["rtt", "bandwidth"].into_iter().filter_map(|axis| {
            let value = self.found.value(axis);
            (!value.is_empty()).then(|| setting::words(axis, value))
        });
        list(&words.collect::<Vec<_>>())
    }

    // What is asked of a network that is to be no worse.
    fn at_most(&self) -> String {
        let (rtt, bandwidth) = (self.found.value("rtt"), self.found.value("bandwidth"));
        let rtt = setting::rtt_ns(rtt).map(|ns| format!("a round trip of at most {}", time_ns(ns)));
        let rate = setting::rate(bandwidth).map(|rate| format!("at least {}", bits_per_s(rate)));
        match list(&rtt.into_iter().chain(rate).collect::<Vec<_>>()).as_str() {
            "" => String::new(),
            asked => format!(", on a network with {asked}"),
        }
    }

    fn measured(&self) -> String {
        let Estimate { median, low, high, .. } = self.slowdown;
        format!("{} ({median:.3}, between {low:.3} and {high:.3})", slower(median))
    }
}

/// Says it. `bound` is the slowdown that is good enough.
pub(super) fn told(program: &str, far: &[&Found], zeros: &[&Found], bound: f64) -> Told {
    let zero = zeros.iter().filter_map(|cell| cell.slowdown).next();
    // What afar costs by itself is not the network's.
    let beside = zero.filter(|zero| zero.median > bound);
    let mut sentences = Vec::new();
    let (mut conditions, mut tried) = (Vec::new(), Vec::new());
    let groups = groups(far);
    let many = groups.len() > 1;
    for (variant, cells) in groups {
        let locals = locals(&cells, beside);
        let given =
            if many && !variant.is_empty() { format!(" With {variant}: ") } else { String::new() };
        sentences.push(format!("{}{}", given.trim_start(), headline(program, &locals, bound)));
        for local in &locals {
            let judged = best_by_rtt(local).map(|one| (one.rtt_ns, one.verdict(bound)));
            let limits = Limits::of(judged);
            let name =
                if many { format!("{}, {variant}", local.short) } else { local.short.clone() };
            let points = best_by_rtt(local).map(|one| (one.rtt_ns, one.slowdown.median)).collect();
            tried.push(Tried { name: name.clone(), points });
            conditions.push((name, limits));
            sentences.extend(edge(local, bound));
        }
    }
    sentences.extend(zero.map(|zero| overhead(zero, beside.is_some(), bound)));
    let has_rtt = far.iter().any(|cell| setting::rtt_ns(cell.value("rtt")).is_some());
    let verdicts = (has_rtt && !conditions.is_empty()).then(|| network::table(&conditions));
    Told { sentences, allowed: allowed::table(&tried, bound), verdicts }
}

// By engine, policy and so on.
fn groups<'a>(far: &[&'a Found]) -> Vec<(String, Vec<&'a Found>)> {
    let mut groups: Vec<(String, Vec<&Found>)> = Vec::new();
    for cell in far {
        let variant = cell.rest(&["local", "rtt", "bandwidth"]);
        match groups.iter_mut().find(|group| group.0 == variant) {
            Some(group) => group.1.push(cell),
            None => groups.push((variant, vec![cell])),
        }
    }
    groups
}

// From the least local memory on; where shares and sizes are mixed, in the order of the record.
fn locals<'a>(cells: &[&'a Found], beside: Option<Estimate>) -> Vec<Local<'a>> {
    let values = setting::axis_of("local", cells.iter().map(|cell| cell.value("local"))).values;
    let mut names: Vec<String> = values.into_iter().map(|(name, _)| name).collect();
    if cells.iter().any(|cell| cell.value("local").is_empty()) {
        names.push(String::new());
    }
    let local = |value: String| {
        let ours = cells.iter().filter(|cell| cell.value("local") == value);
        let mut tries: Vec<Try<'a>> = ours
            .filter_map(|cell| {
                let rtt_ns = setting::rtt_ns(cell.value("rtt")).unwrap_or(0.0);
                let rate = setting::rate(cell.value("bandwidth")).unwrap_or(f64::INFINITY);
                let slowdown = against(cell.slowdown?, beside);
                Some(Try { found: cell, rtt_ns, rate, slowdown })
            })
            .collect();
        // The fastest network first.
        tries.sort_by(|one, other| {
            one.rtt_ns.total_cmp(&other.rtt_ns).then(other.rate.total_cmp(&one.rate))
        });
        let (name, short) = match value.as_str() {
            "" => ("as much local memory as was set".to_owned(), "as was set".to_owned()),
            value => {
                (setting::words("local", value), format!("{} local", setting::local_words(value)))
            }
        };
        Local { name, short, tries }
    };
    names.into_iter().map(local).filter(|local| !local.tries.is_empty()).collect()
}

// The ratio of two medians, and no less than where it may lie.
fn against(slowdown: Estimate, beside: Option<Estimate>) -> Estimate {
    beside.map_or(slowdown, |zero| Estimate {
        median: slowdown.median / zero.median,
        low: slowdown.low / zero.high,
        high: slowdown.high / zero.low,
        count: slowdown.count,
    })
}

// With the most bandwidth of each round trip.
fn best_by_rtt<'a, 'b>(local: &'b Local<'a>) -> impl Iterator<Item = &'b Try<'a>> {
    let mut last_ns = f64::NEG_INFINITY;
    local.tries.iter().filter(move |one| std::mem::replace(&mut last_ns, one.rtt_ns) < one.rtt_ns)
}

fn is_good(one: &&Try<'_>, bound: f64) -> bool {
    one.verdict(bound).is_good
}

fn headline(program: &str, locals: &[Local<'_>], bound: f64) -> String {
    let within = |is_sure| {
        let probably = if is_sure { "" } else { "probably " };
        format!("{probably}stays within {} of its speed", percent(bound - 1.0))
    };
    let is_sure = |one: &Try<'_>| one.verdict(bound).is_sure;
    let all = || locals.iter().flat_map(|local| &local.tries);
    if all().next().is_none() {
        return format!("No run of {program} has a slowdown, so nothing can be said.");
    }
    if all().all(|one| is_good(&one, bound)) {
        let worst =
            all().max_by(|one, other| one.slowdown.median.total_cmp(&other.slowdown.median));
        let worst = worst.map_or_else(String::new, |one| {
            let settings = one.found.rest(&[]);
            format!(" The slowest, {settings}, is {}.", one.measured())
        });
        return format!(
            "{program} {} with every network and local memory that was tried: what it needs is \
             less than that.{worst}",
            within(all().all(is_sure))
        );
    }
    let Some(least) =
        locals.iter().find(|local| local.tries.iter().any(|one| local.holds(one, bound)))
    else {
        if all().any(|one| is_good(&one, bound)) {
            return format!(
                "The slowdowns of {program} contradict one another: it is slower on faster \
                 networks. More repetitions, or a quieter machine, would tell what it needs."
            );
        }
        let best = all().min_by(|one, other| one.slowdown.median.total_cmp(&other.slowdown.median));
        let best = best.map_or_else(String::new, |one| {
            let settings = one.found.rest(&[]);
            format!(" The best, {settings}, is {}.", one.measured())
        });
        let no = if all().all(is_sure) { "No" } else { "Probably no" };
        return format!(
            "{no} network and no local memory that was tried keeps {program} within {} of its \
             speed.{best} It needs more local memory, or a faster network, than these.",
            percent(bound - 1.0)
        );
    };
    let good = least.tries.iter().rfind(|one| least.holds(one, bound));
    let network = good.map_or_else(String::new, |one| one.at_most());
    let is_first = std::ptr::eq(least, &raw const locals[0]);
    let less = if is_first { "was not tried" } else { "no network tried makes up for" };
    let within = within(good.is_some_and(is_sure));
    format!("{program} {within} with {}{network}; less local memory {less}.", least.name)
}

// Where one local memory's networks stop being good enough.
fn edge(local: &Local<'_>, bound: f64) -> Option<String> {
    let (good, bad): (Vec<_>, Vec<_>) = local.tries.iter().partition(|one| local.holds(one, bound));
    let last = good.last();
    let next = bad
        .iter()
        .find(|bad| last.is_none_or(|good| bad.rtt_ns >= good.rtt_ns))
        .or_else(|| bad.first());
    Some(match (last, next) {
        (Some(good), Some(bad)) => format!(
            "With {}: {} is good enough, {}; {} is not, {}.",
            local.name,
            good.network(),
            good.measured(),
            bad.network(),
            bad.measured()
        ),
        (Some(good), None) => format!(
            "With {}: every network tried is good enough, up to {}, {}.",
            local.name,
            good.network(),
            good.measured()
        ),
        (None, Some(_)) => {
            let best = local.tries.first()?;
            format!(
                "With {}: no network tried is good enough; the fastest, {}, is {}.",
                local.name,
                best.network(),
                best.measured()
            )
        }
        (None, None) => return None,
    })
}

fn overhead(zero: Estimate, is_beside: bool, bound: f64) -> String {
    let Estimate { median, low, high, .. } = zero;
    let cost = format!(
        "afar by itself, with all memory local and no delay, made the program {} ({median:.3}, \
         between {low:.3} and {high:.3})",
        slower(median)
    );
    match is_beside {
        true => format!(
            "{cost}. That is more than {}, and not the network's: the answers above and the tables \
             compare with it, and the pictures with the program as it is.",
            percent(bound - 1.0)
        ),
        false => format!("{cost}; that is part of every slowdown here."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(local: &str, rtt: &str, slowdown: f64) -> Found {
        let settings = json!({"local": local, "rtt": rtt, "bandwidth": "40Gbps"});
        let interval = json!({"median": slowdown, "low": slowdown - 0.01,
            "high": slowdown + 0.01, "count": 5});
        serde_json::from_value(json!({"kind": "far", "settings": settings, "slowdown": interval,
            "failed_count": 0, "first_failure": null, "fetch_count": 1,
            "budget_exceeded_count": 0}))
        .expect("as a sweep writes it")
    }

    fn say(cells: &[Found], zero: f64) -> Told {
        let far: Vec<&Found> = cells.iter().collect();
        told("redis", &far, &[&found("", "", zero)], 1.05)
    }

    #[test]
    fn the_least_local_memory_with_a_network_that_will_do() {
        let cells = [
            found("75%", "3us", 1.00),
            found("25%", "3us", 1.20),
            found("50%", "3us", 1.03),
            found("50%", "10us", 1.12),
            found("75%", "10us", 1.02),
        ];
        let told = say(&cells, 1.01);
        assert_eq!(
            told.sentences[0],
            "redis stays within 5 % of its speed with 50 % of its memory local, on a network with \
             a round trip of at most 3 µs and at least 40 Gb/s; less local memory no network tried \
             makes up for."
        );
        assert!(
            told.sentences[1]
                .starts_with("With 25 % of its memory local: no network tried is good enough")
        );
        assert!(
            told.sentences[2].contains("round trip 10 µs and 40 Gb/s is not, 12 % slower (1.120")
        );
        let allowed = told.allowed.expect("there are two round trips");
        assert_eq!(allowed.rows[0], ["5 %", "not known", "4.56 µs", "10 µs or longer"]);
        assert!(
            told.sentences[3].contains("every network tried is good enough, up to round trip 10")
        );
        assert!(told.sentences[4].contains("part of every slowdown here"));
        let table = told.verdicts.expect("round trips were tried");
        assert_eq!(table.columns[2..], ["25 % local", "50 % local", "75 % local"]);
        assert_eq!(table.rows[0][2..], ["not known", "fast enough", "fast enough"]);
    }

    #[test]
    fn everything_or_nothing_is_good_enough() {
        let told = say(&[found("25%", "3us", 1.0), found("25%", "9us", 1.01)], 1.0);
        let first = &told.sentences[0];
        assert!(first.starts_with("redis stays within 5 % of its speed with every"), "{first}");
        // 1.045, and as far as is known up to 1.055.
        let told = say(&[found("25%", "3us", 1.045), found("25%", "9us", 1.2)], 1.0);
        let first = &told.sentences[0];
        assert!(first.starts_with("redis probably stays within 5 % of its speed with"), "{first}");
        let told = say(&[found("25%", "3us", 1.5), found("25%", "9us", 3.0)], 1.0);
        assert!(told.sentences[0].starts_with("No network and no local memory that was tried"));
        let told = say(&[], 1.0);
        assert_eq!(told.sentences.len(), 1, "{:?}", told.sentences);
    }

    #[test]
    fn what_is_faster_on_a_slower_network_is_not_believed() {
        let told = say(&[found("25%", "3us", 1.2), found("25%", "9us", 1.0)], 1.0);
        assert!(told.sentences[0].contains("contradict one another"), "{:?}", told.sentences);
        let cells = [found("25%", "3us", 1.0), found("25%", "9us", 1.2), found("25%", "20us", 1.0)];
        let told = say(&cells, 1.0);
        assert!(told.sentences[0].contains("a round trip of at most 3 µs"), "{:?}", told.sentences);
    }

    #[test]
    fn what_afar_costs_is_not_the_networks() {
        let told = say(&[found("25%", "3us", 1.22), found("25%", "9us", 1.5)], 1.2);
        assert!(told.sentences[0].starts_with("redis stays within 5 %"), "{:?}", told.sentences);
        assert!(told.sentences[1].contains("1.67 % slower (1.017"), "{:?}", told.sentences);
        assert!(told.sentences[2].contains("compare with it"), "{:?}", told.sentences);
    }
}
