//! Table 1: the time of a fault with and without the emulator, at zero delay.

use chart::{BLUE, ORANGE};
use console::layout::{NONE, row, table};
use serde_json::json;

use super::paper;
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::programs;
use crate::programs::{Program, far};
use crate::report::{Report, Verdict};
use crate::touches;
use crate::{Measured, ReproduceError};
use sweep::Cell;

const PAGES: u32 = 2048;
/// Blocks with `--quick` and without. A block takes half a second; between runs the medians vary by
/// more than what afar adds.
const BLOCKS: [u32; 2] = [15, 41];
/// Local memory: a quarter of the pages, as in the runs of minor faults.
const LOCAL: &str = "2MiB";

/// Medians in nanoseconds, without and with afar.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Faults {
    protected: [Option<f64>; 2],
    demand: [Option<f64>; 2],
}

/// Measures the figure.
///
/// # Errors
/// When nothing ran, or the kernel refuses userfaultfd.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let rounds = if flags.quick { 4 } else { 16 };
    let again = far(&[("local", LOCAL), ("policy", "fifo")]);
    let programs = [
        Program {
            name: "touches",
            experiment: touches::again(PAGES, PAGES * rounds),
            cells: vec![again.clone()],
        },
        Program {
            name: "minor-faults",
            experiment: touches::minor(PAGES, PAGES * rounds),
            cells: vec![Cell::NATIVE],
        },
        Program {
            name: "first-touches",
            experiment: touches::first(PAGES * rounds),
            cells: vec![Cell::NATIVE, Cell::zero(None)],
        },
    ];
    let outcome = programs::run(flags, ("dime-table1", BLOCKS), &programs)?;
    let of = |name: &str, cell: &Cell| Some(touches::of(outcome.of(name)?, cell)?.p50_ns);
    let first = [Cell::NATIVE, Cell::zero(None)].map(|cell| of("first-touches", &cell));
    let protected = [of("minor-faults", &Cell::NATIVE), of("touches", &again)];
    let faults = Faults { protected, demand: first };
    Ok(Some(Measured {
        report: report(&faults),
        described: format!(
            "{} touches each; medians. Without afar: a minor fault on a shared memory file whose \
             pages another\nthread drops meanwhile, as far memory must\n{}",
            PAGES * rounds,
            outcome.describe()
        ),
        bed: json!({"runs": outcome.record(), "touches": PAGES * rounds, "local": LOCAL}),
        is_interrupted: outcome.is_interrupted,
    }))
}

/// The report from the medians.
fn report(faults: &Faults) -> Report {
    let verdicts = verdicts(faults);
    let caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    Report {
        title: format!("{}, Table 1: what a fault takes", paper::SOURCE),
        table: rows(faults),
        picture: picture(faults, &caption),
        verdicts,
        points: json!({"protected_ns": faults.protected, "demand_ns": faults.demand}),
        paper: json!({
            "protected_ns": paper::PROTECTED_NS,
            "demand_ns": paper::DEMAND_NS,
            "added_ns": paper::ADDED_NS,
        }),
    }
}

/// What afar adds to a fault.
fn added([without, with]: [Option<f64>; 2]) -> Option<f64> {
    Some(with? - without?)
}

/// The table as text.
fn rows(faults: &Faults) -> String {
    let ns = |ns: Option<f64>| ns.map_or_else(|| NONE.to_owned(), |ns| format!("{ns:.0}"));
    let mut rows = vec![row(["median, ns", "without", "with afar", "added", "DiME"])];
    let cases = [
        ("page that is far, no delay", faults.protected, paper::PROTECTED_NS),
        ("page that is new", faults.demand, paper::DEMAND_NS),
    ];
    for (name, measured, [without, with]) in cases {
        rows.push(row([
            name,
            &ns(measured[0]),
            &ns(measured[1]),
            &ns(added(measured)),
            &format!("{without:.0} to {with:.0}"),
        ]));
    }
    table(&rows)
}

fn verdicts(faults: &Faults) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if let Some(added) = added(faults.protected) {
        let claim = format!(
            "afar adds {added:.0} ns to the fault that makes a far page local; DiME's {:.0} ns on \
             average is enough",
            paper::ADDED_NS
        );
        let why = "the trap and its log run in a virtual machine, where every step of a fault \
                   costs about three times as much";
        verdicts.push(Verdict::because(added <= paper::ADDED_NS, claim, why));
    }
    if let Some(added) = added(faults.demand) {
        let claim = format!(
            "afar adds {added:.0} ns to the first touch of a page; DiME's {:.0} ns on average is \
             enough",
            paper::ADDED_NS
        );
        let why = "a new page is one of a memory file, which takes the kernel longer than private \
                   memory, and the trap logs it";
        verdicts.push(Verdict::because(added <= paper::ADDED_NS, claim, why));
    }
    verdicts
}

fn picture(faults: &Faults, caption: &[String]) -> String {
    let series = |name: &str, colour, kind, [far, new]: [Option<f64>; 2]| {
        let points = [(1.0, far), (2.0, new)];
        let points = points.into_iter().filter_map(|(at, ns)| Some((at, ns?))).collect();
        Series { name: name.to_owned(), colour, points, kind }
    };
    let Faults { protected, demand } = *faults;
    let theirs = |which: usize| [paper::PROTECTED_NS[which], paper::DEMAND_NS[which]].map(Some);
    let all = protected.into_iter().chain(demand).flatten().chain(paper::DEMAND_NS);
    let most = all.fold(0.0, f64::max);
    let names = ["far, no delay", "new"].map(str::to_owned);
    let chart = Chart {
        title: "median fault, ns".to_owned(),
        x: Axis::names("page", &names),
        y: Axis::from_zero("", most),
        series: vec![
            series("without", BLUE, Kind::Dots, [protected[0], demand[0]]),
            series("with afar", ORANGE, Kind::Dots, [protected[1], demand[1]]),
            series("", BLUE, Kind::Theirs, theirs(0)),
            series("", ORANGE, Kind::Theirs, theirs(1)),
        ],
    };
    let note = "Hollow: without and with DiME, on its machine.".to_owned();
    let caption: Vec<String> = [note].into_iter().chain(caption.iter().cloned()).collect();
    let title = format!("{}, Table 1: what a fault takes", paper::SOURCE);
    draw(&title, &[chart], 1, &caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_judged_by_the_papers_mean() {
        let judged = |with: f64| {
            let faults = Faults { protected: [Some(700.0), Some(with)], demand: [None, Some(1.0)] };
            verdicts(&faults)
        };
        assert!(judged(778.0)[0].holds && !judged(779.0)[0].holds);
        assert_eq!(judged(778.0).len(), 1, "what is not known is not judged");
        let shown = rows(&Faults { protected: [Some(700.0), Some(760.0)], demand: [None; 2] });
        assert!(shown.contains("60") && shown.contains("160 to 241"), "{shown}");
    }
}
