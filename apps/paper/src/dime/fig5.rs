//! Fig. 5: Redis alone and beside memcached, with a budget of its own and with a shared one.
//!
//! Both run under one `afar run`. The arena engine gives each process its own budget; the swap
//! engine gives the whole process tree one control group, twice as large. The paper compares these
//! as DiME and the emulator by Gao et al. The paper's machine has six processors; here each server
//! shares a processor with its load, so that servers compete for memory only.

use chart::{BLUE, GREEN, ORANGE};
use console::layout::{NONE, kilo, row, table};
use measure::ShareOf;
use serde_json::{Value, json};

use super::paper;
use super::servers::{PROGRAMS, Server, experiment};
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::programs;
use crate::programs::{BLOCKS, Outcome, Program, Runs, far};
use crate::report::{Report, Verdict, median};
use crate::whole::{Wholes, wholes};
use crate::{Measured, ReproduceError};
use sweep::Cell;

/// 5 µs one way.
const RTT: &str = "10us";
const BANDWIDTH: &str = "100Gbps";
const QUICK: &[&str] = &["20%", "50%"];
const FULL: &[&str] = &["10%", "20%", "30%", "40%", "50%", "60%"];
const ENGINES: [&str; 2] = ["arena", "swap"];
/// Most loss of Redis beside memcached with its own budget, as a share.
const OWN_MOST: f64 = 0.10;
/// The least ratio of its loss with a shared budget to that with its own.
const SHARED_RATIO: f64 = 2.0;

/// Redis at one share of local memory: requests per second in each engine, alone and beside
/// memcached.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    local: f64,
    alone: [Option<f64>; 2],
    beside: [Option<f64>; 2],
}

impl Point {
    /// The share of throughput that Redis loses beside memcached.
    fn lost(&self, engine: usize) -> Option<f64> {
        Some(1.0 - self.beside[engine]? / self.alone[engine]?)
    }
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When a server is not installed, or nothing ran.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    programs::check(&PROGRAMS)?;
    programs::check(&[("taskset", "util-linux")])?;
    let (keys, seconds, locals) = if flags.quick { (30_000, 1, QUICK) } else { (100_000, 4, FULL) };
    let program = |name, experiment, cells| Program { name, experiment, cells };
    let set = ("dime-fig5", [3, BLOCKS]);
    let sizing = program("alone", alone(keys, seconds), Vec::new());
    let Some(wholes) = wholes(flags, set, &[sizing])? else { return Ok(None) };
    let own = wholes.of("alone");
    // Two servers use more memory than one, and share the group's budget.
    let is_peak = flags.of == ShareOf::Peak;
    let group = if is_peak { ShareOf::Peak.to_string() } else { own.clone() };
    let of = Of { own, group };
    let programs = [
        program("alone", alone(keys, seconds), cells(locals, &of)),
        program("beside", beside(keys, seconds), cells(locals, &of)),
    ];
    let outcome = programs::run(flags, set, &programs)?;
    let (Some(alone), Some(beside)) = (outcome.of("alone"), outcome.of("beside")) else {
        return Ok(None);
    };
    let points = points((locals, &of), alone, beside);
    let native = [alone, beside].map(|runs| runs.value(&Cell::NATIVE));
    if points.iter().all(|point| point.alone == [None; 2]) {
        return Ok(None);
    }
    Ok(Some(Measured {
        report: report(&points, native),
        described: described(&outcome, &wholes, keys),
        bed: json!({"runs": outcome.record(), "keys": keys, "rtt": RTT, "bandwidth": BANDWIDTH,
            "local_is_share": wholes.record()}),
        is_interrupted: outcome.is_interrupted,
    }))
}

/// The lines that describe the runs.
fn described(outcome: &Outcome, wholes: &Wholes, keys: u32) -> String {
    format!(
        "YCSB A, {keys} keys of 1 kB in each server, 100 requests under way; 5 µs one way, \
         100 Gb/s;\nRedis with its load on one processor, memcached with its own on another\n\
         {} (Redis), for each process; in the swap engine of what the whole group did\n{}",
        wholes.told(),
        outcome.describe()
    )
}

/// The memory that shares are shares of: for each process, and for the group of the swap engine.
struct Of {
    own: String,
    group: String,
}

/// The cell of an engine and a share of local memory.
fn cell(engine: &str, local: &str, of: &Of) -> Cell {
    far(&[
        ("engine", engine),
        ("local", local),
        ("of", if engine == "swap" { &of.group } else { &of.own }),
        ("rtt", RTT),
        ("bandwidth", BANDWIDTH),
        ("link", "per-fault"),
    ])
}

