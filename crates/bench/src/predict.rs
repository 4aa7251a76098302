//! The benchmark `predict`: slowdowns that `afar predict` predicts from one run with all memory
//! local, against measured ones.
//!
//! Each program is recorded once, then run with all memory local and over networks with local
//! memories that no parameter was fitted to. The prediction gets the run time with all memory
//! local. The control is a line over the bandwidth of swapping (Gao et al. 2016, Fig. 6), fitted to
//! all other programs. It gets the measured bandwidth of the program, which the prediction does
//! without.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use planner::slowdown::SwapLine;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::{FarRun, Place};
use crate::process::{Job, LONG};
use crate::random::Zipf;
use crate::report::{Bound, Report, Table, Verdict};
use crate::server::{Kind, Server};
use crate::stats::{Quantile, Spread, float, quantile};
use crate::store::{read, uniform};

/// A program and its input.
#[derive(Debug, Clone, Copy)]
enum Load {
    /// `afar workload` with these arguments.
    Job(&'static [&'static str]),
    /// A server with `keys` keys and `operations` reads of keys, Zipf or uniform.
    Store { kind: Kind, keys: u64, operations: u64, is_zipf: bool },
}

/// A network and an amount of local memory.
#[derive(Debug, Clone, Copy)]
struct Far {
    local: &'static str,
    rtt: &'static str,
    bandwidth: &'static str,
}

/// The results of one program over one network.
#[derive(Debug, Clone, Copy)]
struct Found {
    pair: usize,
    far: Far,
    measured: f64,
    predicted: f64,
    low: f64,
    high: f64,
    /// The measured bandwidth of swapping, in gigabytes per second.
    swap_gb_per_sec: f64,
    fetches: f64,
    fetches_predicted: f64,
}

/// The run time of a program in seconds, and afar's record of it.
type Timed = (f64, Option<FarRun>);

const fn store(kind: Kind, keys: u64, operations: u64, is_zipf: bool) -> Load {
    Load::Store { kind, keys, operations, is_zipf }
}

const PAIRS: [(&str, Load); 12] = [
    ("wordcount 64 MiB", Load::Job(&["wordcount", "--size=64MiB"])),
    ("wordcount 128 MiB", Load::Job(&["wordcount", "--size=128MiB"])),
    ("sort 64 MiB", Load::Job(&["sort", "--size=64MiB", "--repetitions=3"])),
    ("sort 128 MiB", Load::Job(&["sort", "--size=128MiB", "--repetitions=2"])),
    ("als 64 MiB", Load::Job(&["als", "--size=64MiB", "--iterations=4"])),
    ("als 128 MiB", Load::Job(&["als", "--size=128MiB", "--iterations=2"])),
    ("pagerank 64 MiB", Load::Job(&["pagerank", "--size=64MiB", "--iterations=6"])),
    ("pagerank 128 MiB", Load::Job(&["pagerank", "--size=128MiB", "--iterations=4"])),
    ("redis 200k, zipf", store(Kind::QuietRedis, 200_000, 300_000, true)),
    ("redis 300k, uniform", store(Kind::QuietRedis, 300_000, 150_000, false)),
    ("memcached 200k, zipf", store(Kind::QuietMemcached, 200_000, 300_000, true)),
    ("memcached 300k, uniform", store(Kind::QuietMemcached, 300_000, 150_000, false)),
];
const FAR: [Far; 4] = [
    Far { local: "90%", rtt: "10us", bandwidth: "10Gbps" },
    Far { local: "75%", rtt: "5us", bandwidth: "40Gbps" },
    Far { local: "50%", rtt: "3us", bandwidth: "25Gbps" },
    Far { local: "35%", rtt: "2us", bandwidth: "100Gbps" },
];
const ZIPF_EXPONENT: f64 = 0.99;
/// Outstanding requests of a server.
const DEPTH: u64 = 50;
const SEED: u64 = 1;
/// Larger slowdowns do not count: nobody would use far memory there.
const SLOWDOWN_MAX: f64 = 2.0;
const MEDIAN_MAX: f64 = 0.05;
const P90_MAX: f64 = 0.15;

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let pairs = if context.quick { &PAIRS[..6] } else { &PAIRS[..] };
    let points = if context.quick { &FAR[1..3] } else { &FAR[..] };
    let mut found = Vec::new();
    for (pair, &(name, load)) in pairs.iter().enumerate() {
        found.extend(compare(context, (pair, name), load, points)?);
    }
    let control = control(&found);
    let counted: Vec<usize> =
        (0..found.len()).filter(|&at| found[at].measured <= SLOWDOWN_MAX).collect();
    let sorted = |error: &dyn Fn(usize) -> f64| {
        let mut errors: Vec<f64> = counted.iter().map(|&at| error(at)).collect();
        errors.sort_by(f64::total_cmp);
        errors
    };
    let ours = sorted(&|at| found[at].error().abs());
    let theirs = sorted(&|at| (control[at] - found[at].measured).abs());
    Ok(Report {
        name: "predict",
        settings: json!({
            "pairs": pairs.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "slowdown_max": SLOWDOWN_MAX,
            "zipf_exponent": ZIPF_EXPONENT,
            "seed": SEED,
        }),
        results: found.iter().zip(&control).map(|(one, &control)| one.json(control)).collect(),
        text: text(&found, &control, counted.len()),
        verdicts: verdicts(&ours, &theirs),
    })
}

