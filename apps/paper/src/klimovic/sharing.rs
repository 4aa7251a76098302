//! The cause of Fig. 7 at the block level: tenants of one drive whose writes come in bursts.
//!
//! The paper measures a key-value store, whose tail latency is caused by the drive. Here a tenant
//! does what such a store does to its drive: reads in an open loop, and now and then the flush of a
//! write buffer. Each tenant has a part of the drive of its own.

use chart::{BLUE, GREEN, ORANGE, PURPLE, SKY, Tick};
use console::layout::{NONE, kilo, row, table};
use diskload::{Device, LoadConfig, Order, Tally, Think};
use experiment::stats;
use measure::{Duration, Histogram};
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::{Bed, Drive};
use super::super::report::{Report, Verdict, median};
use super::super::way::Way;
use super::paper;
use disk::{Curve, Frame};

/// The tenants of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Case {
    /// One tenant, on a local drive.
    Direct,
    /// One tenant, over iSCSI like all that follow.
    Alone,
    /// Two tenants that write.
    Two,
    /// Three tenants that write.
    Three,
    /// One tenant that writes, and two that only read: the control.
    Readers,
}

/// The results of a case under a load: latencies of tenants that write, in each repetition.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Point {
    case: Case,
    /// Reads of each tenant, as a share of what the drive can serve.
    load: f64,
    tenant_iops: f64,
    latency: Vec<Latency>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Latency {
    mean_us: f64,
    p95_us: f64,
    p99_us: f64,
}

/// The drive of the paper: 20 channels, 250 000 reads per second. All tenants together never need
/// more than a third of its reads, so three times as much of it can be emulated.
pub(in super::super) const DRIVE: Drive =
    Drive { name: "p3600", channels: 20, channel_iops: 12_500.0, used: 0.33 };

const CASES: [Case; 5] = [Case::Direct, Case::Alone, Case::Two, Case::Three, Case::Readers];
/// Reads of each tenant as shares of the drive's; small, so that reads do not keep the drive busy.
const LOADS: [f64; 4] = [0.01, 0.03, 0.06, 0.09];
const TENANTS_MAX: usize = 3;
/// Bytes of a tenant's part of the drive.
const REGION: u64 = 64 << 20;
/// Bytes of a burst on the whole drive: the size of a write of workload C in Table 1.
const BURST_BYTES: u64 = 2 << 20;
const WRITE_BYTES: u32 = 16 << 10;
const WRITES_UNDER_WAY: u16 = 8;
/// Pause between two bursts. With a burst of 4 ms a tenant writes 2 MiB in 125 ms, which on a drive
/// of 400 GB is 40 MB/s per terabyte; workload A of Table 1 writes 50.
const PAUSE: Duration = Duration::from_ms(121);

impl Case {
    const fn name(self) -> &'static str {
        match self {
            Self::Direct => "own drive",
            Self::Alone => "alone",
            Self::Two => "2 writers",
            Self::Three => "3 writers",
            Self::Readers => "1 and 2 readers",
        }
    }

    const fn colour(self) -> &'static str {
        match self {
            Self::Direct => SKY,
            Self::Alone => BLUE,
            Self::Two => GREEN,
            Self::Three => ORANGE,
            Self::Readers => PURPLE,
        }
    }

    /// How many tenants there are.
    const fn tenants(self) -> usize {
        match self {
            Self::Direct | Self::Alone => 1,
            Self::Two => 2,
            Self::Three | Self::Readers => TENANTS_MAX,
        }
    }

    /// How many of them write.
    const fn writers(self) -> usize {
        match self {
            Self::Readers => 1,
            _ => self.tenants(),
        }
    }
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    bed.session.expect(CASES.len() * LOADS.len() * bed.repetitions);
    let opened = bed.open(None)?;
    let users = |way| -> Result<Vec<Device>, ReproduceError> {
        (0..2 * TENANTS_MAX).map(|_| opened.another(way)).collect()
    };
    let [local, iscsi] = [users(Way::Local)?, users(Way::Iscsi)?];
    let mut points = Vec::new();
    for case in CASES {
        points.extend(LOADS.map(|load| {
            let tenant_iops = load * bed.reads_per_second();
            Point { case, load, tenant_iops, latency: Vec::new() }
        }));
    }
    for repetition in 0..bed.repetitions {
        let mut turn: Vec<usize> = (0..points.len()).collect();
        if repetition % 2 == 1 {
            turn.reverse();
        }
        for index in turn {
            let point = &mut points[index];
            let users = if point.case == Case::Direct { &local } else { &iscsi };
            let Some(latency) = measure(bed, users, point, repetition)? else { break };
            point.latency.push(latency);
        }
    }
    points.retain(|point| !point.latency.is_empty());
    Ok((!points.is_empty()).then(|| report(&points)))
}