/// All cells of a program.
fn cells(locals: &[&str], of: &Of) -> Vec<Cell> {
    let far = ENGINES.iter().flat_map(|engine| locals.iter().map(|local| cell(engine, local, of)));
    // The run with all memory local in the swap engine shows the group's peak.
    let sizing = waits_for_group(of).then(|| Cell::zero(Some("swap")));
    [Cell::NATIVE].into_iter().chain(sizing).chain(far).collect()
}

/// Whether shares of the group are of its peak, which a run must show first.
fn waits_for_group(of: &Of) -> bool {
    of.group == "peak"
}

// A shell command that runs `words` on one processor.
fn pinned(processor: u32, words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    format!("taskset -c {processor} {}", quoted.join(" "))
}

/// A shell command that loads a server from one processor.
fn load(server: Server, processor: u32, keys: u32, more: &[&str]) -> String {
    let mut words = vec!["{afar}".to_owned()];
    words.extend(server.load(keys));
    words.extend(more.iter().map(|&word| word.to_owned()));
    pinned(processor, &words)
}

/// The command line of a shell script.
fn shell(script: &str) -> [String; 3] {
    ["sh", "-c", script].map(str::to_owned)
}

// The measured load of Redis, alone or beside memcached; Redis is filled before.
fn asked(keys: u32, seconds: u32) -> String {
    let duration = format!("{seconds}s");
    let more = ["--warm-up", "500ms", "--duration", duration.as_str(), "--json", "-"];
    load(Server::Redis, 0, keys, &more)
}

/// A shell command that fills a server.
fn fill(server: Server, processor: u32, keys: u32) -> String {
    load(server, processor, keys, &["--fill", "--requests", "1"])
}

/// The experiment with Redis alone.
fn alone(keys: u32, seconds: u32) -> String {
    let server = shell(&format!("exec {}", pinned(0, &Server::Redis.command())));
    let asked = asked(keys, seconds);
    let load = shell(&format!("set -e; {}; {asked}", fill(Server::Redis, 0, keys)));
    experiment(&server, Server::Redis, &load)
}

/// The experiment with Redis beside memcached, which is under load all the time.
fn beside(keys: u32, seconds: u32) -> String {
    let [redis, memcached] = [(0, Server::Redis), (1, Server::Memcached)]
        .map(|(processor, server)| pinned(processor, &server.command()));
    let servers = shell(&format!(
        "{memcached} & m=$!; {redis} & r=$!; trap 'kill $m $r; wait; exit 0' TERM; wait"
    ));
    let other = load(Server::Memcached, 1, keys, &["--duration", "100s"]);
    let load = shell(&format!(
        "set -e; until [ -S {{dir}}/memcached ]; do sleep 0.02; done; {}; {}; \
         {other} >{{dir}}/other 2>&1 & o=$!; {}; kill $o; wait $o || true",
        fill(Server::Memcached, 1, keys),
        fill(Server::Redis, 0, keys),
        asked(keys, seconds),
    ));
    experiment(&servers, Server::Redis, &load)
}

/// Collects the results of each share of local memory.
fn points((locals, of): (&[&str], &Of), alone: &Runs, beside: &Runs) -> Vec<Point> {
    let of = |runs: &Runs, local: &str| ENGINES.map(|engine| runs.value(&cell(engine, local, of)));
    let point = |local: &&str| Point {
        local: local.trim_end_matches('%').parse().unwrap_or(0.0),
        alone: of(alone, local),
        beside: of(beside, local),
    };
    locals.iter().map(point).collect()
}

/// The report from all points and the native throughputs.
fn report(points: &[Point], native: [Option<f64>; 2]) -> Report {
    let verdicts = verdicts(points);
    let caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    Report {
        title: format!("{}, Fig. 5: Redis beside memcached", paper::SOURCE),
        table: rows(points, native),
        picture: picture(points, &caption),
        verdicts,
        points: Value::Array(points.iter().map(record).collect()),
        paper: json!({
            "lost_beside": {"own": paper::BESIDE[0], "shared": paper::BESIDE[1]},
            "local_percent": paper::FIG5_LOCAL,
            "requests_per_s": {
                "own": paper::FIG5_DIME,
                "swap": paper::FIG5_SWAP,
                "swap_beside": paper::FIG5_SWAP_BESIDE,
            },
        }),
    }
}

/// A point for the record.
fn record(point: &Point) -> Value {
    let of = |values: [Option<f64>; 2]| json!({"arena": values[0], "swap": values[1]});
    json!({
        "local_percent": point.local,
        "alone_per_s": of(point.alone),
        "beside_per_s": of(point.beside),
        "lost": of([0, 1].map(|engine| point.lost(engine))),
    })
}

