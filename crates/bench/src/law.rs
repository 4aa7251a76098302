//! The benchmark `law`: time per operation grows with the delay, by the number of faults per
//! operation.

use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::report::{Bound, Report, Table, Verdict};
use crate::server::{Kind, Server};
use crate::stats::{Line, Spread, float, mean};
use crate::store::{VALUE_BYTES, read, uniform};

const DELAYS_US: [u64; 6] = [0, 5, 10, 20, 40, 80];
const KEYS: u64 = 200_000;
const LOCAL: &str = "50%";
const SEED: u64 = 1;
/// Outstanding requests. With one at a time the server's processor would sleep in between, and
/// wake-up takes longer the longer it slept: a cost of this machine that grows with the delay.
const DEPTH: u64 = 100;
const R2_MIN: f64 = 0.99;
const DEVIATION_MAX: f64 = 0.05;

/// The results of one run.
#[derive(Debug, Clone, Copy)]
struct Sample {
    op_us: f64,
    faults_per_op: f64,
    /// The median latency of a fault, from afar's record.
    fault_us: f64,
}

/// The results of one delay over rounds.
#[derive(Debug, Clone, Copy)]
struct Point {
    delay_us: f64,
    op_us: Spread,
    faults_per_op: Spread,
}

/// All delays, and the line through them.
#[derive(Debug)]
struct Law {
    points: Vec<Point>,
    floor_us: f64,
    line: Line,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let operations = context.size(50_000, 10_000);
    let runs =
        context.alternate("law", &DELAYS_US, |&delay_us| measure(context, delay_us, operations))?;
    let law = Law::of(&runs);
    Ok(Report {
        name: "law",
        settings: json!({
            "server": "redis-server",
            "key_count": KEYS,
            "value_bytes": VALUE_BYTES,
            "operation_count": operations,
            "operation": "GET, uniform keys, one connection",
            "depth": DEPTH,
            "local": LOCAL,
            "delay_us": DELAYS_US,
            "seed": SEED,
        }),
        results: law.json(),
        text: law.text(),
        verdicts: law.verdicts(),
    })
}

/// One run with one delay.
fn measure(context: &Context, delay_us: u64, operations: u64) -> Result<Sample, Failure> {
    // With a delay of 1 ns afar times every fault and delays none.
    let rtt = if delay_us == 0 { "1ns".to_owned() } else { format!("{delay_us}us") };
    let flags = ["--local", LOCAL, "--allow-below-floor", "--rtt", &rtt];
    let mut server = Server::start(context, Kind::QuietRedis, &Place::far(&flags))?;
    server.store.fill(KEYS)?;
    // Warm-up, until the share of requested pages that are local is steady.
    read(&mut *server.store, operations, DEPTH, uniform(KEYS, SEED))?;
    let before = server.fetch_count(context)?;
    let took = read(&mut *server.store, operations, DEPTH, uniform(KEYS, SEED + 1))?;
    let after = server.fetch_count(context)?;
    let record = server.stop()?;
    let fault_ns = record.map_or(0, |run| run.figures.fault_latency.total.p50_ns);
    Ok(Sample {
        op_us: micros(took) / float(operations),
        faults_per_op: float(after - before) / float(operations),
        fault_us: float(fault_ns) / 1e3,
    })
}

