//! The requirement finder: how far can one axis go before the slowdown exceeds a bound?
//!
//! One axis moves at a time, the others stay at the experiment's values. Steps are ordered from
//! generous to mean. The slowdown is assumed to grow along them, so bisection finds the last good
//! step. A step whose interval holds the bound runs again, up to three times as often; intervals
//! allow for repeated tests ([`Looks`]). If a step is still undecided, its median decides where the
//! search goes on. A step with an invalid or disturbed run, or one that is faster than the native
//! program, ends the search of its axis: the edge is unknown then.
//!
//! An edge is then confirmed: the last good step and the first bad one run again, beside the native
//! program, in blocks of their own. If their medians do not lie on opposite sides of the bound, the
//! edge moves by a step and is confirmed again. It is confirmed if their whole intervals lie on
//! opposite sides.

use std::fmt::Write as _;

use experiment::Looks;
use measure::{Bytes, ShareOf};
use results::{Estimate, Finding, Standing, Verdict};

use super::file::Sweep;
use super::matrix::Cell;

/// An undecided step may run this many times the experiment's repetitions.
pub(crate) const PATIENCE: u32 = 3;
/// How often an edge is confirmed and moved at most.
pub(crate) const MOVES: u32 = 4;
/// The axes that are searched.
pub(crate) const SEARCHED: [&str; 3] = ["rtt", "bandwidth", "local"];

/// The result of a step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The slowdown; `None` if the step failed or is invalid.
    pub(crate) slowdown: Option<Estimate>,
    /// Why the step is invalid, and so neither good nor bad; `None` if it is valid.
    pub(crate) invalid: Option<String>,
}

impl Step {
    /// The result of a step from its finding, judged against `bound`.
    pub(crate) fn of(finding: &Finding, bound: f64) -> Self {
        let verdict = finding.verdict_beside(bound);
        let disturbed = || finding.first_disturbance.clone().unwrap_or_default();
        let invalid = finding.first_invalid.clone().or_else(|| {
            (verdict == Verdict::Disturbed).then(|| format!("disturbed: {}", disturbed()))
        });
        // If some runs are invalid, the others are no fair sample.
        Self { slowdown: finding.slowdown.filter(|_| invalid.is_none()), invalid }
    }

    /// The final result, after the last run: a step that is faster than native becomes invalid.
    pub(crate) fn settled(self, bound: f64) -> Self {
        let verdict = self.slowdown.map(|slowdown| slowdown.verdict(bound));
        match verdict {
            Some(Verdict::Implausible) => {
                Self { slowdown: None, invalid: Some(Verdict::Implausible.words().to_owned()) }
            }
            _ => self,
        }
    }

    // Whether the whole interval is on one side of the bound; a failed step is beyond it.
    fn is_surely(&self, verdict: Verdict, bound: f64) -> bool {
        match self.slowdown {
            Some(slowdown) => slowdown.verdict(bound) == verdict,
            None => verdict == Verdict::Beyond,
        }
    }

    /// Whether the median is within the bound.
    pub(crate) fn is_good(&self, bound: f64) -> bool {
        self.slowdown.is_some_and(|slowdown| slowdown.median <= bound)
    }

    /// Whether more runs could change the verdict.
    pub(crate) fn is_unsure(&self, bound: f64) -> bool {
        let open = [Verdict::Undecided, Verdict::Implausible];
        self.slowdown.is_some_and(|slowdown| open.contains(&slowdown.verdict(bound)))
    }
}

/// The result of the search along one axis.
#[derive(Debug)]
pub(crate) struct Requirement {
    pub(crate) axis: &'static str,
    /// The last good step; `None` if no step is good.
    pub(crate) good: Option<(String, Step)>,
    /// The first bad step; `None` if no step is bad.
    pub(crate) bad: Option<(String, Step)>,
    pub(crate) standing: Standing,
    /// The invalid step that ended the search, and why it is invalid.
    pub(crate) invalid: Option<(String, String)>,
}

impl Requirement {
    /// A requirement without an edge.
    pub(crate) const fn new(axis: &'static str) -> Self {
        Self { axis, good: None, bad: None, standing: Standing::Unsteady, invalid: None }
    }

    /// A requirement whose search an invalid step has ended.
    pub(crate) fn invalid(axis: &'static str, step: (String, String)) -> Self {
        Self { invalid: Some(step), ..Self::new(axis) }
    }
}

/// The result of a bisection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The index of the first bad step.
    At(usize),
    /// The invalid step that ended the search, and why it is invalid.
    Invalid(String, String),
}