/// The table as text.
fn rows(points: &[Point], native: [Option<f64>; 2]) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| NONE.to_owned(), kilo);
    let lost = |lost: Option<f64>| lost.map_or_else(|| NONE.to_owned(), percent);
    let head = ["Redis, requests/s", "own", "beside", "lost", "shared", "beside", "lost"];
    let mut rows = vec![row(head)];
    for point in points {
        rows.push(row([
            &format!("{} % local", point.local),
            &rate(point.alone[0]),
            &rate(point.beside[0]),
            &lost(point.lost(0)),
            &rate(point.alone[1]),
            &rate(point.beside[1]),
            &lost(point.lost(1)),
        ]));
    }
    let without = native[0].zip(native[1]).map(|(alone, beside)| 1.0 - beside / alone);
    format!(
        "{}own: the arena engine, a budget for each; shared: the swap engine, one group for both\n\
         without afar: {} alone, {} beside, {} lost\n",
        table(&rows),
        rate(native[0]),
        rate(native[1]),
        lost(without)
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let lost =
        |engine| -> Vec<f64> { points.iter().filter_map(|point| point.lost(engine)).collect() };
    let (own, shared) = (lost(0), lost(1));
    if !own.is_empty() {
        let most = own.iter().map(|lost| lost.abs()).fold(0.0, f64::max);
        let claim = format!(
            "with its own budget Redis is {} slower beside memcached in the median, and no more \
             than {} off what it is alone; {} is enough, and the paper's {:.0} %",
            percent(median(own.iter().copied())),
            percent(most),
            percent(OWN_MOST),
            paper::BESIDE[0] * 100.0
        );
        let why = "two processors run two servers, their loads, the supervisor and whatever else \
                   there is; budgets do not share those out";
        verdicts.push(Verdict::because(most <= OWN_MOST, claim, why));
    }
    if !own.is_empty() && !shared.is_empty() {
        // A server cannot gain from another one beside it: the machine had other work.
        let is_gain = own.iter().chain(&shared).any(|lost| *lost < -OWN_MOST);
        let (own, shared) = (median(own), median(shared));
        let holds = shared > 0.0 && shared >= SHARED_RATIO * own.abs();
        let claim = format!(
            "in one group with memcached it is {} slower in the median, which is to be at least \
             {SHARED_RATIO} times the {} above; the paper's up to {:.0} %",
            percent(shared),
            percent(own),
            paper::BESIDE[1] * 100.0
        );
        let why = "the kernel keeps what is used most, and of the group's memory Redis uses most";
        verdicts.push(if is_gain {
            Verdict::undecided(claim, "Redis was faster beside memcached, which cannot be")
        } else {
            Verdict::because(holds, claim, why)
        });
    }
    let both = points.iter().filter_map(|point| Some((point, point.alone[0]?, point.alone[1]?)));
    let both: Vec<(&Point, f64, f64)> = both.collect();
    if !both.is_empty() {
        let is_below = |(_, arena, swap): &&(&Point, f64, f64)| arena <= swap;
        let below: Vec<String> =
            both.iter().filter(is_below).map(|(point, ..)| format!("{} %", point.local)).collect();
        let least = both.iter().map(|(_, arena, swap)| arena / swap).fold(f64::MAX, f64::min);
        let mut claim = format!(
            "with its own budget Redis alone is faster than in the swap engine at every share of \
             local memory, {least:.2} times at least; the paper's too"
        );
        if !below.is_empty() {
            claim += &format!("; not at {}", below.join(", "));
        }
        let why = "other work on this machine took processor time in some runs";
        verdicts.push(Verdict::because(below.is_empty(), claim, why));
    }
    verdicts
}

