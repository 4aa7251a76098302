//! The report of Figure 8, computed from its points: table, caption, verdicts and record.

use console::layout::{NONE, table};
use experiment::stats;
use fabric::{Fed, FedPage, FedRound, Slower};
use results::Estimate;
use serde_json::{Value, json};

use super::fig8_case::{NETWORKS, Network, Point, degradations, rounds};
use super::fig8_picture;
use super::published;
use super::workloads::WORKLOADS;
use crate::report::{Report, Verdict};

/// The paper's ratio of degradation with queueing to that without, at 40 Gb/s (§4.4).
const TIMES: (f64, f64) = (2.0, 3.0);
/// Thousand pages per second that a node of the paper's cluster swapped in, the lowest and highest
/// of five applications: reads over run time without delay (data of Gao et al., §3).
const PAPER_RATES: (u32, u32) = (6, 79);

const WHY_FEW: &str = "so few runs have no interval";
const WHY_HELD: &str = "the interval holds an end of what is claimed";

/// Degradations by run, averaged over programs: with an idle network, fed back once, and closed.
type Runs = [Vec<f64>; 3];

/// The mean degradations over workloads in each network, run by run; `None` where a workload is
/// missing.
fn means(points: &[Point]) -> [Option<Runs>; 4] {
    std::array::from_fn(|network| {
        let all: Option<Vec<[&FedRound; 3]>> =
            points.iter().map(|point| rounds(point.fed[network].as_ref()?)).collect();
        let all = all.filter(|all| all.len() == WORKLOADS.len())?;
        Some(std::array::from_fn(|of| {
            let count = all.iter().map(|rounds| rounds[of].shares.len()).min().unwrap_or(0);
            let mean = |run: usize| {
                all.iter().map(|rounds| rounds[of].shares[run]).sum::<f64>() / all.len() as f64
            };
            (0..count).map(mean).collect()
        }))
    })
}

/// The report of the figure.
pub(super) fn report(points: &[Point]) -> Report {
    let means = means(points);
    let title = "Gao et al. 2016, Fig. 8: applications under completion times of the network";
    let caption = caption(points);
    Report {
        title: title.to_owned(),
        table: format!("{}\n{}{caption}", rows(points, &means), disturbed(points)),
        verdicts: verdicts(points, &means),
        picture: fig8_picture::draw(title, points, &caption),
        points: record(points),
        paper: json!(NETWORKS.map(|network| json!({"rate": network.rate, "scale": network.scale,
            "degradation": [network.paper.0, network.paper.1],
            "page_us": published::page(network.rate, network.scale).map(|page| page.us)}))),
    }
}

/// A sentence about disturbed runs; empty if there are none.
fn disturbed(points: &[Point]) -> String {
    let fed = points.iter().flat_map(|point| point.fed.iter().flatten());
    let rounds: Vec<&FedRound> =
        fed.flat_map(|fed| [&fed.idle].into_iter().chain(&fed.rounds)).collect();
    let mut all = rounds.iter().filter_map(|round| round.disturbed.as_ref());
    match all.next() {
        None => String::new(),
        Some(first) => format!(
            "In {} of {} rounds runs were disturbed, the first time because {first}. ",
            all.count() + 1,
            rounds.len()
        ),
    }
}

const COLUMNS: [&str; 15] = [
    "program",
    "rate",
    "scale",
    "s",
    "idle",
    "once",
    "reads",
    "closed",
    "page µs",
    "p99",
    "queued µs",
    "p99",
    "reads µs",
    "p99",
    "agreed",
];

/// The table as text.
fn rows(points: &[Point], means: &[Option<Runs>; 4]) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    for point in points {
        for (network, fed) in NETWORKS.iter().zip(&point.fed) {
            let mut row = [point.workload, network.rate, network.scale].map(str::to_owned).to_vec();
            row.extend(cells(fed.as_ref()));
            rows.push(row);
        }
    }
    for (network, mean) in NETWORKS.iter().zip(means) {
        let mut row = ["mean", network.rate, network.scale, ""].map(str::to_owned).to_vec();
        let shown = mean.as_ref().map_or_else(
            || [NONE; 3].map(str::to_owned),
            |mean| mean.each_ref().map(|runs| interval(runs)),
        );
        let [idle, once, closed] = shown;
        row.extend([idle, once, String::new(), closed]);
        rows.push(row);
    }
    table(&rows)
}

