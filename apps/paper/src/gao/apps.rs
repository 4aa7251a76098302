//! Stand-ins for the applications of the paper's Table 2, and their results.
//!
//! Fig. 2 to 6 and Table 3 have one matrix: each figure is a section of it, and runs that figures
//! share are made once. Without `--quick` all sections are measured together, in the same blocks.
//! Runs with all memory local come first and show the peak memory of each program: as in the paper,
//! local memory is a fixed amount, a share of the peak.

use serde_json::{Value, json};

use crate::ReproduceError;
use crate::flags::Options;
use crate::programs;
use crate::programs::{BLOCKS, Outcome, Program, Runs};
use crate::whole::{Wholes, wholes};
use sweep::Cell;

use super::place::{Place, Section, cells, undelayed};

/// The paper's classes of applications, by the network that they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    A,
    B,
    /// The paper runs the same job in Hadoop (A) and in Spark (B).
    Both,
}

/// An application of the paper and the program that stands in for it.
#[derive(Debug)]
pub(super) struct App {
    pub(super) name: &'static str,
    pub(super) class: Class,
    words: &'static str,
    /// Flags for the sizes of data and work, with `--quick` and without.
    sizes: [&'static str; 2],
    /// Its load if it is a server, with `--quick` and without.
    load: Option<[&'static str; 2]>,
}

/// An application whose program is no server.
const fn job(
    name: &'static str,
    class: Class,
    words: &'static str,
    sizes: [&'static str; 2],
) -> App {
    App { name, class, words, sizes, load: None }
}

/// All applications; each program's work takes much longer than its start.
pub(super) const APPS: [App; 7] = [
    job("wordcount", Class::Both, "wordcount", ["--size 8MiB", "--size 32MiB"]),
    job(
        "sort",
        Class::Both,
        "sort",
        ["--size 16MiB --repetitions 3", "--size 32MiB --repetitions 5"],
    ),
    job("als", Class::A, "als", ["--size 8MiB --iterations 2", "--size 16MiB --iterations 5"]),
    App {
        name: "memcached",
        class: Class::A,
        words: "kv --server memcached --port {port}",
        sizes: ["--size 32MiB", "--size 128MiB"],
        load: Some([
            "memcached://127.0.0.1:{port} --workload b --value-size 10000 --keys 2000 -n 10000",
            "memcached://127.0.0.1:{port} --workload b --value-size 10000 --keys 10000 -n 100000",
        ]),
    },
    job(
        "pagerank",
        Class::B,
        "pagerank --variant timely",
        ["--size 16MiB --iterations 5", "--size 32MiB --iterations 10"],
    ),
    job("sql", Class::B, "sql --query 3a", ["--size 32MiB", "--size 128MiB --repetitions 3"]),
    App {
        name: "herd",
        class: Class::B,
        words: "kv --server redis --port {port}",
        sizes: ["--size 32MiB", "--size 128MiB"],
        load: Some([
            "redis://127.0.0.1:{port} --workload c --distribution uniform --value-size 100 \
             --keys 50000 -n 30000 --depth 16",
            "redis://127.0.0.1:{port} --workload c --distribution uniform --value-size 100 \
             --keys 200000 -n 200000 --depth 16",
        ]),
    },
];

impl App {
    /// The text of the program's experiment.
    fn experiment(&self, is_quick: bool, python: &str) -> String {
        let size = usize::from(!is_quick);
        let mut words = vec!["afar", "workload"];
        words.extend(self.words.split_whitespace().chain(self.sizes[size].split_whitespace()));
        if self.name == "sql" {
            words.extend(["--python", python]);
        }
        // A short time limit, so that a run that hangs leaves time for others.
        let timeout = if is_quick { "20s" } else { "120s" };
        let head = format!("timeout = \"{timeout}\"\nallow_below_floor = true\n[workload]\n");
        let Some(load) = self.load else {
            let name = self.name;
            return format!(
                "{head}command = {}\n[metric]\npattern = \"{name}: ([0-9.]+) s\"\n",
                json!(words)
            );
        };
        let mut asked = vec!["afar", "load", "kv", "--fill", "--quiet", "--json", "-"];
        asked.extend(load[size].split_whitespace());
        format!(
            "{head}command = {}\nready_tcp = \"127.0.0.1:{{port}}\"\nload = {}\n\
             [metric]\njson = \"/results/requests_per_s\"\nbetter = \"higher\"\n",
            json!(words),
            json!(asked)
        )
    }
}

/// The results of one application in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) place: Place,
    /// The slowdown against the native run, minus 1.
    pub(super) degradation: f64,
    /// The smallest and the largest degradation of any block.
    pub(super) range: [f64; 2],
    pub(super) fetches: f64,
}

impl Point {
    /// How long its fetches would take one after another, in seconds.
    pub(super) fn fetch_s(&self) -> f64 {
        self.fetches * self.place.delay_us() * 1e-6
    }
}

/// The results of one application in all cells.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) app: &'static App,
    pub(super) points: Vec<Point>,
    /// With a quarter of the memory local and no delay: pages fetched, and the time of a run in
    /// seconds.
    pub(super) undelayed: Option<(f64, f64)>,
    /// The time of a native run in seconds.
    pub(super) native_s: Option<f64>,
}

impl Seen {
    /// The results in one cell.
    pub(super) fn at(&self, place: Place) -> Option<&Point> {
        self.points.iter().find(|point| point.place == place)
    }