fn picture(points: &[Point], caption: &[String]) -> String {
    let line = |of: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        points.iter().filter_map(|point| Some((point.local, of(point)?))).collect()
    };
    let ours = |name: &str, colour, points| Series {
        name: name.to_owned(),
        colour,
        points,
        kind: Kind::Ours,
    };
    let theirs = |values: [f64; 2], colour| Series {
        name: String::new(),
        colour,
        points: paper::FIG5_LOCAL.into_iter().zip(values).collect(),
        kind: Kind::Theirs,
    };
    let throughput = vec![
        ours("own budget, alone", BLUE, line(&|point| point.alone[0])),
        ours("own budget, beside memcached", chart::SKY, line(&|point| point.beside[0])),
        ours("swap, alone", GREEN, line(&|point| point.alone[1])),
        ours("swap, one group with memcached", ORANGE, line(&|point| point.beside[1])),
        theirs(paper::FIG5_DIME, BLUE),
        theirs(paper::FIG5_SWAP, GREEN),
        theirs(paper::FIG5_SWAP_BESIDE, ORANGE),
    ];
    let percent = |engine| line(&|point: &Point| Some(point.lost(engine)? * 100.0));
    let level = |share: f64, colour| Series {
        name: String::new(),
        colour,
        points: paper::FIG5_LOCAL.map(|local| (local, share * 100.0)).to_vec(),
        kind: Kind::Bound,
    };
    let lost = vec![
        ours("own budget, beside memcached", chart::SKY, percent(0)),
        ours("swap, one group with memcached", ORANGE, percent(1)),
        level(paper::BESIDE[0], chart::SKY),
        level(paper::BESIDE[1], ORANGE),
    ];
    let all = points.iter().flat_map(|point| point.alone.into_iter().chain(point.beside).flatten());
    let most = all.fold(20_000.0, f64::max) * 1.3;
    let local = Axis::from_zero("local memory, %", 60.0);
    let charts = [
        Chart {
            title: "requests a second".to_owned(),
            x: local.clone(),
            y: Axis::decades("", 1_000.0, most),
            series: throughput,
        },
        Chart {
            title: "% lost beside memcached".to_owned(),
            x: local,
            y: Axis::from_zero("", 60.0),
            series: lost,
        },
    ];
    let note = "Hollow and dashed: the paper's, on its machine.".to_owned();
    let caption: Vec<String> = [note].into_iter().chain(caption.iter().cloned()).collect();
    let title = format!("{}, Fig. 5: Redis beside memcached, 5 µs, 100 Gb/s", paper::SOURCE);
    draw(&title, &charts, 2, &caption)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweep::Sweep;

    fn holds(alone: [f64; 2], beside: [f64; 2]) -> Vec<bool> {
        let point = Point { local: 20.0, alone: alone.map(Some), beside: beside.map(Some) };
        verdicts(&[point]).iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn a_tenth_may_be_lost_and_twice_that_must_be_in_shared_memory() {
        assert_eq!(holds([100.0, 80.0], [90.0, 64.0]), [true, true, true]);
        assert_eq!(holds([100.0, 80.0], [89.0, 64.0]), [false, false, true]);
        assert_eq!(holds([100.0, 80.0], [120.0, 64.0]), [false, false, true], "it was disturbed");
        assert_eq!(holds([100.0, 80.0], [95.0, 73.0]), [true, false, true]);
        assert_eq!(holds([100.0, 100.0], [101.0, 101.0]), [true, false, false]);
    }

    // A gain beside another server is no loss of nothing, which any other loss would be twice of.
    #[test]
    fn a_gain_beside_another_server_decides_nothing() {
        let point = |beside| Point { local: 20.0, alone: [Some(100.0); 2], beside };
        let judged = verdicts(&[point([Some(283.0), Some(67.0)])]);
        assert!(judged[1].undecided.is_some(), "{judged:?}");
        assert!(judged[1].text().starts_with("undecided, because"), "{judged:?}");
        assert!(verdicts(&[point([Some(99.0), Some(67.0)])])[1].holds);
    }

    #[test]
    fn without_swap_only_the_first_is_judged() {
        let point = Point { local: 20.0, alone: [Some(1.0), None], beside: [Some(1.0), None] };
        assert_eq!(verdicts(&[point]).len(), 1);
        assert!(verdicts(&[]).is_empty());
        let drawn = picture(&[point], &[]);
        assert!(!drawn.contains("NaN"), "{drawn}");
    }

    #[test]
    fn experiments_can_be_read() {
        for text in [alone(10, 1), beside(10, 1)] {
            let sweep = Sweep::own(&text);
            assert_eq!(sweep.workload.command[..2], ["sh", "-c"]);
        }
        let of = Of { own: "1048576".to_owned(), group: "peak".to_owned() };
        assert_eq!(cells(FULL, &of).len(), 14);
        let far = cells(&["20%"], &of).into_iter().map(|cell| cell.name()).collect::<Vec<_>>();
        assert!(far[2].starts_with("local=20% of=1048576 "), "{far:?}");
        assert!(far[3].starts_with("engine=swap local=20% of=peak "), "{far:?}");
        let live = Of { own: "live".to_owned(), group: "live".to_owned() };
        assert_eq!(cells(FULL, &live).len(), 13);
    }
}
