//! Stand-ins for the applications of the paper's Table 2, and what they are measured under.
//!
//! One matrix for Fig. 2 to 6 and Table 3: each figure is a section of it, and runs that figures
//! share are made once. In full all sections are measured together, in the same blocks.

use serde_json::{Value, json};

use crate::flags::ReproduceFlags;
use crate::reproduce::ReproduceError;
use crate::reproduce::programs::{self, BLOCKS, Outcome, Program, Runs, far};
use crate::sweep::matrix::Cell;

/// As the paper sorts its applications by what they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    A,
    B,
    /// The paper runs the same job in Hadoop (A) and in Spark (B).
    Both,
}

/// An application, and the program in its place.
#[derive(Debug)]
pub(super) struct App {
    pub(super) name: &'static str,
    pub(super) class: Class,
    words: &'static str,
    /// Of its data and its work, quick and in full.
    sizes: [&'static str; 2],
    /// What is asked of it, if it is a server.
    load: Option<[&'static str; 2]>,
}

const fn job(
    name: &'static str,
    class: Class,
    words: &'static str,
    sizes: [&'static str; 2],
) -> App {
    App { name, class, words, sizes, load: None }
}

/// Each with as much work as is worth measuring beside its start.
pub(super) const APPS: [App; 7] = [
    job("wordcount", Class::Both, "wordcount", ["--size 8MiB", "--size 32MiB"]),
    job("sort", Class::Both, "sort", ["--size 16MiB --repeat 3", "--size 32MiB --repeat 5"]),
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
    job("sql", Class::B, "sql --query 3a", ["--size 32MiB", "--size 128MiB --repeat 3"]),
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

/// A network and a share of local memory, in percent. Times are round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rtt_us: u32,
    pub(super) gbps: u32,
    pub(super) local: u32,
}

/// What the paper compares with: 5 µs, 40 Gb/s, a quarter of the memory.
pub(super) const BASE: Place = Place { rtt_us: 5, gbps: 40, local: 25 };

/// A figure or table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reproduce) enum Section {
    Fig2,
    Fig3,
    Fig4,
    Fig5,
    Fig6,
    Table3,
}

impl Section {
    const ALL: [Self; 6] =
        [Self::Fig2, Self::Fig3, Self::Fig4, Self::Fig5, Self::Fig6, Self::Table3];

    /// What it is made of, in the order of its axis.
    pub(super) fn places(self, is_quick: bool) -> Vec<Place> {
        let latencies =
            |rtts: &[u32]| rtts.iter().map(|&rtt_us| Place { rtt_us, ..BASE }).collect();
        let bandwidths = |all: &[u32]| all.iter().map(|&gbps| Place { gbps, ..BASE }).collect();
        let locals = |base: Place, all: &[u32]| -> Vec<Place> {
            all.iter().map(|&local| Place { local, ..base }).collect()
        };
        match (self, is_quick) {
            (Self::Fig2, _) => [1, 5, 10]
                .into_iter()
                .flat_map(|rtt_us| [100, 40, 10].map(|gbps| Place { rtt_us, gbps, ..BASE }))
                .collect(),
            (Self::Fig3, false) => bandwidths(&[10, 20, 40, 60, 80, 100]),
            (Self::Fig3, true) => bandwidths(&[10, 20, 40, 100]),
            (Self::Fig4, false) => latencies(&[1, 3, 5, 10, 20, 40]),
            (Self::Fig4, true) => latencies(&[1, 3, 5, 10, 40]),
            (Self::Fig5, false) => locals(BASE, &[10, 20, 30, 40, 50, 70, 90, 100]),
            (Self::Fig5, true) => locals(BASE, &[10, 20, 30, 50, 75, 100]),
            (Self::Fig6, _) => vec![BASE],
            (Self::Table3, false) => [5, 3]
                .into_iter()
                .flat_map(|rtt_us| {
                    let gbps = if rtt_us == 3 { 100 } else { 40 };
                    locals(Place { rtt_us, gbps, ..BASE }, &[20, 30, 50, 70, 90])
                })
                .collect(),
            (Self::Table3, true) => [5, 3]
                .into_iter()
                .flat_map(|rtt_us| {
                    let gbps = if rtt_us == 3 { 100 } else { 40 };
                    locals(Place { rtt_us, gbps, ..BASE }, &[30, 50, 75])
                })
                .collect(),
        }
    }
}

impl Place {
    pub(super) fn name(self) -> String {
        format!("{} µs, {} Gb/s, {} % local", self.rtt_us, self.gbps, self.local)
    }

    // Gao's link: a round trip, then one transfer after another in each direction.
    fn cell(self) -> Cell {
        far(&[
            ("local", &format!("{}%", self.local)),
            ("rtt", &format!("{}us", self.rtt_us)),
            ("bandwidth", &format!("{}Gbps", self.gbps)),
            ("link", "full-duplex"),
        ])
    }
}

impl App {
    fn experiment(&self, is_quick: bool, python: &str) -> String {
        let size = usize::from(!is_quick);
        let mut words = vec!["afar", "workload"];
        words.extend(self.words.split_whitespace().chain(self.sizes[size].split_whitespace()));
        if self.name == "sql" {
            words.extend(["--python", python]);
        }
        let head = "timeout = \"120s\"\nallow_below_floor = true\n[workload]\n";
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

/// One application under one network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) place: Place,
    /// By which share it is slower than without far memory.
    pub(super) degradation: f64,
    pub(super) fetches: f64,
}

/// One application under all of them.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) app: &'static App,
    pub(super) points: Vec<Point>,
    /// With a quarter local and no delay: pages fetched, and how long a run takes from start to
    /// end, in seconds.
    pub(super) undelayed: Option<(f64, f64)>,
}

impl Seen {
    pub(super) fn at(&self, place: Place) -> Option<&Point> {
        self.points.iter().find(|point| point.place == place)
    }

    pub(super) fn degradation(&self, place: Place) -> Option<f64> {
        self.at(place).map(|point| point.degradation)
    }
}

/// A section of the matrix.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) seen: Vec<Seen>,
    pub(super) outcome: Outcome,
    /// Applications that are left out, and why.
    pub(super) lacks: Vec<String>,
}

/// Measures a section; in full, all of them.
///
/// # Errors
/// When results cannot be kept, or nothing ran.
pub(super) fn measure(flags: &ReproduceFlags, section: Section) -> Result<Matrix, ReproduceError> {
    let is_quick = flags.quick;
    let mut cells = vec![Cell::NATIVE, undelayed()];
    let sections = if is_quick { vec![section] } else { Section::ALL.to_vec() };
    for place in sections.iter().flat_map(|section| section.places(is_quick)) {
        let cell = place.cell();
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    let python = flags.python.to_string_lossy();
    let (apps, lacks) = present(&python);
    let program = |app: &&'static App| Program {
        name: app.name,
        experiment: app.experiment(is_quick, &python),
        cells: cells.clone(),
    };
    let programs: Vec<Program> = apps.iter().map(program).collect();
    let outcome = programs::run(flags, ("gao", [1, BLOCKS]), &programs)?;
    let places: Vec<Place> = section.places(is_quick);
    let seen = apps.into_iter().filter_map(|app| Some(seen(app, outcome.of(app.name)?, &places)));
    Ok(Matrix { seen: seen.collect(), outcome, lacks })
}

// A quarter local, and no delay: what swaps, and how fast.
fn undelayed() -> Cell {
    far(&[("local", "25%")])
}

// Those whose programs are here.
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

fn has_duckdb(python: &str) -> bool {
    let mut command = std::process::Command::new(python);
    command.args(["-c", "import duckdb"]).stdin(std::process::Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

fn seen(app: &'static App, runs: &Runs, places: &[Place]) -> Seen {
    let point = |&place: &Place| {
        let cell = place.cell();
        let degradation = runs.slowdown(&cell)? - 1.0;
        Some(Point { place, degradation, fetches: runs.fetches(&cell).unwrap_or(0.0) })
    };
    let undelayed = undelayed();
    Seen {
        app,
        points: places.iter().filter_map(point).collect(),
        undelayed: runs.fetches(&undelayed).zip(runs.elapsed_s(&undelayed)),
    }
}

impl Matrix {
    pub(super) fn is_empty(&self) -> bool {
        self.seen.iter().all(|seen| seen.points.is_empty())
    }

    pub(super) fn describe(&self) -> String {
        let mut text = "stand-ins on generated data, against the same run without far memory; \
                        afar workload list says\nwhat for\n"
            .to_owned();
        text += &self.outcome.describe();
        for left_out in self.left_out() {
            text += &format!("\n{left_out}");
        }
        text
    }

    /// Applications that are left out, for captions.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.lacks.iter().map(|lack| format!("Left out: {lack}.")).collect()
    }

    pub(super) fn record(&self) -> Value {
        json!({"runs": self.outcome.record(), "left_out": self.lacks})
    }

    pub(super) fn points(&self) -> Value {
        let point = |point: &Point| {
            json!({
                "rtt_us": point.place.rtt_us,
                "gbps": point.place.gbps,
                "local_percent": point.place.local,
                "degradation": point.degradation,
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
    use crate::sweep::file::Sweep;

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

    #[test]
    fn sections_share_what_they_can() {
        let full = |section: Section| section.places(false);
        for section in [Section::Fig2, Section::Fig3, Section::Fig4, Section::Fig6] {
            assert!(full(section).contains(&BASE), "{section:?}");
        }
        assert_eq!(full(Section::Fig2).len(), 9);
        let of_fig2 = |place: &Place| full(Section::Fig2).contains(place);
        assert_eq!(full(Section::Fig3).into_iter().filter(of_fig2).count(), 3);
        let of_fig5 = |place: &Place| full(Section::Fig5).contains(place);
        assert_eq!(full(Section::Table3).into_iter().filter(of_fig5).count(), 5);
    }
}
