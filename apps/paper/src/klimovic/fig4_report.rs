//! The report of Fig. 4, computed from its turns: table, verdicts and picture.

use console::layout::{NONE, count, row, table};
use serde_json::json;

use super::super::plot::{Axis, Chart, Kind, Series, draw};
use super::super::report::{Report, Verdict, median};
use super::fig4_scale::Scale;
use super::paper;
use crate::store::{Over, Reads, Step, Turn};

/// Largest difference of a share from the paper's that still agrees.
const POINTS: f64 = 0.10;
/// A comparison can discriminate only if the control keeps at most this share of local throughput,
const CONTROL_MOST: f64 = 0.85;
/// and the local store leaves at most this share of the processors idle.
const IDLE_MOST: f64 = 0.30;
/// The least share of local throughput that each target should keep,
const KEEPS: [(Over, f64); 2] = [(Over::Nvme, 0.95), (Over::Iscsi, 0.85)];
/// and the most that a target should add to the 95th percentile, in microseconds.
const ADDS_US: f64 = 60.0;
/// A likely reason of a larger loss than the paper's.
const SHARED: &str = "host, target and clients share the processors";

/// Selects a latency.
type Figure = fn(&Reads) -> f64;

const ALL: [Over; 4] = [Over::Local, Over::Nvme, Over::Iscsi, Over::Tgt];

/// The report of the figure.
pub(super) fn report(scale: &Scale, turns: &[Turn]) -> Report {
    Report {
        title: format!("{} 4: a key-value store on a local and a remote drive", paper::SOURCE),
        table: rows(turns),
        verdicts: verdicts(turns),
        picture: picture(scale, turns),
        points: json!(turns),
        paper: json!({
            "p95_added_us": paper::P95_ADDED_US,
            "qps_average_lost": paper::AVERAGE_LOST,
            "qps_tail_lost": paper::TAIL_LOST_ALONE,
        }),
    }
}

/// The median of a figure over the turns of one way; `None` if there are none.
fn of(turns: &[Turn], over: Over, figure: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> =
        turns.iter().filter(|turn| turn.over == over).filter_map(figure).collect();
    (!values.is_empty()).then(|| median(values))
}

/// The points of a way, one for each rate: answered requests per second, and a latency.
fn curve(turns: &[Turn], over: Over, figure: Figure) -> Vec<(f64, f64)> {
    let first = turns.iter().find(|turn| turn.over == over);
    let mut rates: Vec<f64> =
        first.iter().flat_map(|turn| &turn.steps).map(|step| step.asked_per_s).collect();
    // Turns have different orders of rates.
    rates.sort_by(f64::total_cmp);
    let at = |rate: f64, figure: Figure| {
        let step = |turn: &Turn| turn.steps.iter().find(|step| step.asked_per_s == rate).copied();
        of(turns, over, |turn| step(turn).map(|step: Step| figure(&step.reads)))
    };
    let point = |rate| Some((at(rate, |reads| reads.per_s)?, at(rate, figure)?));
    rates.into_iter().filter_map(point).collect()
}

/// The highest throughput at which a latency is within a bound, interpolated logarithmically
/// between the last point within it and the next one; 0 if no point is within it.
fn within(points: &[(f64, f64)], bound: f64) -> f64 {
    let Some(last) = points.iter().rposition(|&(_, latency)| latency <= bound) else { return 0.0 };
    let (from, low) = points[last];
    points.get(last + 1).map_or(from, |&(rate, latency)| {
        let part = (bound / low).ln() / (latency / low).ln();
        from + (rate - from).max(0.0) * part.clamp(0.0, 1.0)
    })
}

/// The throughput of a way within a bound, as a share of the local store's.
fn share(turns: &[Turn], over: Over, figure: Figure, bound: f64) -> Option<f64> {
    let local = within(&curve(turns, Over::Local, figure), bound);
    let points = curve(turns, over, figure);
    (local > 0.0 && !points.is_empty()).then(|| within(&points, bound) / local)
}

/// The highest throughput of a way.
fn peak(turns: &[Turn], over: Over) -> Option<f64> {
    of(turns, over, |turn| Some(turn.peak.reads.per_s))
}