/// Records one program, then predicts and measures its slowdowns at `points`.
fn compare(
    context: &Context,
    (pair, name): (usize, &'static str),
    load: Load,
    points: &[Far],
) -> Result<Vec<Found>, Failure> {
    let profile = context.fresh("reuse");
    context.progress.show(&format!("{name}: watching it"));
    context.undisturbed(|| execute(context, load, &Place::Watched(profile.clone())))?;
    // Local memory is a share of the peak. A share of the memory in use would be so small while a
    // program starts that its number of fetches would depend on chance.
    let peak = predict(context, &profile, &["--local", "100%"])?;
    let of = format!("--of={}", peak.number("/profile/managed_peak_bytes")?);
    let mut places = vec![Place::far(&["--local", "100%"])];
    places.extend(points.iter().map(|far| far.place(&of)));
    let rounds = context.rounds.div_ceil(3);
    let runs =
        context.alternate_for(rounds, name, &places, |place| execute(context, load, place))?;
    let median =
        |of: &dyn Fn(&Timed) -> f64, runs: &[Timed]| Spread::of(runs.iter().map(of)).median;
    let alone = median(&|run| run.0, &runs[0]);
    let mut found = Vec::new();
    for (far, runs) in points.iter().zip(&runs[1..]) {
        let told = far.predicted(context, &profile, &of, alone)?;
        let figures = |run: &Timed| run.1.as_ref().map(|run| run.figures.clone());
        let swapped = |run: &Timed| {
            let bytes = figures(run).map_or(0, |r| r.fetched_bytes + r.written_back_bytes);
            float(bytes) / 1e9 / run.0
        };
        let fetches = |run: &Timed| float(figures(run).map_or(0, |r| r.faults.fetch_count));
        found.push(Found {
            pair,
            far: *far,
            measured: median(&|run| run.0, runs) / alone,
            predicted: told.number("/points/0/slowdown")?,
            low: told.number("/points/0/slowdown_low")?,
            high: told.number("/points/0/slowdown_high")?,
            swap_gb_per_sec: median(&swapped, runs),
            fetches: median(&fetches, runs),
            // The third policy of the output is CLOCK.
            fetches_predicted: told.number("/curve/2/fetch_count")?,
        });
    }
    Ok(found)
}

/// Runs a program to its end.
fn execute(context: &Context, load: Load, place: &Place) -> Result<Timed, Failure> {
    // The table of the distribution is computed before the program starts.
    let zipf = |keys| Zipf::new(keys, ZIPF_EXPONENT, SEED);
    let zipf = match load {
        Load::Store { keys, is_zipf: true, .. } => Some(zipf(keys)),
        _ => None,
    };
    let begin = Instant::now();
    let run = match load {
        Load::Job(words) => {
            let mut program: Vec<OsString> = vec![context.afar.clone().into(), "workload".into()];
            program.extend(words.iter().map(OsString::from));
            place.execute(context, &program, LONG)?.run
        }
        Load::Store { kind, keys, operations, .. } => {
            let mut server = Server::start(context, kind, place)?;
            server.store.fill(keys)?;
            let mut random = crate::random::SplitMix64::new(SEED);
            let mut uniform = uniform(keys, SEED);
            let next = || zipf.as_ref().map_or_else(&mut uniform, |zipf| zipf.draw(&mut random));
            read(&mut *server.store, operations, DEPTH, next)?;
            server.stop()?
        }
    };
    let took = begin.elapsed().as_secs_f64();
    // The record's time leaves out afar's calibration.
    let own = run.as_ref().map(|run| float(run.figures.elapsed_ns) / 1e9);
    Ok((own.unwrap_or(took), run))
}

/// The slowdown of each result by a line over the bandwidth of all other programs.
fn control(found: &[Found]) -> Vec<f64> {
    let of = |one: &Found| {
        let others = found.iter().filter(|other| other.pair != one.pair);
        let points: Vec<_> =
            others.map(|other| (other.swap_gb_per_sec, other.measured - 1.0)).collect();
        let line = SwapLine::new(&points);
        1.0 + line.map_or(0.0, |line| line.degradation(one.swap_gb_per_sec))
    };
    found.iter().map(of).collect()
}

/// The verdicts from the sorted errors of predictions and of the control.
fn verdicts(ours: &[f64], theirs: &[f64]) -> Vec<Verdict> {
    let at_most = |what: &str, value, limit| Verdict {
        what: what.to_owned(),
        value,
        bound: Bound::AtMost(limit),
        unit: "",
    };
    let of = |errors: &[f64], q| if errors.is_empty() { f64::NAN } else { quantile(errors, q) };
    let (median, control) = (of(ours, Quantile::P50), of(theirs, Quantile::P50));
    vec![
        at_most("median absolute error of the slowdown", median, MEDIAN_MAX),
        at_most("90th percentile of it", of(ours, Quantile::P90), P90_MAX),
        at_most("median as a share of the control's", median / control, 1.0),
        at_most(
            "90th percentile as a share of the control's",
            of(ours, Quantile::P90) / of(theirs, Quantile::P90),
            1.0,
        ),
    ]
}

/// The table as text.
fn text(found: &[Found], control: &[f64], counted: usize) -> String {
    let header = [
        "program",
        "local",
        "rtt",
        "link",
        "measured",
        "predicted",
        "off by",
        "fetches",
        "control",
    ];
    let mut table = Table::new(&header);
    for (one, control) in found.iter().zip(control) {
        table.row(vec![
            PAIRS[one.pair].0.to_owned(),
            one.far.local.to_owned(),
            one.far.rtt.to_owned(),
            one.far.bandwidth.to_owned(),
            format!("{:.3}", one.measured),
            format!("{:.3} ({:.2}-{:.2})", one.predicted, one.low, one.high),
            format!("{:+.3}", one.error()),
            format!("{:+.1} %", (one.fetches_predicted / one.fetches.max(1.0) - 1.0) * 100.0),
            format!("{control:.3}"),
        ]);
    }
    let inside = found.iter().filter(|one| (one.low..=one.high).contains(&one.measured)).count();
    format!(
        "{}\n{counted} of {} slowdowns are at most {SLOWDOWN_MAX} and count; {inside} lie within \
         their interval\nfetches: predicted against counted; control: a line over the bandwidth of \
         swapping, through\nall other programs\n",
        table.text(),
        found.len()
    )
}

/// The JSON of `afar predict`, parsed and as text.
struct Told(Value, String);

impl Told {
    /// The number at a JSON pointer.
    fn number(&self, pointer: &'static str) -> Result<f64, Failure> {
        let number = self.0.pointer(pointer).and_then(Value::as_f64);
        let wanted = pointer;
        number.ok_or_else(|| Failure::Unreadable {
            program: "afar predict",
            wanted,
            said: self.1.clone(),
        })
    }
}

impl Far {
    /// The run under afar; `of` is the flag that says what local memory is a share of.
    fn place(&self, of: &str) -> Place {
        let words = ["--local", self.local, of, "--rtt", self.rtt, "--bandwidth", self.bandwidth];
        Place::far(&words)
    }

    /// The prediction for this network if the program takes `alone` seconds with all memory local.
    fn predicted(
        &self,
        context: &Context,
        profile: &Path,
        of: &str,
        alone: f64,
    ) -> Result<Told, Failure> {
        let alone = format!("--alone={:.3}ms", alone * 1e3);
        let network = ["--rtt", self.rtt, "--bandwidth", self.bandwidth];
        predict(context, profile, &[&[&alone, "--local", self.local, of], &network[..]].concat())
    }
}

/// Runs `afar predict` on a profile.
fn predict(context: &Context, profile: &Path, words: &[&str]) -> Result<Told, Failure> {
    let mut command: Vec<OsString> = vec![context.afar.clone().into(), "predict".into()];
    command.push(profile.into());
    command.extend(["--json", "-"].iter().chain(words).map(OsString::from));
    let said = Job::start(context, &command)?.finish(LONG)?;
    Ok(Told(serde_json::from_str(&said).unwrap_or_default(), said))
}

impl Found {
    /// Predicted minus measured slowdown.
    fn error(&self) -> f64 {
        self.predicted - self.measured
    }

    /// The result for the record.
    fn json(&self, control: f64) -> Value {
        json!({
            "program": PAIRS[self.pair].0,
            "local": self.far.local,
            "rtt": self.far.rtt,
            "bandwidth": self.far.bandwidth,
            "slowdown": self.measured,
            "predicted": self.predicted,
            "predicted_low": self.low,
            "predicted_high": self.high,
            "fetch_count": self.fetches,
            "fetch_count_predicted": self.fetches_predicted,
            "swap_gb_per_s": self.swap_gb_per_sec,
            "control": control,
        })
    }
}
