//! Runs the cells: each is an `afar run --validate` of a program with some local memory, over a
//! target on the loopback.
//!
//! A cell that has a record in the directory is not run again.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ladder::{on, places};
use launch::{Child, ServeSpec, Waited};
use results::Validation;
use serde_json::json;
use sys::event::Signals;

use super::cell::{Cell, Ran};
use super::programs::{self, PROGRAMS, THREADS, Work};
use super::report::report;
use crate::ReproduceError;
use crate::flags::Options;
use crate::measured::Measured;

const SUBSYSTEM: &str = "nqn.2026-11.local.afar:validation";
/// The device of the target: more memory than any program uses.
const BLADE: &str = "memory:1GiB";

/// With `--quick` one in this many cells of a share of local memory runs.
const QUICK_STEP: usize = 5;
/// The directory of the programs' input.
const DATA: &str = "data";
/// The changes of the emulation whose effect is tested.
const ABLATIONS: &str = "scaled,dirty-bits,free-writes";
const LOCALS: [&str; 3] = ["20%", "35%", "50%"];

const NOT_IN_IT: &str = "\
Redis, Java and Python keep more than a tenth of their memory local as it is (stacks, data of
libraries), in all runs alike. Not in it: other machines, and a processor that is kept as busy in
emulated runs as a target and its host keep it in real ones";

/// Runs all cells; `None` if it was interrupted before any result.
///
/// # Errors
/// When the target cannot be started, or the directory cannot be written.
pub(super) fn run(options: &Options) -> Result<Option<Measured>, ReproduceError> {
    crate::programs::check(&[("taskset", "util-linux")])?;
    let signals = console::interrupts()?;
    let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let disks = vec![(SUBSYSTEM.to_owned(), BLADE.to_owned())];
    let target = ServeSpec { disks, nvme: vec![any], ..ServeSpec::default() };
    let places = places();
    let served = target.start(match places {
        None => launch::afar(),
        Some([_, other]) => on(other, launch::program()),
    })?;
    let address = served.ready.nvme.first().copied().ok_or(ReproduceError::Untraced)?;
    let uri = format!("nvme+tcp://{address}/{SUBSYSTEM}");
    let directory = options.output.join("validation");
    let failed = |source| ReproduceError::Directory { path: directory.clone(), source };
    fs::create_dir_all(&directory).map_err(failed)?;
    programs::prepare(&directory.join(DATA))?;
    let cells = cells(options.quick);
    let mut progress = console::Progress::new("cell", cells.len());
    let mut ran: Vec<Ran> = Vec::new();
    let mut is_interrupted = false;
    for cell in cells {
        let name = format!("{}, {} local", cell.name(), cell.local);
        progress.show(&name);
        let Some(outcome) = one(options, cell, (&uri, places), &directory, &signals)? else {
            is_interrupted = true;
            break;
        };
        progress.end(&name);
        ran.push((cell, outcome));
    }
    progress.close();
    drop(served);
    if ran.is_empty() {
        return Ok(None);
    }
    Ok(Some(Measured {
        report: report(&ran),
        described: format!(
            "{} cells: programs on one processor, their pages on memory of afar serve over \
             NVMe/TCP on the\nloopback; {} repetitions\n{NOT_IN_IT}\n",
            ran.len(),
            repetitions(options.quick)
        ),
        bed: json!({"blade": BLADE, "repetitions": repetitions(options.quick)}),
        is_interrupted,
    }))
}

// All cells, or a sample with `--quick`. Every program comes once before any comes again, so that
// an interrupted figure has all of them.
fn cells(is_quick: bool) -> Vec<Cell> {
    let all = LOCALS.into_iter().flat_map(|local| {
        let of = move |program| THREADS.map(|threads| Cell { program, threads, local });
        PROGRAMS.iter().flat_map(of)
    });
    match is_quick {
        true => all.filter(|cell| cell.local == LOCALS[1]).step_by(QUICK_STEP).collect(),
        false => all.collect(),
    }
}

const fn repetitions(is_quick: bool) -> u32 {
    if is_quick { 5 } else { 7 }
}

// Runs a cell unless its record exists. Returns its record or why it failed; `None` if it was
// interrupted.
fn one(
    options: &Options,
    cell: Cell,
    (uri, places): (&str, Option<[usize; 2]>),
    directory: &Path,
    signals: &Signals,
) -> Result<Option<Result<Validation, String>>, ReproduceError> {
    let size = if options.quick { "-quick" } else { "" };
    let (program, threads) = (cell.program.name, cell.threads);
    let name = format!("{program}-{threads}-{}{size}", cell.local.replace('%', ""));
    let record = directory.join(format!("{name}.json"));
    let read = || fs::read_to_string(&record).ok().and_then(|text| results::read(&text).ok());
    if let Some(found) = read() {
        return Ok(Some(Ok(found)));
    }
    let (threads, is_quick) = (cell.threads, options.quick);
    let work = Work { directory: directory.join(DATA), threads, is_quick };
    let words = match cell.program.words(&work) {
        Ok(words) => words,
        Err(missing) => return Ok(Some(Err(missing.to_string()))),
    };
    let mut command = command(options, cell, uri);
    if let Some([_, other]) = places {
        command.args(["--supervisor-cpu", &other.to_string()]);
    }
    command.arg("--json").arg(&record).arg("--");
    if let Some([first, _]) = places {
        command.args(["taskset", "-c", &first.to_string()]);
    }
    command.args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |source| ReproduceError::Start { program: "afar run".to_owned(), source };
    let mut child = Child::start(command).map_err(failed)?;
    let Waited::Ended(status) = child.wait(signals.as_fd(), None)? else { return Ok(None) };
    Ok(Some(read().ok_or_else(|| {
        let said = child.errors();
        said.lines().last().map_or_else(|| status.to_string(), str::to_owned)
    })))
}

// The command of a cell, without its output and program. Threads sleep for their pages: of a target
// on this machine one page in some thousands takes longer than the 1 ms for which the BPF trap may
// have a thread spin.
fn command(options: &Options, cell: Cell, uri: &str) -> Command {
    let mut command = launch::afar();
    let count = repetitions(options.quick).to_string();
    command.args(["run", "--quiet", "--validate", uri, "--local", cell.local]);
    command.args(["--trap", "userfaultfd"]);
    command.args(["--repetitions", &count, "--ablate", ABLATIONS]);
    let is_allowed = options.allow_unmanaged || cell.program.is_small;
    command.args(is_allowed.then_some("--allow-unmanaged"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_part_of_the_whole() {
        let (quick, whole) = (cells(true), cells(false));
        assert_eq!((quick.len(), whole.len()), (3, 36));
        let key = |cell: &Cell| (cell.program.name, cell.threads, cell.local);
        assert!(quick.iter().all(|cell| whole.iter().any(|one| key(one) == key(cell))));
        assert!(THREADS.iter().all(|&count| quick.iter().any(|cell| cell.threads == count)));
    }
}