/// The highest throughput of a way, as a share of the local store's.
fn of_local(turns: &[Turn], over: Over) -> Option<f64> {
    Some(peak(turns, over)? / peak(turns, Over::Local)?.max(1e-9))
}

/// The table as text.
fn rows(turns: &[Turn]) -> String {
    let mut rows = vec![row([
        "",
        "unloaded: average",
        "p95",
        "p99",
        "most/s",
        "of local",
        "average",
        "p95",
        "p99",
        "host",
        "target",
        "busy",
        "cached",
    ])];
    let shown =
        |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| NONE.to_owned(), text);
    for over in ALL {
        if !turns.iter().any(|turn| turn.over == over) {
            continue;
        }
        let us = |figure: fn(&Turn) -> f64| {
            shown(of(turns, over, |turn| Some(figure(turn))), |us| format!("{us:.0}"))
        };
        let percent = |value| shown(value, |share| format!("{:.0} %", share * 100.0));
        let cells: Vec<String> = vec![
            over.name().to_owned(),
            us(|turn| turn.unloaded.mean_us),
            us(|turn| turn.unloaded.p95_us),
            us(|turn| turn.unloaded.p99_us),
            shown(peak(turns, over), whole),
            percent(of_local(turns, over)),
            us(|turn| turn.peak.reads.mean_us),
            us(|turn| turn.peak.reads.p95_us),
            us(|turn| turn.peak.reads.p99_us),
            us(|turn| turn.peak.spent.host_us),
            us(|turn| turn.peak.spent.target_us),
            percent(of(turns, over, |turn| Some(turn.peak.spent.busy))),
            percent(of(turns, over, |turn| turn.cached)),
        ];
        rows.push(cells);
    }
    let mut text = table(&rows);
    text += "Latencies of reads, and processor time of host (store, and what reaches the drive)\n\
             and target for each request, in µs; busy: programs, of all processors. Host, target\n\
             and clients share them here, and have machines of their own in the paper. Cached:\n\
             gets for which no block came from the drive, at least. Over tgt the drive is a file\n\
             that it reads through FUSE.\n";
    let steps = turns.iter().flat_map(|turn| turn.steps.iter().chain([&turn.peak]));
    let disturbed = steps.filter(|step| step.spent.is_disturbed()).count();
    if disturbed > 0 {
        text += &format!("Of {disturbed} loads other guests of the machine took processor time.\n");
    }
    text
}

/// A rate rounded to a whole number, as text.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> String {
    count(rate.round() as u64)
}

/// Why ways cannot be compared on this machine; `None` if they can.
fn blind(turns: &[Turn]) -> Option<&'static str> {
    let Some(control) = of_local(turns, Over::Tgt) else {
        return Some("it cannot discriminate: there is no control (Debian's package tgt)");
    };
    let busy = of(turns, Over::Local, |turn| Some(turn.peak.spent.busy)).unwrap_or(0.0);
    if 1.0 - busy > IDLE_MOST {
        return Some(
            "it cannot discriminate: the local store leaves more than 30 % of the processors idle",
        );
    }
    (control > CONTROL_MOST)
        .then_some("it cannot discriminate: tgt, the control, keeps more than 85 % of local, too")
}

