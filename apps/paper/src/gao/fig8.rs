//! Figure 8: how much slower applications are whose pages take as long as in the simulated network,
//! with and without the queueing that their own traffic makes there.
//!
//! The paper injects pFabric's completion times once, as simulated from traffic without delay; so
//! does the first round here. Delays slow a program down, and its traffic with it; so more rounds
//! follow until delays and traffic agree. Workloads stand in for applications; clusters of five
//! fill the network, each drawing flows from distributions by pair of blades, as in §4.2.

use std::cell::OnceCell;

use console::{
    Line,
    layout::{NONE, table},
};
use serde_json::{Value, json};

use super::workloads::{DELAY, LABELS, LOCAL, WORKLOADS, directory};
use crate::flags::Options;
use crate::report::{Report, Verdict};
use crate::{Measured, ReproduceError};
use chart::{Anchor, BLUE, GREEN, GREY, ORANGE, Panel, Scale, Svg, Tick, axis};
use fabric::Settings;
use fabric::{Fed, FedRound, Feeder, LoopError, Short, Slower, Stopped};

/// How much is done of it.
struct Extent {
    /// Which of the sizes programs have.
    size: usize,
    /// How often a program does its job in each run: the middle time counts.
    repeat: &'static str,
    runs: u32,
    /// Runs without delay that all others of a program are compared with; none if each has its own.
    without_count: Option<u32>,
    rounds: u32,
    flow_count: &'static str,
}

const FULL: Extent =
    Extent { size: 1, repeat: "5", runs: 5, without_count: None, rounds: 6, flow_count: "100000" };
/// Most of a run with delays measured anew what a fault costs, and half of the runs were without:
/// one calibration is for all of it, and three runs of each program tell how far runs are apart.
const QUICK: Extent = Extent {
    size: 0,
    repeat: "3",
    runs: 1,
    without_count: Some(3),
    rounds: 2,
    flow_count: "20000",
};
/// Rates and places of clusters, with the least and the most that programs are slower on average
/// there (§4.4); at 40 Gb/s the paper has one number.
const NETWORKS: [Network; 4] = [
    Network { rate: "40Gbps", scale: "datacenter", paper: (0.14, 0.14) },
    Network { rate: "40Gbps", scale: "rack", paper: (0.11, 0.11) },
    Network { rate: "100Gbps", scale: "datacenter", paper: (0.01, 0.085) },
    Network { rate: "100Gbps", scale: "rack", paper: (0.004, 0.035) },
];
/// How much more queueing slows programs down at 40 Gb/s than none (§4.4).
const TIMES: (f64, f64) = (2.0, 3.0);

/// Thousand pages that a node of the paper's cluster swapped in a second, the least and the most of
/// five applications: what it read by how long it ran without delay (data of Gao et al., §3).
const PAPER_RATES: (u32, u32) = (6, 79);

#[derive(Debug, Clone, Copy)]
struct Network {
    rate: &'static str,
    scale: &'static str,
    paper: (f64, f64),
}

/// A workload in every network, as far as they were run.
#[derive(Debug, Clone)]
struct Point {
    workload: &'static str,
    fed: Vec<Option<Fed>>,
}