/// Whether an edge is confirmed or undecided, by the intervals of its sides.
pub(crate) fn standing(good: Option<&Step>, bad: Option<&Step>, bound: f64) -> Standing {
    let is_sure = good.is_none_or(|good| good.is_surely(Verdict::Within, bound))
        && bad.is_none_or(|bad| bad.is_surely(Verdict::Beyond, bound));
    if is_sure { Standing::Confirmed } else { Standing::Undecided }
}

/// After which numbers of runs a step is tested.
pub(crate) fn looks(repetitions: u32) -> Looks {
    Looks::new(repetitions as usize, (repetitions * PATIENCE) as usize)
}

/// The new edge after its two sides have run again; `None` if it stays.
pub(crate) fn moved(
    edge: usize,
    good: Option<&Step>,
    bad: Option<&Step>,
    bound: f64,
) -> Option<usize> {
    if good.is_some_and(|good| !good.is_good(bound)) {
        return Some(edge - 1);
    }
    if bad.is_some_and(|bad| bad.is_good(bound)) {
        return Some(edge + 1);
    }
    None
}

/// The steps of an axis.
pub(crate) fn steps<'a>(sweep: &'a Sweep, axis: &str) -> &'a [String] {
    match axis {
        "rtt" => &sweep.find.rtt_steps,
        "bandwidth" => &sweep.find.bandwidth_steps,
        _ => &sweep.find.local_steps,
    }
}

/// The cell of one step of an axis: all other axes have the finder's settings.
pub(crate) fn cell(sweep: &Sweep, axis: &'static str, value: &str) -> Cell {
    let find = &sweep.find;
    let bases = [
        ("engine", &find.engine),
        ("local", &find.local),
        ("of", &find.of),
        ("rtt", &find.rtt),
        ("bandwidth", &find.bandwidth),
    ];
    let settings = bases
        .map(|(name, base)| (name, if name == axis { value.to_owned() } else { base.clone() }));
    Cell::far(settings.into())
}