fn verdicts(turns: &[Turn]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let blind = blind(turns);
    let gap = |holds, claim, why: &str| match blind {
        Some(blind) => Verdict::undecided(claim, blind),
        None => Verdict::because(holds, claim, why),
    };
    let p95 = |over| of(turns, over, |turn| Some(turn.unloaded.p95_us));
    for over in [Over::Iscsi, Over::Nvme] {
        let Some(added) = p95(over).zip(p95(Over::Local)).map(|(one, local)| one - local) else {
            continue;
        };
        let claim = format!(
            "{} adds {added:.0} µs to the p95 of an unloaded read; {ADDS_US:.0} µs at most, where \
             the paper's iSCSI added {:.0}",
            over.name(),
            paper::P95_ADDED_US
        );
        verdicts.push(Verdict::new(added <= ADDS_US, claim));
    }
    let [mean, tail]: [(Figure, _, _); 2] = [
        (|reads| reads.mean_us, ("average", paper::AVERAGE_BOUND_US), paper::AVERAGE_LOST),
        (|reads| reads.p95_us, ("95th percentile", paper::TAIL_BOUND_US), paper::TAIL_LOST_ALONE),
    ];
    for (figure, (name, bound), paper) in [mean, tail] {
        let Some(lost) = share(turns, Over::Iscsi, figure, bound).map(|share| 1.0 - share) else {
            continue;
        };
        let claim = format!(
            "iSCSI loses {:.0} % of the throughput at which the {name} stays within {} ms, as the \
             paper's services ask for; the paper's {:.0} %, to {:.0} points",
            lost * 100.0,
            bound / 1e3,
            paper * 100.0,
            POINTS * 100.0
        );
        let why = match lost < paper {
            true => {
                "an initiator and a target with a queue for each processor cost less than in 2016"
            }
            false => SHARED,
        };
        verdicts.push(gap((lost - paper).abs() <= POINTS, claim, why));
    }
    for (over, least) in KEEPS {
        let Some(kept) = of_local(turns, over) else { continue };
        let claim = format!(
            "{} keeps {:.0} % of the local store's most; {:.0} % at least",
            over.name(),
            kept * 100.0,
            least * 100.0
        );
        verdicts.push(gap(kept >= least, claim, SHARED));
    }
    verdicts
}