/// `time` in microseconds.
fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Law {
    /// Fits the line to the runs of each of [`DELAYS_US`].
    fn of(runs: &[Vec<Sample>]) -> Self {
        let undelayed = runs.first().into_iter().flatten().map(|sample| sample.fault_us);
        let floor_us = Spread::of(undelayed).median;
        let point = |(&delay_us, runs): (&u64, &Vec<Sample>)| Point {
            delay_us: float(delay_us),
            op_us: Spread::of(runs.iter().map(|sample| sample.op_us)),
            faults_per_op: Spread::of(runs.iter().map(|sample| sample.faults_per_op)),
        };
        let points: Vec<Point> = DELAYS_US.iter().zip(runs).map(point).collect();
        let line = points.iter().map(|point| (point.takes_us(floor_us), point.op_us.median));
        Self { line: Line::fit(&line.collect::<Vec<_>>()), floor_us, points }
    }

    /// The predicted time per operation: that without a delay, plus for each fault the time by
    /// which the delay exceeds the floor.
    fn predicted_us(&self, point: &Point) -> f64 {
        let undelayed = self.points.first().map_or(0.0, |first| first.op_us.median);
        undelayed + point.faults_per_op.median * (point.takes_us(self.floor_us) - self.floor_us)
    }

    /// The relative error of the prediction for a point.
    fn deviation(&self, point: &Point) -> f64 {
        self.predicted_us(point) / point.op_us.median - 1.0
    }

    /// The mean number of faults per operation over all delays.
    fn faults_per_op(&self) -> f64 {
        mean(self.points.iter().map(|point| point.faults_per_op.median))
    }

    /// The table and the line as text.
    fn text(&self) -> String {
        let header = ["delay, us", "faults per GET", "us per GET", "predicted", "off by"];
        let mut table = Table::new(&header);
        for point in &self.points {
            table.row(vec![
                format!("{:.0}", point.delay_us),
                point.faults_per_op.show(3),
                point.op_us.show(2),
                format!("{:.2}", self.predicted_us(point)),
                format!("{:+.1} %", self.deviation(point) * 100.0),
            ]);
        }
        format!(
            "{}\nline: {:.3} us per us of delay and {:.2} us, R2 {:.5}; {:.3} faults per GET\n\
             predicted: the time at no delay, and the faults times the delay beyond what a fault \
             takes anyhow ({:.2} us)\n",
            table.text(),
            self.line.slope,
            self.line.intercept,
            self.line.r2,
            self.faults_per_op(),
            self.floor_us
        )
    }

    /// The verdicts on the line and the predictions.
    fn verdicts(&self) -> Vec<Verdict> {
        let slope = (self.line.slope / self.faults_per_op() - 1.0).abs();
        let deviations = self.points.iter().map(|point| self.deviation(point).abs());
        let within = |what: &str, value| Verdict {
            what: what.to_owned(),
            value,
            bound: Bound::AtMost(DEVIATION_MAX),
            unit: "",
        };
        vec![
            Verdict {
                what: "R2 of time per GET over delay".to_owned(),
                value: self.line.r2,
                bound: Bound::AtLeast(R2_MIN),
                unit: "",
            },
            within("slope off the faults per GET, as a share", slope),
            within("worst prediction off the time per GET, as a share", Spread::of(deviations).max),
        ]
    }

    /// The results for the record.
    fn json(&self) -> Value {
        let points = self.points.iter().map(|point| {
            json!({
                "delay_us": point.delay_us,
                "faults_per_op": point.faults_per_op.json(),
                "op_us": point.op_us.json(),
                "predicted_us": self.predicted_us(point),
            })
        });
        json!({
            "floor_us": self.floor_us,
            "slope": self.line.slope,
            "intercept_us": self.line.intercept,
            "r2": self.line.r2,
            "faults_per_op": self.faults_per_op(),
            "points": points.collect::<Vec<Value>>(),
        })
    }
}

impl Point {
    /// The duration of a fault: the delay, but never less than the floor.
    const fn takes_us(&self, floor_us: f64) -> f64 {
        self.delay_us.max(floor_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Exactly 2 faults per operation on a machine with a floor of 1 us and 20 us without any fault.
    fn law(faults_per_op: f64) -> Law {
        let runs: Vec<Vec<Sample>> = DELAYS_US
            .iter()
            .map(|&delay| {
                let op_us = 20.0 + 2.0 * float(delay).max(1.0);
                vec![Sample { op_us, faults_per_op, fault_us: float(delay).max(1.0) }]
            })
            .collect();
        Law::of(&runs)
    }

    #[test]
    fn law_holds_where_faults_explain_the_time() {
        let law = law(2.0);
        assert!((law.line.slope - 2.0).abs() < 1e-12);
        assert!((law.line.intercept - 20.0).abs() < 1e-9);
        assert!(law.points.iter().all(|point| law.deviation(point).abs() < 1e-12));
        assert!(law.verdicts().iter().all(Verdict::passes));
    }

    #[test]
    fn law_fails_where_they_do_not() {
        let passes: Vec<bool> = law(2.2).verdicts().iter().map(Verdict::passes).collect();
        assert_eq!(passes, [true, false, false]);
    }
}