/// Bisects `steps`; `run` runs one. Returns the index of the first bad step, or the first step
/// that is invalid.
///
/// # Errors
/// Those of `run`.
pub(crate) fn search<E>(
    steps: &[String],
    bound: f64,
    mut run: impl FnMut(&str) -> Result<Step, E>,
) -> Result<Edge, E> {
    // Everything before `low` is good, everything from `high` on is bad.
    let (mut low, mut high) = (0, steps.len());
    while low < high {
        let middle = low.midpoint(high);
        let step = run(&steps[middle])?;
        if let Some(why) = step.invalid {
            return Ok(Edge::Invalid(steps[middle].clone(), why));
        }
        if step.is_good(bound) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(Edge::At(low))
}

/// The requirements of a program as text, in the manner of Table 3 of Gao et al.
pub(crate) fn text(
    sweep: &Sweep,
    (bound, of_bytes): (f64, Option<u64>),
    requirements: &[Requirement],
) -> String {
    let find = &sweep.find;
    let of = find.of.parse().unwrap_or(ShareOf::Peak);
    let mut out = format!(
        "at most {:.1} % slower; what does not move: engine {}, local {}, rtt {}, bandwidth {}\n\
         local memory is a share of {}\n\n",
        (bound - 1.0) * 100.0,
        find.engine,
        find.local,
        find.rtt,
        find.bandwidth,
        of.told(of_bytes.map(Bytes::new))
    );
    let head = ("requirement", "last good", "first bad");
    let _infallible = writeln!(out, "{:<20}{:<38}{}", head.0, head.1, head.2);
    for Requirement { axis, good, bad, standing, invalid } in requirements {
        let name = match *axis {
            "rtt" => "rtt at most",
            "bandwidth" => "bandwidth at least",
            _ => "local at least",
        };
        if let Some((value, why)) = invalid {
            let _infallible = writeln!(out, "{name:<20}unknown: at {value} {why}");
            continue;
        }
        let show = |side: &Option<(String, Step)>, none: &str| match side {
            Some((value, step)) => format!("{value}  {}", shown(step, bound)),
            None => none.to_owned(),
        };
        let _infallible = writeln!(
            out,
            "{name:<20}{:<38}{}{}",
            show(good, "none of the steps"),
            show(bad, "none of the steps"),
            match standing {
                Standing::Confirmed => "",
                Standing::Undecided => "  UNDECIDED",
                Standing::Unsteady | Standing::Invalid => "  NOT CONFIRMED",
            },
        );
    }
    out.push_str(
        "\nfigures are of runs made to confirm what was found, beside native ones in the same \
         blocks\n?: the interval holds the bound even after more runs, or there are too few; the \
         edge is undecided then\n",
    );
    out
}

/// The slowdown of a step as text.
fn shown(step: &Step, bound: f64) -> String {
    match step.slowdown {
        Some(slowdown) => {
            let doubt = if step.is_unsure(bound) { " ?" } else { "" };
            format!("{}{doubt}", slowdown.text(3))
        }
        None => "could not be run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use experiment::journal::Journal;
    use results::{CellKind, Interval};
    use sys::event::Signals;

    use super::super::row::Row;
    use super::super::sweeping::CONFIRMING;
    use super::super::trial::Trials;
    use super::super::{Stopped, Sweeping, header};
    use super::*;

    fn steps() -> Vec<String> {
        (1..=8).map(|step| step.to_string()).collect()
    }

    fn between(low: f64, median: f64, high: f64) -> Step {
        let interval = Some(Interval { low, high, level: 0.93 });
        Step { slowdown: Some(Estimate { median, interval, count: 5 }), invalid: None }
    }

    fn at(median: f64) -> Step {
        between(median, median, median)
    }

    fn failed() -> Step {
        Step { slowdown: None, invalid: None }
    }

    #[test]
    fn an_invalid_step_is_no_side_of_an_edge() {
        let why = || Some("invalid: it ran natively".to_owned());
        let edge = search(&steps(), 1.05, |_| Ok::<_, ()>(Step { invalid: why(), ..at(1.0) }));
        let Ok(Edge::Invalid(value, why)) = edge else { panic!("{edge:?}") };
        assert_eq!((value.as_str(), why.as_str()), ("5", "invalid: it ran natively"));
        let found = Requirement::invalid("rtt", (value, why));
        let sweep = toml::from_str("[workload]\ncommand=['x']").expect("good");
        let text = text(&sweep, (1.05, Some(512 << 20)), &[found]);
        assert!(text.contains("a share of 512.0 MiB (the most it used)\n"), "{text}");
        assert!(text.contains("unknown: at 5 invalid: it ran natively"), "{text}");
        assert!(!text.contains("none of the steps"), "{text}");
    }

    // Whatever the last good step is, it and the next are run.
    #[test]
    fn bisection_brackets_every_threshold() {
        for threshold in 0..=8 {
            let mut tried = Vec::new();
            let edge = search(&steps(), 1.05, |value| {
                let value: usize = value.parse().expect("a number");
                tried.push(value);
                Ok::<_, ()>(at(if value <= threshold { 1.0 } else { 2.0 }))
            });
            assert_eq!(edge, Ok(Edge::At(threshold)));
            let is_tried = |step| step == 0 || step > 8 || tried.contains(&step);
            assert!(is_tried(threshold) && is_tried(threshold + 1), "{tried:?}");
            assert!(tried.len() <= 4, "{tried:?}");
        }
    }

    #[test]
    fn an_edge_moves_to_where_its_sides_differ() {
        let (good, bad, failed) = (at(1.0), at(2.0), failed());
        let (good, bad) = (Some(&good), Some(&bad));
        assert_eq!(moved(3, good, bad, 1.05), None);
        assert_eq!(moved(3, bad, bad, 1.05), Some(2));
        assert_eq!(moved(3, good, good, 1.05), Some(4));
        assert_eq!(moved(0, None, bad, 1.05), None, "nothing is good enough");
        assert_eq!(moved(8, good, None, 1.05), None, "nothing is too bad");
        assert_eq!(moved(3, Some(&failed), bad, 1.05), Some(2));
    }

    #[test]
    fn what_cannot_be_run_is_bad() {
        let edge = search(&steps(), 1.05, |_| Ok::<_, ()>(failed()));
        assert_eq!(edge, Ok(Edge::At(0)));
        let bad = Some(("1".to_owned(), failed()));
        let standing = Standing::Confirmed;
        let found = Requirement { bad, standing, ..Requirement::new("rtt") };
        let text = text(
            &toml::from_str("[workload]\ncommand=['x']").expect("good"),
            (1.05, None),
            &[found],
        );
        assert!(text.contains("rtt at most         none of the steps"), "{text}");
        assert!(text.contains("1  could not be run"), "{text}");
    }

    #[test]
    fn unsure_is_an_interval_around_the_bound() {
        let step = |low, high| between(low, 1.04, high);
        assert!(step(1.0, 1.1).is_unsure(1.05));
        assert!(!step(1.0, 1.049).is_unsure(1.05));
        assert!(!at(1.06).is_unsure(1.05));
        let few = Some(Estimate { median: 2.0, interval: None, count: 2 });
        assert!(Step { slowdown: few, invalid: None }.is_unsure(1.05));
    }

    #[test]
    fn an_edge_is_confirmed_by_whole_intervals_and_not_by_medians() {
        let (good, bad) = (between(1.0, 1.02, 1.04), between(1.06, 1.1, 1.2));
        let doubtful = between(1.0, 1.1, 1.2);
        assert_eq!(standing(Some(&good), Some(&bad), 1.05), Standing::Confirmed);
        assert_eq!(standing(Some(&good), Some(&doubtful), 1.05), Standing::Undecided);
        assert_eq!(standing(Some(&doubtful), Some(&bad), 1.05), Standing::Undecided);
        assert_eq!(standing(None, Some(&failed()), 1.05), Standing::Confirmed);
    }

    const BOUND: f64 = 1.05;
    const STEPS: [&str; 2] = ["1us", "9us"];

    // A search along `rtt` whose runs have been made: ratios of a step, from some block on.
    fn searched<T>(
        runs: &[(&str, u32, &[f64])],
        act: impl FnOnce(&mut Sweeping<'_>) -> Result<T, Stopped>,
    ) -> T {
        let text = "[workload]\ncommand = ['x']\n[find]\nrtt_steps = ['1us', '9us']";
        let sweep: Sweep = toml::from_str(text).expect("it is one");
        let name = format!("afar-find-{:?}-{}", std::thread::current().id(), std::process::id());
        let directory = std::env::temp_dir().join(name);
        let header = header(&sweep, text.to_owned(), &[]);
        let mut journal = Journal::open(&directory, &header).expect("there is room");
        for (step, first, ratios) in runs {
            for (block, ratio) in (*first..).zip(*ratios) {
                for (cell, value) in [(Cell::NATIVE, 1.0), (cell(&sweep, "rtt", step), *ratio)] {
                    let (cell, value) = (cell.name(), Some(value));
                    journal.rows.push(Row { block, cell, value, ..Row::default() });
                }
            }
        }
        let signals = Signals::receive(&[]).expect("there are descriptors");
        let afar = PathBuf::new();
        let answer = act(&mut Sweeping {
            trials: Trials { sweep: &sweep, allow_unmanaged: false, afar, signals: &signals },
            header: &header,
            journal,
            looks: looks(sweep.repetitions),
            progress: console::Progress::unseen("run"),
            told: std::collections::HashMap::new(),
        });
        std::fs::remove_dir_all(&directory).expect("it is ours");
        answer.unwrap_or_else(|_| panic!("nothing has to run"))
    }

    #[test]
    fn a_step_that_is_looked_at_again_is_decided_later() {
        let ratios = [0.9, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1];
        let judged = |count: usize| {
            searched(&[(STEPS[0], 0, &ratios[..count])], |search| {
                let cell = cell(search.trials.sweep, "rtt", STEPS[0]);
                Ok(search.judge(&cell, 0..CONFIRMING, BOUND))
            })
        };
        assert!(judged(9).is_unsure(BOUND), "one look would have decided");
        assert!(!judged(11).is_unsure(BOUND));
    }

    #[test]
    fn a_search_ends_where_a_step_is_faster_than_native() {
        let (fast, slow) = ([0.8; 15], [1.5; 15]);
        let step = searched(&[(STEPS[0], 0, &fast)], |search| search.step("rtt", STEPS[0], BOUND));
        assert!(step.invalid.is_some_and(|why| why.contains("faster")));
        let sides = [(STEPS[0], CONFIRMING, &fast[..]), (STEPS[1], CONFIRMING, &slow[..])];
        let found = searched(&sides, |search| search.confirm((0, "rtt"), 1, BOUND));
        assert!(found.invalid.is_some_and(|(step, _)| step == STEPS[0]));
    }

    #[test]
    fn an_edge_whose_side_holds_the_bound_is_undecided() {
        let (good, bad, mut doubtful) = ([1.0; 15], [1.5; 15], [1.2; 15]);
        doubtful[..7].fill(1.0);
        let standing = |bad: &[f64]| {
            let sides = [(STEPS[0], CONFIRMING, &good[..]), (STEPS[1], CONFIRMING, bad)];
            searched(&sides, |search| search.confirm((0, "rtt"), 1, BOUND)).standing
        };
        assert_eq!(standing(&bad), Standing::Confirmed);
        assert_eq!(standing(&doubtful), Standing::Undecided);
    }

    #[test]
    fn a_disturbed_or_impossible_step_is_no_number() {
        let mut finding = Finding::new(CellKind::Far, [].into());
        finding.slowdown = between(0.5, 0.6, 0.7).slowdown;
        let step = Step::of(&finding, 1.05);
        assert!(step.is_unsure(1.05), "more runs may mend it");
        let step = step.settled(1.05);
        assert!(step.slowdown.is_none() && step.invalid.is_some_and(|why| why.contains("faster")));
        finding.slowdown = at(1.0).slowdown;
        assert_eq!(Step::of(&finding, 1.05).invalid, None);
        finding.verdict = Verdict::Disturbed;
        finding.first_disturbance = Some("a load".to_owned());
        assert_eq!(Step::of(&finding, 1.05).invalid.as_deref(), Some("disturbed: a load"));
    }
}