/// The cells of a row after its network.
fn cells(fed: Option<&Fed>) -> [String; 12] {
    let known = fed.and_then(|fed| Some((fed, degradations(fed)?, fed.rounds.first()?)));
    let Some((fed, [idle, once, closed], first)) = known else {
        return [NONE; 12].map(str::to_owned);
    };
    let us = |page: FedPage| [page.mean_us, page.p99_us].map(|us| format!("{us:.2}"));
    let [[alone, alone_p99], [queued, queued_p99], [reads, reads_p99]] =
        [fed.idle.page, first.page, fed.reads.page].map(us);
    [
        format!("{:.3}", fed.zero.seconds),
        share(idle),
        share(once),
        fed.reads.slower.map_or_else(|| NONE.to_owned(), share),
        share(closed),
        alone,
        alone_p99,
        queued,
        queued_p99,
        reads,
        reads_p99,
        if fed.agreed { "yes" } else { "no" }.to_owned(),
    ]
}

/// The caption: what columns show, and which causes were tested.
fn caption(points: &[Point]) -> String {
    let fed = || points.iter().flat_map(|point| point.fed.iter().flatten());
    let rates = points.iter().flat_map(|point| point.fed.iter().flatten().take(1));
    let rates: Vec<f64> = rates.map(|fed| fed.zero.fetch_per_sec / 1e3).collect();
    let low = rates.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let high = rates.iter().copied().reduce(f64::max).unwrap_or(0.0);
    let longer = |of: fn(&Fed) -> Option<f64>| {
        let all: Vec<f64> = fed().filter_map(of).collect();
        percent(all.iter().sum::<f64>() / all.len().max(1) as f64 - 1.0)
    };
    let with = longer(|fed| fed.rounds.first().map(|one| one.page.mean_us / one.alone.mean_us));
    let without =
        longer(|fed| fed.rounds.first().map(|one| fed.reads.page.mean_us / one.alone.mean_us));
    let tail = longer(|fed| fed.rounds.first().map(|one| one.page.p99_us / one.alone.p99_us));
    format!(
        "Slower than without delay. Idle: pages take as long as alone in the network; once: as \
         long as in the\ntraffic of the program without delay, as in the paper; closed: as in the \
         traffic under these delays;\nreads: once, had nothing been written back. Page: alone; \
         queued: once; both since the reader asked.\n\
         They fetch {low:.0} to {high:.0} thousand pages a second without delay; those of the \
         paper {} to {} thousand on each node,\nby the swap volumes its authors published.\n\
         Tested causes: queueing lengthens a page's time by {with} on average, its 99th percentile \
         by {tail}, beside the same\npages alone; without write-backs it is {without}. Rack or \
         datacenter and the rate of links are tested by the rows.\nNot tested: batches (programs \
         here wait for one page before they ask for the next, where the swap device of the\npaper \
         was given batches); disks (no program here reads or writes a file).\n",
        PAPER_RATES.0, PAPER_RATES.1
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A degradation with its noise as text.
fn share(of: Slower) -> String {
    format!("{:.1} ± {:.1} %", of.median * 100.0, of.noise * 100.0)
}

/// The estimate of shares, in percent.
fn estimate(shares: &[f64]) -> Option<Estimate> {
    stats::estimate(&shares.iter().map(|share| share * 100.0).collect::<Vec<_>>())
}

/// The estimate of shares as text, in percent.
fn interval(shares: &[f64]) -> String {
    estimate(shares).map_or_else(|| NONE.to_owned(), |one| format!("{} %", one.text(1)))
}

/// The verdict whether an estimate lies between two values with its whole interval.
fn between(of: Option<Estimate>, (low, high): (f64, f64), claim: String) -> Verdict {
    match of.and_then(|of| of.ends()) {
        None => Verdict::undecided(claim, WHY_FEW),
        Some((least, most)) if low <= least && most <= high => Verdict::new(true, claim),
        Some((least, most)) if most < low || high < least => Verdict::new(false, claim),
        Some(_) => Verdict::undecided(claim, WHY_HELD),
    }
}

fn verdicts(points: &[Point], means: &[Option<Runs>; 4]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (network, mean) in NETWORKS.iter().zip(means) {
        verdicts.extend(mean.as_ref().map(|[_, once, closed]| near(network, once, closed)));
    }
    for (place, rate) in [(0, "40Gbps"), (2, "100Gbps")] {
        if let (Some(far), Some(rack)) = (&means[place], &means[place + 1]) {
            let claim = format!(
                "at {rate} clusters in racks are slower by {} on average, across the datacenter by \
                 {}; in the paper racks contain it",
                interval(&rack[2]),
                interval(&far[2])
            );
            verdicts.push(below(&rack[2], &far[2], claim));
        }
    }
    if let (Some(slow), Some(fast)) = (&means[0], &means[2]) {
        let claim = format!(
            "across the datacenter programs are slower by {} at 40 Gb/s and by {} at 100 Gb/s; \
             the paper concludes that 100 Gb/s are required",
            interval(&slow[2]),
            interval(&fast[2])
        );
        verdicts.push(below(&fast[2], &slow[2], claim));
        verdicts.push(times(slow));
    }
    for (place, network) in NETWORKS.iter().enumerate() {
        verdicts.extend(pages(points, (place, network)));
    }
    verdicts
}

/// The verdict whether `one` is less than `other`, run by run.
fn below(one: &[f64], other: &[f64], claim: String) -> Verdict {
    let more: Vec<f64> = one.iter().zip(other).map(|(one, other)| other - one).collect();
    between(stats::estimate(&more), (f64::MIN_POSITIVE, f64::INFINITY), claim)
}

/// The verdict on the ratio of degradation with queueing to that with an idle network.
fn times([idle, once, _]: &Runs) -> Verdict {
    // A run that is faster under delay only shows that the machine was busy.
    let is_slower = idle.iter().all(|share| *share > 0.0);
    let ratios: Vec<f64> = once.iter().zip(idle).map(|(once, idle)| once / idle).collect();
    let ratio = stats::estimate(&ratios).filter(|_| is_slower);
    let claim = format!(
        "at 40 Gb/s across the datacenter queueing makes degradation {} times that of an idle \
         network; the paper has {:.0} to {:.0}",
        ratio.map_or_else(|| NONE.to_owned(), |ratio| ratio.text(2)),
        TIMES.0,
        TIMES.1
    );
    between(ratio, TIMES, claim)
}

/// The verdict whether the degradation is within a factor of 2 of the paper's.
fn near(network: &Network, once: &[f64], closed: &[f64]) -> Verdict {
    let Network { rate, scale, paper: (low, high) } = *network;
    let paper = match low == high {
        true => percent(low),
        false => format!("{} to {}", percent(low), percent(high)),
    };
    let claim = format!(
        "at {rate}, {scale}: slower by {} with traffic fed back once ({} closed); the paper has \
         {paper} (criterion: within a factor of 2 of that)",
        interval(once),
        interval(closed)
    );
    between(stats::estimate(once), (low / 2.0, high * 2.0), claim)
}

/// The verdict whether completion times of pages agree with those of the paper.
fn pages(points: &[Point], (place, network): (usize, &Network)) -> Option<Verdict> {
    let page = published::page(network.rate, network.scale)?;
    let fed = points.iter().filter_map(|point| point.fed[place].as_ref()?.rounds.first());
    let all: Vec<f64> = fed.map(|round| round.page.mean_us).collect();
    let least = all.iter().copied().reduce(f64::min)?;
    let most = all.iter().copied().reduce(f64::max)?;
    let claim = format!(
        "at {}, {}: pages take {least:.3} to {most:.3} µs, by program; the paper fed back {} to {} \
         µs (criterion: within {:.0} % of these)",
        network.rate,
        network.scale,
        page.us.0,
        page.us.1,
        page.near * 100.0
    );
    Some(Verdict::new(page.is_near(least) && page.is_near(most), claim))
}

/// All points for the record.
fn record(points: &[Point]) -> Value {
    let page = |page: FedPage| json!({"mean_us": page.mean_us, "p99_us": page.p99_us});
    let slower = |of: Slower| json!({"degradation": of.median, "noise": of.noise});
    let round = |round: &FedRound| {
        json!({"seconds": round.seconds, "degradation": round.slower.median,
            "noise": round.slower.noise, "degradations": round.shares, "disturbed": round.disturbed,
            "page_mean_us": round.page.mean_us, "page_p99_us": round.page.p99_us,
            "alone": page(round.alone)})
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
            "without_write_backs": fed.as_ref().map(|fed| {
                json!({"page": page(fed.reads.page), "slower": fed.reads.slower.map(slower)})
            }),
            "agreed": fed.as_ref().map(|fed| fed.agreed),
        })
    };
    let all = points.iter().flat_map(|point| {
        NETWORKS.iter().zip(&point.fed).map(|(network, fed)| one(point.workload, network, fed))
    });
    Value::Array(all.collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use fabric::{FedReads, FedZero};

    /// Five runs, each a thousandth slower than the one before.
    fn runs(share: f64) -> Vec<f64> {
        (0..5).map(|run| share + f64::from(run - 2) * 1e-3).collect()
    }

    fn point(workload: &'static str, shares: [f64; 3]) -> Point {
        let page = |mean_us| FedPage { mean_us, p99_us: 3.0 * mean_us };
        let round = |share: f64| FedRound {
            seconds: 1.0 + share,
            slower: Slower { median: share, noise: 0.02 },
            shares: runs(share),
            disturbed: (share > 0.135).then(|| "other programs kept 9 % busy".to_owned()),
            page: page(2.2),
            alone: page(2.0),
        };
        let [idle, once, closed] = shares.map(round);
        let (times, record) = (vec![1.0], PathBuf::new());
        let zero = FedZero { seconds: 1.0, times, fetch_per_sec: 9e4, record };
        let reads = FedReads { page: page(2.1), slower: None };
        let fed = Fed { zero, idle, rounds: vec![once, closed], reads, agreed: true };
        Point { workload, fed: vec![Some(fed); NETWORKS.len()] }
    }

    #[test]
    fn means_are_over_programs_and_want_all_of_them() {
        let mut points: Vec<Point> =
            WORKLOADS.iter().map(|(name, _)| point(name, [0.05, 0.14, 0.1])).collect();
        points[0] = point("wordcount", [0.13, 0.14, 0.1]);
        let [idle, once, closed] = means(&points)[0].clone().expect("all of them");
        let near = |runs: &[f64], share: f64| (runs[2] - share).abs() < 1e-9 && runs.len() == 5;
        assert!(near(&idle, 0.07) && near(&once, 0.14) && near(&closed, 0.1), "{idle:?} {once:?}");
        points[3].fed[0] = None;
        assert_eq!(means(&points)[0], None);
        assert!(means(&points)[1].is_some());
        let report = report(&points);
        assert!(report.table.contains("14.0 [13.8, 14.2] %") && report.table.contains(NONE));
        let said = "In 15 of 45 rounds runs were disturbed, the first time because other programs";
        assert!(report.table.contains(said), "{}", report.table);
        assert!(!report.picture.contains("NaN"));
    }

    #[test]
    fn queueing_is_told_with_and_without_write_backs() {
        let points: Vec<Point> =
            WORKLOADS.iter().map(|(name, _)| point(name, [0.05, 0.14, 0.1])).collect();
        let caption = caption(&points);
        assert!(caption.contains("by 10.0 % on average"), "{caption}");
        assert!(caption.contains("without write-backs it is 5.0 %"), "{caption}");
    }

    fn decided(means: [[f64; 3]; 4]) -> Vec<Option<bool>> {
        let means = means.map(|all| Some(all.map(runs)));
        verdicts(&[], &means).iter().map(Verdict::decided).collect()
    }

    #[test]
    fn verdicts_hold_for_the_papers_numbers_and_not_for_others() {
        let paper =
            [[0.06, 0.14, 0.14], [0.05, 0.11, 0.11], [0.02, 0.05, 0.05], [0.01, 0.02, 0.02]];
        assert_eq!(decided(paper), [Some(true); 8]);
        let other = [[0.14, 0.3, 0.1], [0.05, 0.01, 0.2], [0.02, 0.5, 0.5], [0.01, 0.1, 0.6]];
        let [holds, not] = [Some(true), Some(false)];
        // The last ratio is 2.1 to 2.2.
        assert_eq!(decided(other), [not, not, not, not, not, not, not, holds]);
        assert!(verdicts(&[], &[None, None, None, None]).is_empty());
    }

    #[test]
    fn what_runs_do_not_decide_is_undecided() {
        // Either end of an interval is beyond what the paper has.
        let near = [0.06, 0.28, 0.14];
        assert_eq!(decided([near; 4])[0], None);
        // Of one run there is no interval.
        let one = [0.06, 0.14, 0.14].map(|share| vec![share]);
        let few = verdicts(&[], &[0; 4].map(|_| Some(one.clone())));
        assert!(few.iter().all(|verdict| verdict.undecided == Some(WHY_FEW)), "{few:?}");
        // Faster under delay than without.
        let negative = decided([[-0.02, -0.05, -0.05]; 4]);
        assert!(negative.iter().all(|decided| *decided != Some(true)), "{negative:?}");
    }

    #[test]
    fn pages_are_held_against_the_papers() {
        let points: Vec<Point> =
            WORKLOADS.iter().map(|(name, _)| point(name, [0.05, 0.14, 0.1])).collect();
        let of = |place: usize| pages(&points, (place, &NETWORKS[place])).expect("published");
        // 2.2 µs: 3 % under 2.268 at 100 Gb/s across the datacenter, and above a rack's.
        assert!(of(2).holds && !of(3).holds && !of(0).holds, "{:?}", of(2));
    }
}
