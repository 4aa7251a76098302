//! What a program needs, in words, from the slowdowns that a sweep has measured.
//!
//! Slowdown is taken to grow with the round trip and to fall with bandwidth: a network counts as
//! good enough only if all faster ones are, too, and only with its whole interval.

use results::{Estimate, Finding, Verdict};

use super::allowed::{self, Tried};
use super::network::{self, Limits};
use super::section::Table;
use super::setting::{self, rest};
use super::words::{bits_per_s, list, percent, slower, time_ns};

/// The answer of a sweep.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) sentences: Vec<String>,
    /// The longest round trips, by how much slower the program may be.
    pub(super) allowed: Option<Table>,
    /// Which networks are fast enough.
    pub(super) verdicts: Option<Table>,
}

/// What was tried at one local memory, from the shortest round trip on.
struct Local<'a> {
    name: String,
    // The name in the head of a table.
    short: String,
    tries: Vec<Try<'a>>,
}

/// One combination of settings that has a slowdown.
struct Try<'a> {
    found: &'a Finding,
    rtt_ns: f64,
    rate: f64,
    slowdown: Estimate,
    /// The verdict on the slowdown, against the bound.
    verdict: Verdict,
}

impl Local<'_> {
    /// Whether a try is good enough, and so are all tries on faster networks.
    fn holds(&self, one: &Try<'_>) -> bool {
        let is_faster = |other: &&Try<'_>| other.rtt_ns <= one.rtt_ns && other.rate >= one.rate;
        self.tries.iter().filter(is_faster).all(|other| other.verdict == Verdict::Within)
    }
}

impl Try<'_> {
    /// The network of the try, in words.
    fn network(&self) -> String {
        let words = ["rtt", "bandwidth"].into_iter().filter_map(|axis| {
            let value = self.found.value(axis);
            (!value.is_empty()).then(|| setting::words(axis, value))
        });
        list(&words.collect::<Vec<_>>())
    }

    // The round trip and bandwidth of a network that is no worse, in words.
    fn at_most(&self) -> String {
        let (rtt, bandwidth) = (self.found.value("rtt"), self.found.value("bandwidth"));
        let rtt = setting::rtt_ns(rtt).map(|ns| format!("a round trip of at most {}", time_ns(ns)));
        let rate = setting::rate(bandwidth).map(|rate| format!("at least {}", bits_per_s(rate)));
        match list(&rtt.into_iter().chain(rate).collect::<Vec<_>>()).as_str() {
            "" => String::new(),
            asked => format!(", on a network with {asked}"),
        }
    }

    /// The slowdown of the try, in words.
    fn measured(&self) -> String {
        format!("{} ({})", slower(self.slowdown.median), self.slowdown.text(3))
    }
}

/// The answer from cells with far memory, and from `zeros`, with all memory local. `bound` is the
/// slowdown that is good enough.
pub(super) fn told(program: &str, far: &[&Finding], zeros: &[&Finding], bound: f64) -> Told {
    let zero = zeros.iter().filter_map(|cell| cell.slowdown).next();
    let mut sentences = Vec::new();
    let (mut conditions, mut tried) = (Vec::new(), Vec::new());
    let groups = groups(far);
    let many = groups.len() > 1;
    for (variant, cells) in groups {
        let locals = locals(&cells, bound);
        let given =
            if many && !variant.is_empty() { format!(" With {variant}: ") } else { String::new() };
        sentences.push(format!("{}{}", given.trim_start(), headline(program, &locals, bound)));
        for local in &locals {
            let judged = best_by_rtt(local).map(|one| (one.rtt_ns, one.verdict));
            let limits = Limits::of(judged);
            let name =
                if many { format!("{}, {variant}", local.short) } else { local.short.clone() };
            let is_sound = |one: &&Try<'_>| {
                !matches!(one.verdict, Verdict::Implausible | Verdict::Disturbed)
                    && one.slowdown.interval.is_some()
            };
            let sound = best_by_rtt(local).filter(is_sound);
            let points = sound.map(|one| (one.rtt_ns, one.slowdown.median)).collect();
            tried.push(Tried { name: name.clone(), points });
            conditions.push((name, limits));
            sentences.extend(edge(local));
        }
    }
    sentences.extend(zero.map(|zero| overhead(zero, bound)));
    let has_rtt = far.iter().any(|cell| setting::rtt_ns(cell.value("rtt")).is_some());
    let verdicts = (has_rtt && !conditions.is_empty()).then(|| network::table(&conditions));
    Told { sentences, allowed: allowed::table(&tried, bound), verdicts }
}