/// Measures a case under a load once; `None` if it was interrupted.
fn measure(
    bed: &mut Bed,
    users: &[Device],
    point: &Point,
    repetition: usize,
) -> Result<Option<Latency>, ReproduceError> {
    let what = format!("{}, {:.0} % load each", point.case.name(), point.load * 100.0);
    let (tenants, writers) = (point.case.tenants(), point.case.writers());
    // The reads of tenants that write come first, because only their latencies count.
    let seed = |tenant| 1 + repetition * TENANTS_MAX + tenant;
    let reads = (0..tenants).map(|tenant| bed.tenant(tenant, point.tenant_iops, seed(tenant)));
    let writes = (0..writers).map(|tenant| bed.bursts(tenant));
    let loads: Vec<_> = reads.chain(writes).zip(users.iter().cloned()).collect();
    let tallies = bed.session.together(&what, &loads)?;
    Ok(tallies.map(|tallies| Latency::of(&tallies[..writers])))
}

impl Bed {
    /// The reads of a tenant, `iops` per second.
    fn tenant(&self, tenant: usize, iops: f64, seed: usize) -> LoadConfig {
        let mut config = self.one_arriving(iops).config(REGION);
        config.region = region(tenant);
        config.seed = seed as u64;
        config
    }

    /// The bursts of writes of a tenant.
    fn bursts(&self, tenant: usize) -> LoadConfig {
        let writes = (self.share_of_bytes(BURST_BYTES) / u64::from(WRITE_BYTES)).max(1);
        LoadConfig {
            order: Order::Sequential,
            read_percent: 0,
            request_bytes: WRITE_BYTES,
            region: region(tenant),
            depth: WRITES_UNDER_WAY,
            think: Some(Think { time: PAUSE, requests: u32::try_from(writes).unwrap_or(u32::MAX) }),
            // Different delays, so that bursts of several tenants do not always coincide.
            delay: Duration::from_ps(PAUSE.as_ps() / TENANTS_MAX as u64 * tenant as u64),
            ..self.unloaded().config(REGION)
        }
    }
}

/// First byte and length of a tenant's part of the drive.
fn region(tenant: usize) -> [u64; 2] {
    [tenant as u64 * REGION, REGION]
}

impl Latency {
    /// The latencies of reads of all `tallies` together.
    fn of(tallies: &[Tally]) -> Self {
        let mut all = Histogram::new();
        tallies.iter().for_each(|tally| all.merge(&tally.reads.latency));
        let us = |duration: Duration| duration.as_ns_f64() / 1e3;
        let [p95_us, p99_us] = [0.95, 0.99].map(|q| us(all.quantile(q)));
        Self { mean_us: us(all.mean()), p95_us, p99_us }
    }

    // The median of each figure.
    fn median(all: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(all.iter().map(figure));
        Self {
            mean_us: of(|one| one.mean_us),
            p95_us: of(|one| one.p95_us),
            p99_us: of(|one| one.p99_us),
        }
    }
}

