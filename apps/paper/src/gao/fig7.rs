//! Figure 7: mean slowdown of five transports under the traffic of a disaggregated datacenter.
//!
//! The paper prints no numbers beside its bars; what it says of their order is compared, and the
//! published completion times of its pFabric (§4.4 feeds them back) for 4 KiB. Each transport runs
//! as the simulator of 2016 had it, and as its own paper has it.

use std::sync::atomic::Ordering;

use console::{
    Line,
    layout::{NONE, row, table},
};
use serde_json::{Value, json};

use crate::flags::Options;
use crate::report::{Report, Verdict};
use crate::{Measured, ReproduceError};
use fabric::SimError;
use fabric::{Group, Looker, Settings, Setup, draw, figures, many, rows, run_stranded};
use results::Figures;

/// As the figure has them, best first.
const TRANSPORTS: [&str; 5] = ["pfabric", "phost", "fastpass", "dctcp", "tcp"];
const RATES: [&str; 2] = ["40Gbps", "100Gbps"];
/// Links and switches of the paper's simulations: 2.04 µs there and back between racks.
const DELAY: &str = "10ns,400ns,400ns,210ns";
/// Batches of pages: quantiles of what one word count in Spark moved between blades at once, in
/// packets of 1460 B; at least a page.
const BATCHES: &str = "4096 0\n13140 0.5\n45260 0.9\n237980 0.99\n2032320 1\n";
const SEED: &str = "1";

/// Mean completion times of 4 KiB under pFabric between racks, µs, that the paper fed back to its
/// eight applications: the least and the most, at [`RATES`].
const PAPER_US: [(f64, f64); 2] = [(2.864, 3.354), (2.268, 2.352)];
/// How far beyond them is still agreement.
const NEAR: f64 = 0.08;

/// What flows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    Batches,
    Pages,
}

/// One simulation.
#[derive(Debug, Clone, Copy)]
struct Case {
    traffic: Traffic,
    rate: usize,
    transport: &'static str,
    is_published: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
struct Point {
    figures: Figures,
    completion_us: f64,
    unfinished_count: usize,
}

impl Traffic {
    const fn name(self) -> &'static str {
        match self {
            Self::Batches => "batches of pages, 60 % load",
            Self::Pages => "single pages, 10 % load",
        }
    }
}

/// Simulates the figure; `None` if it was interrupted before anything was known.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let counts = if flags.quick { [2_000, 10_000] } else { [20_000, 100_000] };
    let cases = cases();
    let batches = flags.output.join("gao-fig7-sizes.txt");
    std::fs::write(&batches, BATCHES)
        .map_err(|source| SimError::Unreadable { path: batches.clone(), source })?;
    let sizes = batches.display().to_string();
    let signals = console::interrupts()?;
    let line = if flags.quiet { None } else { Line::on_terminal() };
    let mut looker = Looker { signals: &signals, line };
    let mut points = vec![None; cases.len()];
    let work = |number: usize, stop: &std::sync::atomic::AtomicBool| {
        let setup = Setup::new(&settings(&cases[number], counts, &sizes))?;
        match run_stranded(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
            Err(netsim::SimError::Stopped { .. }) => Ok(None),
            run => Ok::<_, SimError>(Some(point(&setup, &run?.outcome))),
        }
    };
    let is_whole =
        many::run(cases.len(), many::threads(None), &mut looker, work, |number, one| {
            points[number] = Some(one);
            Ok(())
        })?;
    drop(looker);
    if points.iter().all(Option::is_none) {
        return Ok(None);
    }
    let described = format!(
        "144 hosts in 9 racks, full bisection, 36,864 B at a port; all to all by chance, {} flows \
         of batches,\n{} of pages, seed {SEED}; the same flows for every transport",
        counts[0], counts[1]
    );
    let bed = json!({"delay": DELAY, "seed": SEED, "flow_counts": counts, "sizes": BATCHES});
    let report = report(&cases, &points);
    Ok(Some(Measured { report, described, bed, is_interrupted: !is_whole }))
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for traffic in [Traffic::Batches, Traffic::Pages] {
        for rate in 0..RATES.len() {
            let case = |transport, is_published| Case { traffic, rate, transport, is_published };
            cases.extend(TRANSPORTS.map(|transport| case(transport, true)));
            cases.extend(TRANSPORTS.map(|transport| case(transport, false)));
        }
    }
    // The longest last would leave processors idle; Fastpass with many small flows is that.
    cases.sort_by_key(|case| case.transport != "fastpass");
    cases
}

