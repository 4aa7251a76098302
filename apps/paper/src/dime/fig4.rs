//! Fig. 4: Redis and memcached over latency, bandwidth and local memory.
//!
//! A fault takes 2δ + P/B, and an operation has f faults. So at one share of local memory the time
//! of an operation should be a line over 2δ + P/B with the slope f. The line is fitted, and its
//! slope compared with the number of faults.

use chart::{BLUE, GREEN, ORANGE, PURPLE};
use console::layout::{kilo, row, table};
use serde_json::{Value, json};

use super::grid::{FULL, Grid, QUICK, cell, cells, fills};
use super::paper;
use super::servers::{Amount, PROGRAMS, Server};
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::programs;
use crate::programs::{BLOCKS, Outcome, Program, Runs};
use crate::report::{Report, Verdict};
use crate::whole::wholes;
use crate::{Measured, ReproduceError};
use experiment::fit::{Line, explained};

/// Bits of a page on the link.
const PAGE_BITS: f64 = 4096.0 * 8.0;
/// The least share of the variance that the lines must explain (R²).
const EXPLAINED: f64 = 0.99;
/// Largest deviation of a fitted slope from the counted faults, as a share.
const SLOPE_OFF: f64 = 0.10;
/// Differences of throughput below this share are noise.
const NOISE: f64 = 0.03;
const COLOURS: [&str; 4] = [BLUE, ORANGE, GREEN, PURPLE];

/// The results of one server in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    one_way_us: f64,
    gbps: u32,
    local: u32,
    per_s: f64,
    /// Counted faults per request, without those of filling the server; `None` if not known.
    faults_per_op: Option<f64>,
}

/// The fit at one share of local memory: points of (delay, time per operation) and their line.
#[derive(Debug)]
struct Fitted {
    local: u32,
    line: Line,
    points: Vec<(f64, f64)>,
}

/// The results of one server.
#[derive(Debug)]
struct Grown {
    server: Server,
    points: Vec<Point>,
}

impl Point {
    /// The duration of a fault: 2δ + P/B.
    fn delay_us(&self) -> f64 {
        2.0 * self.one_way_us + PAGE_BITS / (f64::from(self.gbps) * 1e3)
    }

    /// The time of an operation.
    fn op_us(&self) -> f64 {
        1e6 / self.per_s
    }

    fn name(&self) -> String {
        let Self { one_way_us, gbps, local, .. } = self;
        format!("{one_way_us} µs, {gbps} Gb/s, {local} % local")
    }
}