    /// The degradation in one cell.
    pub(super) fn degradation(&self, place: Place) -> Option<f64> {
        self.at(place).map(|point| point.degradation)
    }
}

/// The results of a section of the matrix.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) seen: Vec<Seen>,
    pub(super) outcome: Outcome,
    wholes: Wholes,
    /// Applications that were left out, and why.
    pub(super) lacks: Vec<String>,
}

/// Measures a section; without `--quick`, all of them. `None` if it was interrupted before any
/// result.
///
/// # Errors
/// When results cannot be written, or nothing ran.
pub(super) fn measure(flags: &Options, section: Section) -> Result<Option<Matrix>, ReproduceError> {
    let set = ("gao", [1, BLOCKS]);
    let python = flags.python.to_string_lossy();
    let (apps, mut lacks) = present(&python);
    let program = |app: &App, cells| Program {
        name: app.name,
        experiment: app.experiment(flags.quick, &python),
        cells,
    };
    let sizing: Vec<Program> = apps.iter().map(|app| program(app, Vec::new())).collect();
    let Some(wholes) = wholes(flags, set, &sizing)? else { return Ok(None) };
    let mut sized: Vec<(&'static App, String)> = Vec::new();
    for app in apps {
        match wholes.known(app.name) {
            Some(of) => sized.push((app, of)),
            None => lacks.push(format!("{}: how much memory it uses is not known", app.name)),
        }
    }
    let programs: Vec<Program> =
        sized.iter().map(|(app, of)| program(app, cells(section, flags.quick, of))).collect();
    let outcome = programs::run(flags, set, &programs)?;
    let places = section.places(flags.quick);
    let seen = sized
        .into_iter()
        .filter_map(|(app, of)| Some(seen(app, outcome.of(app.name)?, &places, &of)));
    Ok(Some(Matrix { seen: seen.collect(), outcome, wholes, lacks }))
}

// The applications whose programs are installed, and why others are not measured.
fn present(python: &str) -> (Vec<&'static App>, Vec<String>) {
    let mut lacks = Vec::new();
    let mut lack = |app: &App, why: &str| {
        lacks.push(format!("{}: {why}", app.name));
        false
    };
    let apps = APPS.iter().filter(|app| {
        let server = match app.name {
            "memcached" => Some(("memcached", "memcached")),
            "herd" => Some(("redis-server", "redis-server")),
            _ => None,
        };
        if let Some((program, package)) = server
            && programs::check(&[(program, package)]).is_err()
        {
            return lack(app, "its server is not installed");
        }
        if app.name == "sql" && !has_duckdb(python) {
            return lack(app, "no Python with the module duckdb; --python may name one");
        }
        true
    });
    (apps.collect(), lacks)
}

/// Whether a Python has the module duckdb.
fn has_duckdb(python: &str) -> bool {
    let mut command = std::process::Command::new(python);
    command.args(["-c", "import duckdb"]).stdin(std::process::Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// The results of one application.
fn seen(app: &'static App, runs: &Runs, places: &[Place], of: &str) -> Seen {
    let point = |&place: &Place| {
        let cell = place.cell(of);
        Some(Point {
            place,
            degradation: runs.slowdown(&cell)? - 1.0,
            range: runs.slowdowns(&cell)?.map(|slowdown| slowdown - 1.0),
            fetches: runs.fetches(&cell).unwrap_or(0.0),
        })
    };
    let undelayed = undelayed(of);
    Seen {
        app,
        points: places.iter().filter_map(point).collect(),
        undelayed: runs.fetches(&undelayed).zip(runs.elapsed_s(&undelayed)),
        native_s: runs.elapsed_s(&Cell::NATIVE),
    }
}

impl Matrix {
    pub(super) fn is_empty(&self) -> bool {
        self.seen.iter().all(|seen| seen.points.is_empty())
    }

    /// The lines that describe the runs.
    pub(super) fn describe(&self) -> String {
        let mut text = "stand-ins on generated data, against the same run without far memory; \
                        afar workload list says\nwhat for\n"
            .to_owned();
        text += &format!("{}\n{}", self.wholes.told(), self.outcome.describe());
        for left_out in self.left_out() {
            text += &format!("\n{left_out}");
        }
        text
    }

    /// Sentences about applications that were left out, for captions.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.lacks.iter().map(|lack| format!("Left out: {lack}.")).collect()
    }

    /// The runs for the record.
    pub(super) fn record(&self) -> Value {
        json!({
            "runs": self.outcome.record(),
            "left_out": self.lacks,
            "local_is_share": self.wholes.record(),
        })
    }

    /// All points for the record.
    pub(super) fn points(&self) -> Value {
        let point = |point: &Point| {
            json!({
                "rtt_us": point.place.rtt_us,
                "gbps": point.place.gbps,
                "local_percent": point.place.local,
                "degradation": point.degradation,
                "degradation_range": point.range,
                "fetches": point.fetches,
            })
        };
        let seen = |seen: &Seen| {
            json!({
                "workload": seen.app.name,
                "class": format!("{:?}", seen.app.class),
                "points": seen.points.iter().map(point).collect::<Vec<Value>>(),
                "fetches_undelayed": seen.undelayed.map(|undelayed| undelayed.0),
            })
        };
        Value::Array(self.seen.iter().map(seen).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweep::Sweep;

    #[test]
    fn experiments_can_be_read() {
        for app in &APPS {
            for is_quick in [true, false] {
                let sweep = Sweep::own(&app.experiment(is_quick, "/x/python"));
                assert_eq!(sweep.workload.command[..2], ["afar", "workload"]);
                let named = sweep.workload.command.contains(&"/x/python".to_owned());
                assert_eq!(named, app.name == "sql");
            }
        }
    }
}