fn settings(case: &Case, counts: [u32; 2], batches: &str) -> Settings {
    let (sizes, load, count) = match case.traffic {
        Traffic::Batches => (batches, "60%", counts[0]),
        Traffic::Pages => ("4KiB", "10%", counts[1]),
    };
    let variant = if case.is_published { "as-published-2016" } else { "default" };
    Settings::default()
        .with("transport", case.transport)
        .with("variant", variant)
        .with("rate", RATES[case.rate])
        .with("delay", DELAY)
        .with("sizes", sizes)
        .with("load", load)
        .with("flows", &count.to_string())
        .with("seed", SEED)
        // One measure for both halves: the simulator of 2016 knew no other.
        .with("end", "acknowledged")
        .with("warm-up", "0%")
        .with("cool-down", "0%")
}

fn point(setup: &Setup, outcome: &netsim::Outcome) -> Point {
    let Setup { fabric, flows, end, .. } = setup;
    let rows = rows(fabric, flows, outcome, *end);
    let sum: f64 = rows.iter().map(|row| row.completion_ps as f64 / 1e6).sum();
    Point {
        figures: figures(setup, outcome),
        completion_us: sum / rows.len().max(1) as f64,
        unfinished_count: flows.len() - rows.len(),
    }
}

fn report(cases: &[Case], points: &[Option<Point>]) -> Report {
    let all = || cases.iter().zip(points);
    let find = |traffic, rate, transport, is_published| {
        let is_it = |case: &Case| {
            (case.traffic, case.rate, case.transport, case.is_published)
                == (traffic, rate, transport, is_published)
        };
        all().find(|(case, _)| is_it(case)).and_then(|(_, point)| point.as_ref())
    };
    let mut text = String::new();
    for traffic in [Traffic::Batches, Traffic::Pages] {
        let mut rows =
            vec![row([traffic.name(), "rate", "2016", "p99", "now", "p99", "hung 2016"])];
        for (rate, rate_name) in RATES.iter().enumerate() {
            for transport in TRANSPORTS {
                let cells = |is_published| {
                    let point = find(traffic, rate, transport, is_published);
                    let figure = |of: fn(&Figures) -> f64| {
                        let shown = |point: &Point| format!("{:.2}", of(&point.figures));
                        point.map_or_else(|| NONE.to_owned(), shown)
                    };
                    [figure(|one| one.slowdown.mean), figure(|one| one.slowdown.p99)]
                };
                let hung = find(traffic, rate, transport, true).map(|point| point.unfinished_count);
                let mut line = vec![transport.to_owned(), (*rate_name).to_owned()];
                line.extend(cells(true));
                line.extend(cells(false));
                line.push(hung.map_or_else(|| NONE.to_owned(), |count| count.to_string()));
                rows.push(line);
            }
        }
        text += &format!("{}\n", table(&rows));
    }
    text += "Slowdown: time by time alone, mean and 99th percentile. 2016: as the simulator of the \
             paper had the\ntransport, with its defects; now: as the transport's own paper has it. \
             Hung: flows that never\nfinished, and are left out.\n";
    let mut verdicts = Vec::new();
    for traffic in [Traffic::Batches, Traffic::Pages] {
        for (rate, rate_name) in RATES.iter().enumerate() {
            let means = TRANSPORTS.map(|transport| {
                find(traffic, rate, transport, true).map(|one| one.figures.slowdown.mean)
            });
            verdicts.extend(order(&format!("{rate_name}, {}", traffic.name()), means));
        }
    }
    for rate in 0..RATES.len() {
        let page = find(Traffic::Pages, rate, "pfabric", true);
        verdicts.extend(page.map(|one| near(rate, one.completion_us)));
    }
    Report {
        title: "Gao et al. 2016, Fig. 7: slowdown of flows between blades, by transport".to_owned(),
        table: text,
        verdicts,
        picture: picture(cases, points),
        points: all().map(|(case, point)| record(case, point.as_ref())).collect(),
        paper: json!({
            "order": TRANSPORTS,
            "pfabric_4kib_completion_us": {"40Gbps": PAPER_US[0], "100Gbps": PAPER_US[1]},
        }),
    }
}