impl Grown {
    /// The points at one share of local memory.
    fn local(&self, local: u32) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.local == local)
    }

    /// All shares of local memory, ascending.
    fn locals(&self) -> Vec<u32> {
        let mut locals: Vec<u32> = self.points.iter().map(|point| point.local).collect();
        locals.sort_unstable();
        locals.dedup();
        locals
    }

    /// The fit at each share of local memory.
    fn lines(&self) -> Vec<Fitted> {
        let line = |local| {
            let points: Vec<(f64, f64)> =
                self.local(local).map(|point| (point.delay_us(), point.op_us())).collect();
            Some(Fitted { local, line: Line::fit(&points)?, points })
        };
        self.locals().into_iter().filter_map(line).collect()
    }

    /// The mean of counted faults per operation at a share of local memory.
    fn counted(&self, local: u32) -> Option<f64> {
        let counts: Vec<f64> = self.local(local).filter_map(|point| point.faults_per_op).collect();
        (!counts.is_empty()).then(|| counts.iter().sum::<f64>() / counts.len() as f64)
    }

    /// The throughput in one cell.
    fn per_s(&self, one_way_us: f64, gbps: u32, local: u32) -> Option<f64> {
        let at = (one_way_us, gbps, local);
        let is_it = |point: &&Point| (point.one_way_us, point.gbps, point.local) == at;
        self.points.iter().find(is_it).map(|point| point.per_s)
    }
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When a server is not installed, or nothing ran.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    programs::check(&PROGRAMS)?;
    let grid = if flags.quick { QUICK } else { FULL };
    let amount = match flags.quick {
        true => Amount { keys: 20_000, requests: 30_000 },
        false => Amount { keys: 100_000, requests: 150_000 },
    };
    let fill = Amount { requests: 1, ..amount };
    let program = |name, server: Server, amount, cells| Program {
        name,
        experiment: server.experiment(amount),
        cells,
    };
    let set = ("dime-fig4", [2, BLOCKS]);
    let servers = [Server::Redis, Server::Memcached];
    let sizing = servers.map(|server| program(server.name(), server, amount, Vec::new()));
    let Some(wholes) = wholes(flags, set, &sizing)? else { return Ok(None) };
    let [redis, memcached] = servers.map(|server| wholes.of(server.name()));
    let programs = [
        program("redis", Server::Redis, amount, cells(grid, &redis)),
        program("memcached", Server::Memcached, amount, cells(grid, &memcached)),
        program("redis-filled", Server::Redis, fill, fills(grid, &redis)),
        program("memcached-filled", Server::Memcached, fill, fills(grid, &memcached)),
    ];
    let outcome = programs::run(flags, set, &programs)?;
    let servers = [
        ("redis-filled", Server::Redis, &redis),
        ("memcached-filled", Server::Memcached, &memcached),
    ];
    let grown =
        servers.map(|(filled, server, of)| grown(&outcome, (server, of), filled, grid, amount));
    if grown.iter().all(|grown| grown.points.is_empty()) {
        return Ok(None);
    }
    let Amount { keys, requests } = amount;
    Ok(Some(Measured {
        report: report(&grown),
        described: format!(
            "YCSB A, {keys} keys of 1 kB, {requests} requests, 100 under way; FIFO, each fault by \
             itself\n{}\n{}",
            wholes.told(),
            outcome.describe()
        ),
        bed: json!({"runs": outcome.record(), "keys": keys, "requests": requests,
            "local_is_share": wholes.record()}),
        is_interrupted: outcome.is_interrupted,
    }))
}

/// Collects the results of one server; faults of the runs in `filled` are subtracted.
fn grown(
    outcome: &Outcome,
    (server, of): (Server, &str),
    filled: &str,
    grid: Grid,
    amount: Amount,
) -> Grown {
    let none = Grown { server, points: Vec::new() };
    let Some(runs) = outcome.of(server.name()) else { return none };
    let mut points = Vec::new();
    for &local in grid.local {
        let fill = outcome.of(filled).and_then(|runs: &Runs| {
            runs.fetches(&cell((grid.one_way_us[0], grid.gbps[0], local), of))
        });
        for &gbps in grid.gbps {
            for &one_way_us in grid.one_way_us {
                let cell = cell((one_way_us, gbps, local), of);
                let Some(per_s) = runs.value(&cell) else { continue };
                let counted = runs.fetches(&cell).zip(fill).map(|(all, fill)| all - fill);
                let faults_per_op = counted.map(|count| count / f64::from(amount.requests));
                points.push(Point { one_way_us, gbps, local, per_s, faults_per_op });
            }
        }
    }
    Grown { points, ..none }
}

/// The report from the results of both servers.
fn report(grown: &[Grown; 2]) -> Report {
    let verdicts = verdicts(grown);
    let caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    Report {
        title: format!("{}, Fig. 4: throughput over latency and bandwidth", paper::SOURCE),
        table: rows(grown),
        picture: picture(grown, &caption),
        verdicts,
        points: Value::Array(grown.iter().map(record).collect()),
        paper: json!({
            "redis_1us_10g_per_s": {"20": paper::REDIS_1US_10G[0], "40": paper::REDIS_1US_10G[1]},
            "redis_10g_per_s": paper::THESIS_10G,
            "one_way_us": paper::THESIS_ONE_WAY_US,
            "explained_least": EXPLAINED,
        }),
    }
}