fn picture(scale: &Scale, turns: &[Turn]) -> String {
    let present = || ALL.into_iter().filter(|&over| turns.iter().any(|turn| turn.over == over));
    let series = |over: Over, points| Series {
        name: over.name().to_owned(),
        colour: over.colour(),
        points,
        kind: Kind::Ours,
    };
    let quantiles: [(f64, Figure); 5] = [
        (50.0, |reads| reads.p50_us),
        (90.0, |reads| reads.p90_us),
        (95.0, |reads| reads.p95_us),
        (99.0, |reads| reads.p99_us),
        (99.9, |reads| reads.p999_us),
    ];
    let unloaded = |over: Over| {
        let point = |(percent, figure): (f64, Figure)| {
            Some((of(turns, over, |turn| Some(figure(&turn.unloaded)))?, percent))
        };
        series(over, quantiles.into_iter().filter_map(point).collect())
    };
    let [mean, p95]: [Figure; 2] = [|reads| reads.mean_us, |reads| reads.p95_us];
    let most = present().flat_map(|over| curve(turns, over, mean)).map(|(rate, _)| rate);
    let most = most.fold(1.0, f64::max);
    let against = |title: &str, figure: Figure| Chart {
        title: title.to_owned(),
        x: Axis::from_zero("requests answered per second", most),
        y: Axis::decades("latency of a read, µs", 100.0, 100_000.0),
        series: present().map(|over| series(over, curve(turns, over, figure))).collect(),
    };
    let charts = [
        Chart {
            title: "(a) one client, nothing else: distribution".to_owned(),
            x: Axis::decades("latency of a read, µs", 10.0, 10_000.0),
            y: Axis::from_zero("reads within it, %", 100.0),
            series: present().map(unloaded).collect(),
        },
        against("(b) average against throughput", mean),
        against("(b) 95th percentile against throughput", p95),
    ];
    let mut caption = vec![format!(
        "The drive is an emulated Intel P3600, of which there are {} of 20 channels, so that the \
         processors of one machine, which host, target and clients share, keep it busy. Data and \
         block cache are a hundredth of the paper's.",
        scale.channels
    )];
    caption.extend(blind(turns).map(|why| format!("Of gaps nothing can be said: {why}.")));
    draw("A key-value store on a local and a remote drive", &charts, 3, &caption)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Spent;

    fn turn(over: Over, factor: f64, added_us: f64, busy: f64) -> Turn {
        let reads = |per_s: f64, us: f64| Reads {
            count: 10,
            per_s,
            mean_us: us,
            p50_us: us,
            p90_us: us * 1.5,
            p95_us: us * 2.0,
            p99_us: us * 3.0,
            p999_us: us * 4.0,
        };
        let spent = Spent { host_us: 50.0, target_us: 5.0, busy, stolen: 0.0 };
        // A queue: what is asked for, of what it can.
        let step = |asked: f64| {
            let most = 1000.0 * factor;
            let load = (asked / most).min(0.99);
            let reads = reads(asked.min(most), (100.0 + added_us) / (1.0 - load));
            Step { asked_per_s: asked, reads, spent }
        };
        Turn {
            over,
            repetition: 0,
            unloaded: reads(10.0, 100.0 + added_us),
            peak: Step { asked_per_s: 0.0, reads: reads(1000.0 * factor, 900.0), spent },
            steps: [200.0, 400.0, 600.0, 700.0, 800.0, 900.0, 1000.0].map(step).into(),
            cached: Some(0.12),
        }
    }

    fn as_printed() -> Vec<Turn> {
        vec![
            turn(Over::Local, 1.0, 0.0, 0.8),
            turn(Over::Nvme, 0.97, 10.0, 0.9),
            turn(Over::Iscsi, 0.86, 15.0, 0.9),
            turn(Over::Tgt, 0.6, 100.0, 0.9),
        ]
    }

    #[test]
    fn a_bound_is_reached_between_two_points() {
        let points = [(100.0, 10.0), (200.0, 10.0), (300.0, 1000.0)];
        assert_eq!(within(&points, 100.0), 250.0);
        assert_eq!(within(&points, 5.0), 0.0);
        assert_eq!(within(&points, 2000.0), 300.0);
        assert_eq!(within(&points, 10.0), 200.0);
        // A flush in between is no end.
        assert_eq!(within(&[(1.0, 1.0), (2.0, 9.0), (3.0, 2.0)], 2.0), 3.0);
        // A server that is asked for too much answers fewer: it never counts as more.
        assert_eq!(within(&[(200.0, 10.0), (150.0, 1000.0)], 100.0), 200.0);
    }

    #[test]
    fn what_the_paper_prints_holds() {
        let judged = verdicts(&as_printed());
        assert_eq!(judged.len(), 6, "{judged:?}");
        let average = judged.iter().find(|one| one.claim.contains("the average")).expect("it is");
        assert!(average.holds, "{average:?}");
        assert!(judged.iter().all(|one| one.decided().is_some()), "{judged:?}");
        assert!(judged[4].holds && judged[5].holds, "{judged:?}");
    }

    #[test]
    fn a_target_that_costs_nothing_refutes_it() {
        let mut turns = as_printed();
        turns[2] = turn(Over::Iscsi, 1.0, 0.0, 0.8);
        let judged = verdicts(&turns);
        let average = judged.iter().find(|one| one.claim.contains("the average")).expect("it is");
        assert!(!average.holds && average.claim.contains("likely because"), "{average:?}");
    }

    #[test]
    fn without_a_control_that_shows_it_nothing_is_said_of_gaps() {
        let undecided =
            |turns: &[Turn]| verdicts(turns).iter().filter(|one| one.decided().is_none()).count();
        assert_eq!(undecided(&as_printed()), 0);
        assert_eq!(undecided(&as_printed()[..3]), 4, "no control");
        let mut good = as_printed();
        good[3] = turn(Over::Tgt, 0.9, 0.0, 0.9);
        assert_eq!(undecided(&good), 4, "a control without a gap");
        let mut idle = as_printed();
        idle[0] = turn(Over::Local, 1.0, 0.0, 0.6);
        assert_eq!(undecided(&idle), 4, "processors that are idle");
        let judged = verdicts(&idle);
        assert!(judged[0].decided().is_some(), "what one client feels is no gap in throughput");
    }

    #[test]
    fn every_way_is_shown() {
        let turns = as_printed();
        let shown = rows(&turns);
        assert_eq!(shown.lines().filter(|line| line.contains(" 12 %")).count(), 4, "{shown}");
        let scale = Scale { channels: 3, base_per_s: 1e3, busy: 0.8 };
        let drawn = picture(&scale, &turns);
        assert_eq!(drawn.matches("<polyline").count(), 12);
        assert!(drawn.contains("3 of 20 channels"), "{drawn}");
        assert!(!drawn.contains("NaN"), "{drawn}");
        let blind = picture(&scale, &turns[..3]);
        assert!(blind.contains("cannot discriminate"), "{blind}");
    }
}