// The cells by their other settings: engine, policy and so on.
fn groups<'a>(far: &[&'a Finding]) -> Vec<(String, Vec<&'a Finding>)> {
    let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
    for cell in far {
        let variant = rest(cell, &["local", "rtt", "bandwidth"]);
        match groups.iter_mut().find(|group| group.0 == variant) {
            Some(group) => group.1.push(cell),
            None => groups.push((variant, vec![cell])),
        }
    }
    groups
}

// The tries at each local memory, from the least on; where shares and sizes are mixed, in the order
// of the record.
fn locals<'a>(cells: &[&'a Finding], bound: f64) -> Vec<Local<'a>> {
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
                let (slowdown, verdict) = (cell.slowdown?, cell.verdict_beside(bound));
                Some(Try { found: cell, rtt_ns, rate, slowdown, verdict })
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

// The try with the most bandwidth of each round trip.
fn best_by_rtt<'a, 'b>(local: &'b Local<'a>) -> impl Iterator<Item = &'b Try<'a>> {
    let mut last_ns = f64::NEG_INFINITY;
    local.tries.iter().filter(move |one| std::mem::replace(&mut last_ns, one.rtt_ns) < one.rtt_ns)
}

/// The first sentence: what the program needs.
fn headline(program: &str, locals: &[Local<'_>], bound: f64) -> String {
    let within = format!("within {} of its speed", percent(bound - 1.0));
    let all = || locals.iter().flat_map(|local| &local.tries);
    let are_all = |verdict| all().all(|one| one.verdict == verdict);
    if all().next().is_none() {
        return format!("No run of {program} has a slowdown, so nothing can be said.");
    }
    if are_all(Verdict::Within) {
        let worst =
            all().max_by(|one, other| one.slowdown.median.total_cmp(&other.slowdown.median));
        let worst = worst.map_or_else(String::new, |one| {
            format!(" The slowest, {}, is {}.", rest(one.found, &[]), one.measured())
        });
        return format!(
            "{program} stays {within} with every network and local memory that was tried: what it \
             needs is less than that.{worst}"
        );
    }
    if are_all(Verdict::Beyond) {
        let best = all().min_by(|one, other| one.slowdown.median.total_cmp(&other.slowdown.median));
        let best = best.map_or_else(String::new, |one| {
            format!(" The best, {}, is {}.", rest(one.found, &[]), one.measured())
        });
        return format!(
            "No network and no local memory that was tried keeps {program} {within}.{best} It \
             needs more local memory, or a faster network, than these."
        );
    }
    let holding = locals.iter().position(|local| local.tries.iter().any(|one| local.holds(one)));
    match holding {
        Some(at) => least(program, &within, locals, at),
        None => undecided(program, &within, locals),
    }
}

// The sentence on the least local memory with a network that is good enough, and on less memory.
fn least(program: &str, within: &str, locals: &[Local<'_>], at: usize) -> String {
    let least = &locals[at];
    let good = least.tries.iter().rfind(|one| least.holds(one));
    let network = good.map_or_else(String::new, |one| one.at_most());
    let mut below = locals[..at].iter().flat_map(|local| &local.tries).peekable();
    let less = if below.peek().is_none() {
        "less local memory was not tried"
    } else if below.all(|one| one.verdict == Verdict::Beyond) {
        "less local memory no network tried makes up for"
    } else {
        "whether less local memory is enough is not known"
    };
    format!("{program} stays {within} with {}{network}; {less}.", least.name)
}

/// The sentence where nothing is known to be good enough, with the reason.
fn undecided(program: &str, within: &str, locals: &[Local<'_>]) -> String {
    let all = || locals.iter().flat_map(|local| &local.tries);
    let is_any = |verdict| all().any(|one| one.verdict == verdict);
    if is_any(Verdict::Within) {
        return format!(
            "The slowdowns of {program} contradict one another, or leave in doubt whether a faster \
             network is enough. More repetitions, or a quieter machine, would tell what it needs."
        );
    }
    let why = if is_any(Verdict::Disturbed) {
        "the machine had other work while it ran"
    } else if is_any(Verdict::Implausible) {
        "runs with far memory were faster than the program by itself, so something else made the \
         difference"
    } else if all().any(|one| one.slowdown.interval.is_none()) {
        "there are too few runs"
    } else {
        "the runs differ too much from one another"
    };
    format!(
        "It is undecided whether a network and local memory that was tried keeps {program} \
         {within}: {why}. More repetitions, or a quieter machine, would tell."
    )
}

// The sentence on where the networks at one local memory stop being good enough.
fn edge(local: &Local<'_>) -> Option<String> {
    let (good, bad): (Vec<_>, Vec<_>) = local.tries.iter().partition(|one| local.holds(one));
    let last = good.last();
    let next = bad
        .iter()
        .find(|bad| last.is_none_or(|good| bad.rtt_ns >= good.rtt_ns))
        .or_else(|| bad.first());
    Some(match (last, next) {
        (Some(good), Some(bad)) => format!(
            "With {}: {} is good enough, {}; {} {}, {}.",
            local.name,
            good.network(),
            good.measured(),
            bad.network(),
            judged(bad.verdict),
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
            let none = match best.verdict {
                Verdict::Beyond => "no network tried is good enough",
                _ => "no network tried is surely good enough",
            };
            format!(
                "With {}: {none}; the fastest, {}, {}, {}.",
                local.name,
                best.network(),
                judged(best.verdict),
                best.measured()
            )
        }
        (None, None) => return None,
    })
}

/// A verdict in words, as they follow the name of a network.
const fn judged(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Within => "is good enough, but not a faster one",
        Verdict::Beyond => "is not",
        Verdict::Undecided => "is undecided",
        Verdict::Implausible => "is implausible",
        Verdict::Disturbed => "was disturbed",
        Verdict::Invalid => "is invalid",
    }
}

/// The sentence on the slowdown by afar itself.
fn overhead(zero: Estimate, bound: f64) -> String {
    let cost = format!(
        "afar by itself, with all memory local and no delay, made the program {} ({})",
        slower(zero.median),
        zero.text(3)
    );
    if zero.median > bound {
        return format!(
            "{cost}. That alone is more than {}: the column beside zero has what the network and \
             the fetches add to it.",
            percent(bound - 1.0)
        );
    }
    format!("{cost}; that is part of every slowdown here.")
}

#[cfg(test)]
mod tests {
    use results::{CellKind, Interval};

    use super::*;

    fn found(local: &str, rtt: &str, slowdown: f64) -> Finding {
        let settings = [("local", local), ("rtt", rtt), ("bandwidth", "40Gbps")];
        let owned = settings.map(|(axis, value)| (axis.to_owned(), value.to_owned()));
        // What is as fast as without afar is no less.
        let low = if slowdown == 1.0 { 1.0 } else { slowdown - 0.01 };
        let interval = Some(Interval { low, high: slowdown + 0.01, level: 0.9375 });
        let slowdown = Some(Estimate { median: slowdown, interval, count: 5 });
        Finding { slowdown, ..Finding::new(CellKind::Far, owned.into()) }
    }

    fn say(cells: &[Finding], zero: f64) -> Told {
        let far: Vec<&Finding> = cells.iter().collect();
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
        assert!(first.starts_with("It is undecided whether a network"), "{first}");
        assert!(first.contains("the runs differ too much"), "{first}");
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
    fn every_slowdown_is_against_the_program_by_itself() {
        let told = say(&[found("25%", "3us", 1.22), found("25%", "9us", 1.5)], 1.2);
        assert!(told.sentences[0].starts_with("No network and no local"), "{:?}", told.sentences);
        assert!(told.sentences[1].contains("22 % slower (1.220"), "{:?}", told.sentences);
        assert!(told.sentences[2].contains("the column beside zero"), "{:?}", told.sentences);
    }

    // A machine that was disturbed, too few runs, or a gain that cannot be: no all-clear.
    #[test]
    fn what_cannot_be_vouched_for_is_never_good_enough() {
        let sound = found("25%", "3us", 1.0);
        let disturbed = Finding { verdict: Verdict::Disturbed, ..sound.clone() };
        let few = Some(Estimate { median: 1.0, interval: None, count: 2 });
        let few = Finding { slowdown: few, ..sound };
        let implausible = found("25%", "3us", 0.6);
        for (cell, why) in [
            (disturbed, "the machine had other work"),
            (few, "there are too few runs"),
            (implausible, "faster than the program by itself"),
        ] {
            let told = say(&[cell], 1.0);
            assert!(told.sentences[0].starts_with("It is undecided"), "{:?}", told.sentences);
            assert!(told.sentences[0].contains(why), "{:?}", told.sentences);
            let verdicts = told.verdicts.expect("a round trip was tried");
            assert!(verdicts.rows.iter().all(|row| row[2] == "not known"), "{verdicts:?}");
            assert!(told.allowed.is_none());
        }
    }
}