/// The results of a server for the record.
fn record(grown: &Grown) -> Value {
    let point = |point: &Point| {
        json!({
            "one_way_us": point.one_way_us,
            "gbps": point.gbps,
            "local_percent": point.local,
            "per_s": point.per_s,
            "delay_us": point.delay_us(),
            "op_us": point.op_us(),
            "faults_per_op": point.faults_per_op,
        })
    };
    let line = |Fitted { local, line, .. }: &Fitted| {
        json!({
            "local_percent": local,
            "t0_us": line.intercept,
            "faults_per_op": line.slope,
            "faults_per_op_counted": grown.counted(*local),
        })
    };
    json!({
        "server": grown.server.name(),
        "points": grown.points.iter().map(point).collect::<Vec<Value>>(),
        "lines": grown.lines().iter().map(line).collect::<Vec<Value>>(),
        "explained": fit(grown),
    })
}

/// The tables as text.
fn rows(grown: &[Grown; 2]) -> String {
    let mut text = String::new();
    for grown in grown {
        let locals = grown.locals();
        let mut head = vec![format!("{}, requests/s", grown.server.shown())];
        head.extend(locals.iter().map(|local| format!("{local} % local")));
        let mut rows = vec![head];
        for point in grown.points.iter().filter(|point| locals.first() == Some(&point.local)) {
            let name = format!("{} µs one way, {} Gb/s", point.one_way_us, point.gbps);
            let rate = |local: &u32| grown.per_s(point.one_way_us, point.gbps, *local);
            let rates = locals.iter().map(|local| rate(local).map_or_else(String::new, kilo));
            rows.push([name].into_iter().chain(rates).collect());
        }
        text += &table(&rows);
        let mut rows = vec![row(["", "t0, µs", "f, fitted", "f, counted"])];
        for Fitted { local, line, .. } in grown.lines() {
            let counted = grown.counted(local).map_or_else(String::new, |f| format!("{f:.3}"));
            let (t0, f) = (format!("{:.2}", line.intercept), format!("{:.3}", line.slope));
            rows.push(row([&format!("{local} % local"), &t0, &f, &counted]));
        }
        text += &format!("{}\n", table(&rows));
    }
    text + "time of an operation: t0 + f (2δ + P/B); f: faults per operation\n"
}

/// The share of the variance that the lines of a server explain (R²).
fn fit(grown: &Grown) -> Option<f64> {
    let groups: Vec<(Line, Vec<(f64, f64)>)> =
        grown.lines().into_iter().map(|fitted| (fitted.line, fitted.points)).collect();
    explained(&groups)
}

fn verdicts(grown: &[Grown; 2]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for grown in grown.iter().filter(|grown| !grown.points.is_empty()) {
        verdicts.extend(law(grown));
        verdicts.push(monotone(grown));
    }
    verdicts.extend(at_one_microsecond(&grown[0]));
    verdicts
}

/// The verdicts on the lines of a server and their slopes.
fn law(grown: &Grown) -> Vec<Verdict> {
    let name = grown.server.shown();
    let Some(share) = fit(grown) else { return Vec::new() };
    let claim = format!(
        "{name}: t0 + f (2δ + P/B) explains {share:.4} of the variance of the time of an operation \
         (R²); {EXPLAINED} is enough"
    );
    let why = "other work on this machine took processor time in some runs";
    let mut verdicts = vec![Verdict::because(share >= EXPLAINED, claim, why)];
    let off = |Fitted { local, line, .. }: &Fitted| {
        Some((line.slope / grown.counted(*local)? - 1.0).abs())
    };
    let offs: Vec<f64> = grown.lines().iter().filter_map(off).collect();
    if !offs.is_empty() {
        let most = offs.iter().copied().fold(0.0, f64::max);
        let claim = format!(
            "{name}: the fitted f is the faults per operation that were counted within {:.1} %; \
             {:.0} % is enough",
            most * 100.0,
            SLOPE_OFF * 100.0
        );
        verdicts.push(Verdict::because(most <= SLOPE_OFF, claim, why));
    }
    verdicts
}