/// The median latencies of a case under a load.
fn find(points: &[Point], case: Case, load: f64) -> Option<Latency> {
    let point = points.iter().find(|point| (point.case, point.load) == (case, load))?;
    Some(Latency::median(&point.latency))
}

/// The ratio of a figure of two cases: the median over all loads.
fn ratio(points: &[Point], of: [Case; 2], figure: fn(&Latency) -> f64) -> Option<f64> {
    let at = |load| {
        let [one, other] = of.map(|case| find(points, case, load));
        Some(figure(&one?) / figure(&other?).max(1e-9))
    };
    stats::median(&mut LOADS.into_iter().filter_map(at).collect::<Vec<_>>())
}

/// The report from all points.
fn report(points: &[Point]) -> Report {
    Report {
        title: format!("{} 7, its cause: tenants that share a drive", paper::SOURCE),
        table: rows(points),
        verdicts: verdicts(points),
        picture: picture(points),
        points: json!(points),
        paper: json!({
            "p95_added_us": paper::P95_ADDED_US,
            "qps_average_lost": paper::AVERAGE_LOST,
            "qps_tail_lost_2_3": paper::TAIL_LOST,
        }),
    }
}

/// The table as text.
fn rows(points: &[Point]) -> String {
    let line =
        |load: &str, iops: &str, [a, b, c, d, e]: [&str; 5]| row([load, iops, a, b, c, d, e]);
    let mut rows = vec![
        line("load each", "IOPS each", CASES.map(Case::name)),
        line("", "", ["average / p95 / p99"; 5]),
    ];
    for load in LOADS {
        let iops = points.iter().find(|point| point.load == load);
        let Some(iops) = iops.map(|point| kilo(point.tenant_iops)) else { continue };
        let of = |case| {
            find(points, case, load).map_or_else(
                || NONE.to_owned(),
                |Latency { mean_us, p95_us, p99_us }| {
                    format!("{mean_us:.0} / {p95_us:.0} / {p99_us:.0}")
                },
            )
        };
        let cases = CASES.map(of);
        let load = format!("{:.0} %", load * 100.0);
        rows.push(line(&load, &iops, cases.each_ref().map(String::as_str)));
    }
    let mut text = table(&rows);
    text += "µs a read takes, of tenants that write; all but the first over iSCSI, of one drive.\n\
             The paper's figures are what a key-value store can do within a latency, these are\n\
             latencies at the same load.\n";
    text
}

/// The least ratio by which two bursty writers must lengthen the tail.
const LONGER: f64 = 1.10;
/// The largest part of the lengthening by writers that readers in their place may cause.
const CONTROL: f64 = 0.25;

fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let of = |case, figure| ratio(points, [case, Case::Alone], figure);
    let [mean, p95]: [fn(&Latency) -> f64; 2] = [|one| one.mean_us, |one| one.p95_us];
    let more = |ratio: f64| format!("{:+.0} %", (ratio - 1.0) * 100.0);
    let lost = |share: f64| format!("{:.0} %", share * 100.0);
    let [tail_2, tail_3] = paper::TAIL_LOST.map(lost);
    let mut verdicts = Vec::new();
    if let (Some(tail), Some(average)) = (of(Case::Two, p95), of(Case::Two, mean)) {
        let claim = format!(
            "two bursty writers: p95 {}, average {}, of a tenant alone over iSCSI; the tail has to \
             be {} at least, and more than the average; in the paper the tail costs {tail_2} of \
             the throughput, the average no more than alone ({})",
            more(tail),
            more(average),
            more(LONGER),
            lost(paper::AVERAGE_LOST)
        );
        verdicts.push(Verdict::new(tail >= LONGER && tail > average, claim));
    }
    if let (Some(three), Some(two)) = (of(Case::Three, p95), of(Case::Two, p95)) {
        let claim = format!(
            "three lengthen it more than two: p95 {} against {}; in the paper {tail_3} of the \
             throughput against {tail_2}",
            more(three),
            more(two)
        );
        verdicts.push(Verdict::new(three > two, claim));
    }
    if let (Some(three), Some(readers)) = (of(Case::Three, p95), of(Case::Readers, p95)) {
        let claim = format!(
            "writes are the cause: beside two that only read, p95 {}, against {} beside two that \
             write; {} of it is the most that may be, and the paper's tail is as alone",
            more(readers),
            more(three),
            lost(CONTROL)
        );
        verdicts.push(Verdict::new(readers - 1.0 <= CONTROL * (three - 1.0), claim));
    }
    let [direct, alone] =
        [Case::Direct, Case::Alone].map(|case| find(points, case, LOADS[0]).map(|one| one.p95_us));
    if let (Some(direct), Some(alone)) = (direct, alone) {
        let added = alone - direct;
        let claim = format!(
            "iSCSI adds {added:.0} µs to the p95 of a tenant alone, at the smallest load; the \
             paper's {:.0} µs (Fig. 4) at most",
            paper::P95_ADDED_US
        );
        verdicts.push(Verdict::new(added <= paper::P95_ADDED_US, claim));
    }
    verdicts
}