/// Whether the order is the paper's; nothing if a transport is missing.
fn order(place: &str, means: [Option<f64>; 5]) -> Vec<Verdict> {
    let [Some(pfabric), Some(phost), Some(fastpass), Some(dctcp), Some(tcp)] = means else {
        return Vec::new();
    };
    let new = format!(
        "{place}: pFabric {pfabric:.2}, pHost {phost:.2}, Fastpass {fastpass:.2} as published; the \
         paper has them in this order (§4.3, by its reference to pHost's)"
    );
    let old = format!(
        "{place}: DCTCP {dctcp:.2} and TCP {tcp:.2} are worse than pFabric and pHost, as the paper \
         concludes (§1)"
    );
    let is_worse = phost.max(pfabric) < dctcp.min(tcp);
    vec![Verdict::new(pfabric <= phost && phost <= fastpass, new), Verdict::new(is_worse, old)]
}

fn near(rate: usize, us: f64) -> Verdict {
    let ((low, high), name) = (PAPER_US[rate], RATES[rate]);
    let holds = (low * (1.0 - NEAR)..=high * (1.0 + NEAR)).contains(&us);
    let claim = format!(
        "at {name} 4 KiB take {us:.3} µs by pFabric as published; the paper fed back {low} to \
         {high} µs (criterion: within {:.0} % of these)",
        NEAR * 100.0
    );
    Verdict::new(holds, claim)
}

fn record(case: &Case, point: Option<&Point>) -> Value {
    json!({
        "traffic": case.traffic.name(),
        "rate": RATES[case.rate],
        "transport": case.transport,
        "variant": if case.is_published { "as-published-2016" } else { "default" },
        "completion_us": point.map(|point| point.completion_us),
        "unfinished_count": point.map(|point| point.unfinished_count),
        "figures": point.map(|point| &point.figures),
    })
}

/// Batches of pages: what single pages take is in the table.
fn picture(cases: &[Case], points: &[Option<Point>]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (rate, rate_name) in RATES.iter().enumerate() {
        for (is_published, variant) in [(true, "as published in 2016"), (false, "now")] {
            let bar = |transport: &&str| {
                let is_it = |case: &Case| {
                    (case.traffic, case.rate, case.transport, case.is_published)
                        == (Traffic::Batches, rate, *transport, is_published)
                };
                let at = cases.iter().position(is_it)?;
                Some(((*transport).to_owned(), points[at].as_ref().map(|point| &point.figures)))
            };
            let bars = TRANSPORTS.iter().filter_map(bar).collect();
            groups.push(Group { name: format!("{rate_name}, {variant}"), bars });
        }
    }
    draw("Gao et al. 2016, Fig. 7: slowdown of flows between blades, by transport", &groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_papers_or_is_not() {
        let holds = |means: [f64; 5]| -> Vec<bool> {
            order("x", means.map(Some)).iter().map(|verdict| verdict.holds).collect()
        };
        assert_eq!(holds([1.1, 1.2, 2.0, 3.0, 4.0]), [true, true]);
        assert_eq!(holds([1.1, 1.2, 3.0, 2.0, 1.9]), [true, true]);
        assert_eq!(holds([1.3, 1.2, 2.0, 3.0, 4.0]), [false, true]);
        assert_eq!(holds([1.1, 2.2, 2.0, 2.1, 4.0]), [false, false]);
        assert!(order("x", [None; 5]).is_empty());
    }

    #[test]
    fn near_is_eight_hundredths_beyond_either_end() {
        assert!(near(1, 2.268 * 0.93).holds && near(1, 2.352 * 1.07).holds);
        assert!(!near(1, 2.268 * 0.91).holds && !near(1, 2.352 * 1.09).holds);
    }
}