// The verdict whether throughput grows with a better network and more local memory, over all
// pairs of points.
fn monotone(grown: &Grown) -> Verdict {
    let mut breaks = Vec::new();
    for slower in &grown.points {
        for faster in &grown.points {
            let is_better = faster.one_way_us <= slower.one_way_us
                && faster.gbps >= slower.gbps
                && faster.local >= slower.local
                && faster.name() != slower.name();
            if is_better && faster.per_s < slower.per_s * (1.0 - NOISE) {
                breaks.push(format!("{} is slower than {}", faster.name(), slower.name()));
            }
        }
    }
    let name = grown.server.shown();
    let mut claim = format!(
        "{name}: throughput falls with latency and grows with bandwidth and local memory, as the \
         paper's does"
    );
    if let Some(first) = breaks.first() {
        claim += &format!("; {} pairs break it, first: {first}", breaks.len());
    }
    let why = "other work on this machine took processor time in some runs";
    Verdict::because(breaks.is_empty(), claim, why)
}

// The verdict on the sentence about 1 µs in §3.2.
fn at_one_microsecond(redis: &Grown) -> Option<Verdict> {
    let gain = |gbps| Some(redis.per_s(1.0, gbps, 40)? / redis.per_s(1.0, gbps, 20)?);
    let (slow, fast) = (gain(10)?, gain(100)?);
    let claim = format!(
        "Redis at 1 µs: from 20 % to 40 % local it is {slow:.2} times as fast at 10 Gb/s, and \
         {fast:.2} times at 100 Gb/s, which is to be less; the paper's {:.2} times at 10 Gb/s",
        paper::REDIS_1US_10G[1] / paper::REDIS_1US_10G[0]
    );
    Some(Verdict::because(fast < slow, claim, "the difference is within the noise of this machine"))
}