/// Measures the figure; `None` if it was interrupted before anything was known.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let extent = if flags.quick { QUICK } else { FULL };
    let calibrated = OnceCell::new();
    let signals = console::interrupts()?;
    let mut line = if flags.quiet { None } else { Line::on_terminal() };
    let mut points: Vec<Point> = Vec::new();
    let (mut is_interrupted, mut invalid) = (false, Vec::new());
    let mut peaks: serde_json::Map<String, Value> = serde_json::Map::new();
    for (workload, sizes) in WORKLOADS {
        let words = [&[workload, "--repeat", extent.repeat], sizes[extent.size]].concat();
        let directory = directory(&flags.output, "gao-fig8", workload)?;
        let feeder = Feeder::new(&words, (LOCAL, flags.of, extent.runs), directory, &signals);
        let short = extent
            .without_count
            .map(|count| Short { without_count: count, calibrated: &calibrated });
        let feeder = feeder.allowing(flags.allow_unmanaged).shortened(short);
        points.push(Point { workload, fed: vec![None; NETWORKS.len()] });
        let mut say = |what: &str| {
            if let Some(line) = &mut line {
                line.draw(&format!("afar reproduce gao-fig8  {workload}  {what}"));
            }
        };
        match every_network(&feeder, &extent, &mut points, &mut say) {
            Ok(()) => {}
            Err(Stopped::Interrupted) => {
                is_interrupted = true;
                break;
            }
            // The others can be measured all the same.
            Err(Stopped::Error(LoopError::Invalid(why))) => {
                if let Some(point) = points.last_mut() {
                    point.fed.fill(None);
                }
                invalid.push(format!("{workload}: {why}"));
            }
            Err(Stopped::Error(error)) => return Err(error.into()),
        }
        peaks.extend(feeder.peak().map(|peak| (workload.to_owned(), json!(peak.get()))));
    }
    drop(line);
    let is_nothing = points.iter().flat_map(|point| &point.fed).all(Option::is_none);
    if is_nothing && !invalid.is_empty() {
        return Err(LoopError::Invalid(invalid.join("; ")).into());
    }
    if is_nothing {
        return Ok(None);
    }
    let mut described = extent.told(&flags.of.told(None));
    for why in &invalid {
        described += &format!("\n{why}");
    }
    let bed = json!({"invalid": invalid, "delay": DELAY, "local": LOCAL, "repeat": extent.repeat,
        "local_is_share": {"of": flags.of.name(), "bytes": peaks}, "runs": extent.runs,
        "runs_without": extent.without_count, "is_calibrated_once": extent.without_count.is_some(),
        "rounds_max": extent.rounds, "flow_count": extent.flow_count});
    Ok(Some(Measured { report: report(&points), described, bed, is_interrupted }))
}

impl Extent {
    fn told(&self, of: &str) -> String {
        let Self { repeat, runs, flow_count, .. } = self;
        let beside = match self.without_count {
            None => format!("{runs} runs, each beside one without delay"),
            Some(count) => format!(
                "{runs} run with delays, compared with {count} without;\none calibration for all; \
                 ± takes the one to vary as much as they do"
            ),
        };
        format!(
            "144 hosts in 9 racks, full bisection, pFabric, clusters of 5 nodes; {flow_count} \
             flows drawn from distributions of\nwhat each program fetched with {LOCAL} local, of \
             {of}; the middle of {repeat} times in each of {beside}"
        )
    }
}

/// Fills the last of `points`.
fn every_network(
    feeder: &Feeder<'_>,
    extent: &Extent,
    points: &mut [Point],
    say: &mut dyn FnMut(&str),
) -> Result<(), Stopped> {
    say("without delay");
    let zero = feeder.zero()?;
    for (place, network) in NETWORKS.iter().enumerate() {
        let name = format!("{}-{}", network.rate, network.scale);
        say(&name);
        let fed =
            feeder.feed(&name, &settings(network, extent.flow_count), &zero, extent.rounds)?;
        if let Some(point) = points.last_mut() {
            point.fed[place] = Some(fed);
        }
    }
    Ok(())
}

fn settings(network: &Network, flow_count: &str) -> Settings {
    Settings::default()
        .with("traffic", "blades")
        .with("replay", "fitted")
        .with("rate", network.rate)
        .with("scale", network.scale)
        .with("delay", DELAY)
        .with("flows", flow_count)
}

/// Degradations of one workload: by an idle network, with its traffic fed back once, and closed.
fn degradations(fed: &Fed) -> Option<[Slower; 3]> {
    let (first, last) = (fed.rounds.first()?, fed.rounds.last()?);
    Some([&fed.idle, first, last].map(|round| round.slower))
}

/// The means over workloads in each network, with the noise of a mean of independent values;
/// nothing where one is missing.
fn means(points: &[Point]) -> [Option<[Slower; 3]>; 4] {
    std::array::from_fn(|network| {
        let all: Option<Vec<[Slower; 3]>> =
            points.iter().map(|point| degradations(point.fed[network].as_ref()?)).collect();
        let all = all.filter(|all| all.len() == WORKLOADS.len())?;
        let count = all.len() as f64;
        Some(std::array::from_fn(|of| Slower {
            median: all.iter().map(|one| one[of].median).sum::<f64>() / count,
            noise: all.iter().map(|one| one[of].noise.powi(2)).sum::<f64>().sqrt() / count,
        }))
    })
}