fn picture(points: &[Point]) -> String {
    let loads: Vec<Tick> =
        [0.0, 0.03, 0.06, 0.09].map(|at| (at, format!("{:.0} %", at * 100.0))).into();
    let frame = Frame {
        title: "Average and 95th percentile of read latency of tenants that share a drive",
        loads: "reads of each tenant, of what the drive can",
        latencies: "latency of a read, µs",
        axis: (0.1, loads),
        shown_us: (80.0, 1_000.0),
        bound_us: None,
        mark: None,
        note: "filled: average; hollow: 95th percentile; all but the first over iSCSI",
    };
    let curve = |case: Case| {
        let at = |load| {
            let Latency { mean_us, p95_us, .. } = find(points, case, load)?;
            Some(disk::Point { load, mean_us, p95_us })
        };
        let points = LOADS.into_iter().filter_map(at).collect();
        Curve { name: case.name(), colour: case.colour(), points }
    };
    disk::draw(&frame, &CASES.map(curve))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(p95_us: [f64; 5]) -> Vec<Point> {
        let case = |(case, p95_us): (Case, f64)| {
            LOADS.map(|load| {
                let one = Latency { mean_us: 100.0, p95_us, p99_us: 900.0 };
                let latency = vec![one, Latency { p95_us: p95_us + 1.0, ..one }, one];
                Point { case, load, tenant_iops: load * 1e5, latency }
            })
        };
        CASES.into_iter().zip(p95_us).flat_map(case).collect()
    }

    #[test]
    fn writers_lengthen_the_tail_and_readers_do_not() {
        let judged = verdicts(&points([90.0, 120.0, 150.0, 240.0, 130.0]));
        assert_eq!(judged.len(), 4, "{judged:?}");
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[0].claim.contains("p95 +25 %, average +0 %"), "{judged:?}");
        assert!(judged[3].claim.contains("adds 30 µs"), "{judged:?}");
    }

    #[test]
    fn readers_that_lengthen_it_are_no_control() {
        let judged = verdicts(&points([90.0, 400.0, 410.0, 405.0, 450.0]));
        assert!(judged.iter().all(|verdict| !verdict.holds), "{judged:?}");
        assert!(verdicts(&points([1.0; 5])[..4]).is_empty(), "nothing to compare");
    }

    #[test]
    fn every_case_is_shown() {
        let points = points([90.0, 120.0, 150.0, 240.0, 130.0]);
        let shown = rows(&points);
        assert!(shown.contains("100 / 240 / 900"), "{shown}");
        assert_eq!(shown.lines().filter(|line| line.contains('%')).count(), 4, "{shown}");
        assert_eq!(picture(&points).matches("<polyline").count(), 10);
    }

    #[test]
    fn regions_do_not_meet() {
        assert_eq!([region(0), region(2)], [[0, REGION], [2 * REGION, REGION]]);
    }
}
