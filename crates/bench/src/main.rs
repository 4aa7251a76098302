//! The benchmarks of afar: each compares figures of this machine with bounds and says PASS or FAIL.
//!
//! ```text
//! flags -> context (afar, directory, rounds) -> alternating runs -> spreads -> report, record
//! ```
//!
//! The files measure: `delay` the accuracy of delays, `latency` the mean and tail of fetches,
//! `overhead` the cost of afar without a delay, `processes` the cost of a process beside thousands,
//! `law` the growth of time with the delay, `isolation` budgets side by side, `policies` eviction
//! policies against their definitions and each other, `writes` the bandwidth of write-backs,
//! `predict` predicted slowdowns, `load` the load client, `flash` disks over the network, `fair`
//! tenants beside attackers, `verdicts` conclusions of sweeps, `fabric` the speed of the network
//! simulator and `curve` its dependence on the length of a run, `swap` the swap engine, `forks`
//! stalls by forks.
//! `process`, `far`, `server` and `store` run programs; `touch` and `python` are programs under
//! test, `random` draws keys; `stats`, `report` and `progress` evaluate and print.
//!
//! Invariants:
//! - Nothing outlives a benchmark, however it ends: children die with it (parent-death signal), and
//!   a guard process removes its directory.
//! - Compared variants alternate, in opposite orders in even and odd rounds, so that drift of the
//!   machine affects all equally.
//! - A timed run is repeated, whatever it measured, when other guests of the host took too much of
//!   its processor time; the report says how often.
//! - A benchmark whose program gave a wrong answer fails and reports nothing.

mod context;
mod curve;
mod delay;
mod fabric;
mod failure;
mod fair;
mod far;
mod flags;
mod flash;
mod forks;
mod isolation;
mod latency;
mod law;
mod load;
mod overhead;
mod picture;
mod policies;
mod predict;
mod process;
mod processes;
mod progress;
mod python;
mod random;
mod report;
mod scratch;
mod server;
mod stats;
mod store;
mod swap;
mod touch;
mod turns;
mod verdicts;
mod writes;

use std::process::ExitCode;

use clap::Parser;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::{Cli, Command, CommonFlags};
use crate::report::Report;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.list {
        progress::answer(flags::LIST);
        return ExitCode::SUCCESS;
    }
    let Some(command) = &cli.command else {
        progress::complain("name a benchmark; bench --list shows them");
        return ExitCode::from(2);
    };
    match run(command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            progress::complain(&failure.to_string());
            failure.exit_code()
        }
    }
}

/// Runs a benchmark or a hidden command. Returns whether all bounds were kept.
fn run(command: &Command) -> Result<bool, Failure> {
    match command {
        Command::Delay(flags) => {
            let svg = flags.svg.as_deref();
            benchmark(&flags.common, |context| delay::run(context, svg))
        }
        Command::Overhead(flags) => {
            benchmark(&flags.common, |context| overhead::run(context, &flags.parts))
        }
        Command::Latency(flags) => benchmark(flags, latency::run),
        Command::Law(flags) => benchmark(flags, law::run),
        Command::Isolation(flags) => benchmark(flags, isolation::run),
        Command::Load(flags) => benchmark(flags, load::run),
        Command::Flash(flags) => {
            benchmark(&flags.common, |context| flash::run(context, &flags.parts))
        }
        Command::Fabric(flags) => {
            let run = if flags.curve { curve::run } else { fabric::run };
            benchmark(&flags.common, run)
        }
        Command::Policies(flags) => {
            benchmark(&flags.common, |context| policies::run(context, &flags.parts))
        }
        Command::Writes(flags) => benchmark(&flags.or_runs(writes::ROUNDS), writes::run),
        Command::Predict(flags) => benchmark(flags, predict::run),
        Command::Swap(flags) => benchmark(flags, swap::run),
        Command::Processes(flags) => benchmark(flags, processes::run),
        Command::Verdicts(flags) => benchmark(&flags.or_runs(verdicts::ROUNDS), verdicts::run),
        Command::Tenth(flags) => {
            verdicts::tenth(flags);
            Ok(true)
        }
        Command::Forks(flags) => benchmark(flags, forks::run),
        Command::Forking(flags) => forks::forking(flags).map(|()| true),
        Command::Neighbour(flags) => forks::neighbour(flags).map(|()| true),
        Command::Fair(flags) => benchmark(flags, fair::run),
        Command::Attackers(flags) => fair::attack(flags).map(|()| true),
        Command::Crowd(flags) => processes::crowd(flags).map(|()| true),
        Command::Touch(flags) => touch::touch(flags).map(|()| true),
        Command::Waits(flags) => {
            latency::waits(flags);
            Ok(true)
        }
        Command::Accesses(flags) => {
            policies::accesses(flags);
            Ok(true)
        }
        Command::Overwrite(flags) => {
            writes::overwrite(flags);
            Ok(true)
        }
        Command::Asks(flags) => overhead::asks(flags).map(|()| true),
        Command::Baseline(flags) => touch::baseline(flags).map(|()| true),
    }
}

/// Runs a benchmark and prints its report. Returns whether all bounds were kept.
fn benchmark(
    flags: &CommonFlags,
    run: impl FnOnce(&Context) -> Result<Report, Failure>,
) -> Result<bool, Failure> {
    let json = flags.json.as_deref().map(report::open).transpose()?;
    let mut context = Context::prepare(flags)?;
    context.host = far::trial(&context)?;
    let report = run(&context)?;
    context.progress.erase();
    progress::answer(&report.text(&context));
    if let Some(json) = json {
        json.write(&report.record(&context))?;
    }
    Ok(report.passes())
}