fn picture(grown: &[Grown; 2], caption: &[String]) -> String {
    let mut charts = Vec::new();
    for grown in grown.iter().filter(|grown| !grown.points.is_empty()) {
        charts.push(throughput(grown));
        charts.push(times(grown));
    }
    let note = "Lines over 2δ + P/B: the fit. Hollow: Redis at 10 Gb/s as DiME's authors plot it, \
                on their machine.";
    let caption: Vec<String> =
        [note.to_owned()].into_iter().chain(caption.iter().cloned()).collect();
    let title =
        format!("{}, Fig. 4: Redis and memcached over latency and bandwidth", paper::SOURCE);
    draw(&title, &charts, 2, &caption)
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// The chart of throughput over latency of a server.
fn throughput(grown: &Grown) -> Chart {
    let mut series = Vec::new();
    for (number, local) in grown.locals().into_iter().enumerate() {
        let mut gbps: Vec<u32> = grown.local(local).map(|point| point.gbps).collect();
        gbps.sort_unstable();
        gbps.dedup();
        for gbps in gbps {
            let points = grown.local(local).filter(|point| point.gbps == gbps);
            let points = points.map(|point| (point.one_way_us, point.per_s / 1e3)).collect();
            let name = format!("{local} % local");
            series.push(Series { name, colour: colour(number), points, kind: Kind::Ours });
        }
        let theirs = paper::THESIS_10G.iter().find(|(paper, _)| *paper == local);
        if let Some((_, rates)) = theirs.filter(|_| grown.server == Server::Redis) {
            let rates = paper::THESIS_ONE_WAY_US.into_iter().zip(rates.map(|rate| rate / 1e3));
            series.push(Series {
                name: String::new(),
                colour: colour(number),
                points: rates.collect(),
                kind: Kind::Theirs,
            });
        }
    }
    let most = grown.points.iter().map(|point| point.per_s / 1e3).fold(20.0, f64::max);
    Chart {
        title: format!("{}, thousand requests a second", grown.server.shown()),
        x: Axis::from_zero("latency one way, µs; the higher line has more bandwidth", 10.0),
        y: Axis::decades("", 2.0, most * 1.3),
        series,
    }
}

/// The chart of time per operation over fault duration of a server, with lines.
fn times(grown: &Grown) -> Chart {
    let mut series = Vec::new();
    for (number, fitted) in grown.lines().into_iter().enumerate() {
        let Fitted { local, line, points } = fitted;
        let (name, colour) = (format!("{local} % local"), colour(number));
        let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
        series.push(Series {
            name: String::new(),
            colour,
            points: vec![(0.0, line.at(0.0)), (most, line.at(most))],
            kind: Kind::Bound,
        });
        series.push(Series { name, colour, points, kind: Kind::Dots });
    }
    let most = |of: fn(&Point) -> f64| grown.points.iter().map(of).fold(1.0, f64::max);
    Chart {
        title: format!("{}, µs an operation", grown.server.shown()),
        x: Axis::from_zero("2δ + P/B, µs", most(Point::delay_us)),
        y: Axis::from_zero("", most(Point::op_us)),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 20 µs without a fault, and so many faults an operation.
    fn exact(f: impl Fn(u32) -> f64, counted: f64) -> Grown {
        let mut points = Vec::new();
        for &local in QUICK.local {
            for &gbps in QUICK.gbps {
                for &one_way_us in QUICK.one_way_us {
                    let mut point =
                        Point { one_way_us, gbps, local, per_s: 1.0, faults_per_op: None };
                    point.per_s = 1e6 / (20.0 + f(local) * point.delay_us());
                    point.faults_per_op = Some(f(local) * counted);
                    points.push(point);
                }
            }
        }
        Grown { server: Server::Redis, points }
    }

    fn holds(grown: &Grown) -> Vec<bool> {
        let law = law(grown).into_iter().map(|verdict| verdict.holds);
        law.chain([monotone(grown).holds]).collect()
    }

    #[test]
    fn delay_is_two_latencies_and_a_page() {
        let point = exact(|_| 1.0, 1.0).points[0];
        // Eq. 1 of the paper at 1 µs and 10 Gb/s.
        assert!((point.delay_us() - 5.2768).abs() < 1e-9, "{}", point.delay_us());
    }

    #[test]
    fn the_law_holds_where_faults_explain_the_time() {
        let grown = exact(|local| 100.0 / f64::from(local), 1.0);
        let lines = grown.lines();
        assert!(
            (lines[0].line.slope - 5.0).abs() < 1e-9 && (lines[1].line.slope - 2.5).abs() < 1e-9
        );
        assert_eq!(holds(&grown), [true, true, true]);
        assert_eq!(holds(&exact(|_| 2.0, 0.8)), [true, false, true]);
        assert!(at_one_microsecond(&grown).expect("it is in the grid").holds);
    }

    #[test]
    fn a_point_that_breaks_the_order_is_named() {
        let mut grown = exact(|local| 100.0 / f64::from(local), 1.0);
        grown.points[0].per_s /= 3.0;
        assert!(!holds(&grown)[2]);
        let claim = monotone(&grown).claim;
        assert!(claim.contains("1 µs, 10 Gb/s, 20 % local is slower than"), "{claim}");
        assert!(!holds(&grown)[0], "nor do lines explain it");
    }

    #[test]
    fn tables_and_pictures_have_every_point() {
        let grown = [exact(|_| 2.0, 1.0), Grown { server: Server::Memcached, points: Vec::new() }];
        assert_eq!(rows(&grown).matches("one way").count(), 6);
        let drawn = picture(&grown, &[]);
        assert_eq!(drawn.matches("<circle").count(), 12 + 2 * 4 + 12);
        assert!(!drawn.contains("NaN"));
    }
}