fn report(points: &[Point]) -> Report {
    let means = means(points);
    let mut rows = vec![
        [
            "program",
            "rate",
            "scale",
            "s",
            "idle",
            "once",
            "closed",
            "page µs",
            "p99",
            "queued µs",
            "p99",
            "agreed",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for point in points {
        for (network, fed) in NETWORKS.iter().zip(&point.fed) {
            let mut row = [point.workload, network.rate, network.scale].map(str::to_owned).to_vec();
            row.extend(cells(fed.as_ref()));
            rows.push(row);
        }
    }
    for (network, mean) in NETWORKS.iter().zip(&means) {
        let mut row = ["mean", network.rate, network.scale, ""].map(str::to_owned).to_vec();
        let shown = mean.map_or_else(|| [NONE; 3].map(str::to_owned), |mean| mean.map(share));
        row.extend(shown);
        rows.push(row);
    }
    let mut text = format!(
        "{}\nSlower than without delay. Idle: pages take as long as alone in the network; once: as \
         long as in the\ntraffic of the program without delay, as in the paper; closed: as in the \
         traffic under these delays.\n",
        table(&rows)
    );
    text += &rates(points);
    let title = "Gao et al. 2016, Fig. 8: applications under completion times of the network";
    Report {
        title: title.to_owned(),
        table: text,
        verdicts: verdicts(&means),
        picture: picture(title, points),
        points: record(points),
        paper: json!(NETWORKS.map(|network| json!({"rate": network.rate, "scale": network.scale,
            "degradation": [network.paper.0, network.paper.1]}))),
    }
}

/// What the programs ask of the network beside those of the paper.
fn rates(points: &[Point]) -> String {
    let fed = points.iter().flat_map(|point| point.fed.iter().flatten().take(1));
    let rates: Vec<f64> = fed.map(|fed| fed.zero.fetch_per_sec / 1e3).collect();
    let (low, high) = (
        rates.iter().copied().fold(f64::INFINITY, f64::min),
        rates.iter().copied().fold(0.0, f64::max),
    );
    let mut text = format!(
        "They fetch {low:.0} to {high:.0} thousand pages a second without delay; those of the \
         paper {} to {} thousand on each node,\nby the swap volumes its authors published.\n",
        PAPER_RATES.0, PAPER_RATES.1
    );
    let fed = points.iter().flat_map(|point| point.fed.iter().flatten());
    let longer = |of: fn(&FedRound) -> f64| {
        let each = fed.clone().filter_map(|fed| Some(of(fed.rounds.first()?) / of(&fed.idle)));
        let all: Vec<f64> = each.collect();
        percent(all.iter().sum::<f64>() / all.len().max(1) as f64 - 1.0)
    };
    text += &format!(
        "Pages are asked for, and those that were written to are written back over the same \
         network. Queueing lengthens\na page's time by {} on average, its 99th percentile by {}. \
         Programs here wait for one page before they ask for\nthe next, where the swap device of \
         the paper was given batches; what that makes of it was not tested.\n",
        longer(|round| round.page_mean_us),
        longer(|round| round.page_p99_us)
    );
    text
}

fn cells(fed: Option<&Fed>) -> [String; 9] {
    let known = fed.and_then(|fed| Some((fed, degradations(fed)?, fed.rounds.last()?)));
    let Some((fed, [idle, once, closed], last)) = known else {
        return [NONE; 9].map(str::to_owned);
    };
    let us = |us: f64| format!("{us:.2}");
    [
        format!("{:.3}", fed.zero.seconds),
        share(idle),
        share(once),
        share(closed),
        us(fed.idle.page_mean_us),
        us(fed.idle.page_p99_us),
        us(last.page_mean_us),
        us(last.page_p99_us),
        if fed.agreed { "yes" } else { "no" }.to_owned(),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn share(of: Slower) -> String {
    format!("{:.1} ± {:.1} %", of.median * 100.0, of.noise * 100.0)
}

/// What to say of a comparison that the noise decides.
const fn hidden(one: Slower, other: Slower) -> &'static str {
    if (one.median - other.median).abs() < one.noise + other.noise {
        " (less apart than the runs of one program are)"
    } else {
        ""
    }
}

fn verdicts(means: &[Option<[Slower; 3]>; 4]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (network, mean) in NETWORKS.iter().zip(means) {
        verdicts.extend(mean.map(|[_, once, closed]| near(network, once, closed)));
    }
    for (place, rate) in [(0, "40Gbps"), (2, "100Gbps")] {
        if let (Some(far), Some(rack)) = (means[place], means[place + 1]) {
            let claim = format!(
                "at {rate} clusters in racks are slower by {} on average, across the datacenter by \
                 {}{}; in the paper racks contain it",
                share(rack[2]),
                share(far[2]),
                hidden(rack[2], far[2])
            );
            verdicts.push(Verdict::new(rack[2].median < far[2].median, claim));
        }
    }
    if let (Some(slow), Some(fast)) = (means[0], means[2]) {
        let claim = format!(
            "across the datacenter programs are slower by {} at 40 Gb/s and by {} at 100 Gb/s{}; \
             the paper concludes that 100 Gb/s are required",
            share(slow[2]),
            share(fast[2]),
            hidden(slow[2], fast[2])
        );
        verdicts.push(Verdict::new(fast[2].median < slow[2].median, claim));
        let times = slow[1].median / slow[0].median;
        let claim = format!(
            "at 40 Gb/s across the datacenter queueing makes degradation {times:.1} times that of \
             an idle network; the paper has {:.0} to {:.0}",
            TIMES.0, TIMES.1
        );
        // A program that is faster under delay says that this machine was busy, nothing more.
        let holds = slow[0].median > 0.0 && (TIMES.0..=TIMES.1).contains(&times);
        verdicts.push(Verdict::new(holds, claim));
    }
    verdicts
}

/// Whether it is as the paper has it, to half as much and twice as much.
fn near(network: &Network, once: Slower, closed: Slower) -> Verdict {
    let Network { rate, scale, paper: (low, high) } = *network;
    let paper = match low == high {
        true => percent(low),
        false => format!("{} to {}", percent(low), percent(high)),
    };
    let holds = (low / 2.0..=high * 2.0).contains(&once.median);
    let claim = format!(
        "at {rate}, {scale}: slower by {} with traffic fed back once ({} closed); the paper has \
         {paper} (criterion: within a factor of 2 of that)",
        share(once),
        share(closed)
    );
    Verdict::new(holds, claim)
}

fn record(points: &[Point]) -> Value {
    let round = |round: &FedRound| {
        json!({"seconds": round.seconds, "degradation": round.slower.median,
            "noise": round.slower.noise, "page_mean_us": round.page_mean_us,
            "page_p99_us": round.page_p99_us})
    };
    let one = |workload: &str, network: &Network, fed: &Option<Fed>| {
        json!({
            "workload": workload,
            "rate": network.rate,
            "scale": network.scale,
            "zero_seconds": fed.as_ref().map(|fed| fed.zero.seconds),
            "fetch_per_sec": fed.as_ref().map(|fed| fed.zero.fetch_per_sec),
            "idle": fed.as_ref().map(|fed| round(&fed.idle)),
            "rounds": fed.as_ref().map(|fed| {
                fed.rounds.iter().map(round).collect::<Vec<_>>()
            }),
            "agreed": fed.as_ref().map(|fed| fed.agreed),
        })
    };
    let all = points.iter().flat_map(|point| {
        NETWORKS.iter().zip(&point.fed).map(|(network, fed)| one(point.workload, network, fed))
    });
    Value::Array(all.collect())
}

/// A group of bars for each network, in it three for each program.
fn picture(title: &str, points: &[Point]) -> String {
    let mut svg = Svg::new(960.0, 470.0);
    svg.text((70.0, 24.0), title, Anchor::Start);
    let key = [("idle network", GREEN), ("fed back once", BLUE), ("closed", ORANGE)];
    svg.key((70.0, 48.0), &key);
    let note = "dashed: the paper's averages with queueing; thin: half of what runs differ by";
    svg.tinted((70.0, 70.0), note, Anchor::Start, GREY);
    let most = points.iter().flat_map(|point| &point.fed).flatten().filter_map(degradations);
    let most = most.flatten().map(|of| of.median + of.noise).fold(0.15, f64::max);
    let (high, ticks) = axis(most * 100.0, |value| format!("{value} %"));
    let count = WORKLOADS.len() as f64;
    let x = Scale::Linear(0.0, (count + 1.0) * NETWORKS.len() as f64);
    let (left, width) = (70.0, 866.0);
    let panel = Panel { left, top: 88.0, width, height: 300.0, x, y: Scale::Linear(0.0, high) };
    let mut labels: Vec<Tick> = Vec::new();
    for network in 0..NETWORKS.len() {
        for (place, label) in LABELS.iter().enumerate() {
            let at = network as f64 * (count + 1.0) + place as f64 + 1.0;
            labels.push((at, (*label).to_owned()));
        }
    }
    svg.axes(&panel, ("", &labels), ("slower than without delay", &ticks));
    for (place, network) in NETWORKS.iter().enumerate() {
        let start = place as f64 * (count + 1.0) + 0.5;
        let middle = panel.at(start + count / 2.0, 0.0);
        let name = format!("{} {}", network.rate, network.scale);
        svg.text((middle.0, middle.1 + 42.0), &name, Anchor::Middle);
        let paper = [network.paper.0, network.paper.1].map(|share| share * 100.0);
        let (one, other) = (panel.at(start, paper[0]), panel.at(start + count, paper[1]));
        svg.band(one, other, GREY);
        for share in paper {
            let ends = (panel.at(start, share), panel.at(start + count, share));
            svg.line(ends.0, ends.1, GREY, "stroke-width=\"1.5\" stroke-dasharray=\"5 4\"");
        }
        for (program, point) in points.iter().enumerate() {
            let Some(shares) = point.fed[place].as_ref().and_then(degradations) else { continue };
            for (bar, (of, (_, colour))) in shares.into_iter().zip(key).enumerate() {
                let from = start + program as f64 + 0.1 + bar as f64 * 0.27;
                let at = |share: f64| (share * 100.0).clamp(0.0, high);
                svg.bar(panel.at(from, 0.0), panel.at(from + 0.24, at(of.median)), colour);
                let ends = [of.median - of.noise, of.median + of.noise]
                    .map(|share| panel.at(from + 0.12, at(share)));
                svg.line(ends[0], ends[1], GREY, "stroke-width=\"1\"");
            }
        }
    }
    svg.frame(&panel);
    svg.finish(title)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use fabric::FedZero;

    fn point(workload: &'static str, seconds: [f64; 3]) -> Point {
        let round = |seconds| FedRound {
            seconds,
            slower: Slower { median: seconds - 1.0, noise: 0.02 },
            page_mean_us: 2.0,
            page_p99_us: 3.0,
        };
        let [idle, once, closed] = seconds.map(round);
        let (times, record) = (vec![1.0], PathBuf::new());
        let zero = FedZero { seconds: 1.0, times, fetch_per_sec: 9e4, record };
        let fed = Fed { zero, idle, rounds: vec![once, closed], agreed: true };
        Point { workload, fed: vec![Some(fed); NETWORKS.len()] }
    }

    #[test]
    fn means_are_over_programs_and_want_all_of_them() {
        let mut points: Vec<Point> =
            WORKLOADS.iter().map(|(name, _)| point(name, [1.05, 1.14, 1.1])).collect();
        points[0] = point("wordcount", [1.13, 1.14, 1.1]);
        let [idle, once, closed] = means(&points)[0].expect("all of them");
        let near = |of: Slower, share: f64| (of.median - share).abs() < 1e-9;
        assert!(near(idle, 0.07) && near(once, 0.14) && near(closed, 0.1), "{idle:?} {once:?}");
        assert!((idle.noise - 0.01).abs() < 1e-9, "{idle:?}");
        points[3].fed[0] = None;
        assert_eq!(means(&points)[0], None);
        assert!(means(&points)[1].is_some());
        let report = report(&points);
        assert!(report.table.contains("14.0 ± 2.0 %") && report.table.contains(NONE));
        assert!(!report.picture.contains("NaN"));
    }

    #[test]
    fn verdicts_hold_for_the_papers_numbers_and_not_for_others() {
        let holds = |means: [[f64; 3]; 4]| -> Vec<bool> {
            let means = means.map(|all| Some(all.map(|median| Slower { median, noise: 0.01 })));
            verdicts(&means).iter().map(|verdict| verdict.holds).collect()
        };
        let paper =
            [[0.06, 0.14, 0.14], [0.05, 0.11, 0.11], [0.02, 0.05, 0.05], [0.01, 0.02, 0.02]];
        assert_eq!(holds(paper), [true; 8]);
        let other = [[0.14, 0.3, 0.1], [0.05, 0.01, 0.2], [0.02, 0.5, 0.5], [0.01, 0.1, 0.6]];
        assert_eq!(holds(other), [false, false, false, false, false, false, false, true]);
        let negative = [-0.02, -0.05, -0.05].map(|median| Slower { median, noise: 0.01 });
        let noise = verdicts(&[Some(negative); 4]);
        assert!(noise.iter().all(|verdict| !verdict.holds));
        assert!(verdicts(&[None; 4]).is_empty());
    }
}
