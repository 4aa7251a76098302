//! The command `afar`: flags in, results out. What is said here is printed here and nowhere else.
//!
//! ```text
//! flags -> experiment -> program, trap -> calibrate -> outputs -> run under watch -> summary
//! ```

mod flags;
mod setting;

mod demand;
mod experiment;
mod mechanism;
mod program;
mod trap;
mod tuning;

mod calibrate;
mod keep;
mod probe;

mod control;
mod lack;
mod live;
mod record;
mod run;
mod run_directory;
mod session;
mod setup;
mod watch;

mod curve;
mod holes;
mod initiator;
mod software;
mod summary;

mod attach;
mod bench;
mod closed_loop;
mod discover;
mod load;
mod plan;
mod predict;
mod report;
mod reproduce;
mod serve;
mod sim;
mod sweep;
mod top;
mod torture;
mod workload;

mod ctl;
mod doctor;
mod identify;
mod identify_unit;
mod pages;

mod run_failed;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};
use console::{Class, terminal, usage};

use crate::flags::{Cli, Command};

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return not_parsed(&error),
    };
    let (name, result) = match &command {
        Command::Run(flags) => ("run", run::run(flags)),
        Command::Sweep(flags) => ("sweep", sweep::sweep(flags)),
        Command::Load(flags) => ("load", load::load(flags)),
        Command::Serve(flags) => ("serve", serve::serve(flags)),
        Command::Top(flags) => ("top", top::top(flags)),
        Command::Discover(flags) => ("discover", discover::discover(flags)),
        Command::Attach(flags) => ("attach", attach::attach(flags)),
        Command::Bench(flags) => ("bench", bench::bench(flags)),
        Command::Torture(flags) => ("torture", torture::torture(flags)),
        Command::Report(flags) => ("report", report::report(flags)),
        Command::Reproduce(flags) => ("reproduce", reproduce::reproduce(flags)),
        Command::Sim(flags) => ("sim", sim::sim(flags)),
        Command::Loop(flags) => ("loop", closed_loop::closed_loop(flags)),
        Command::Predict(flags) => ("predict", predict::predict(flags)),
        Command::Plan(flags) => ("plan", plan::plan(flags)),
        Command::Workload(flags) => ("workload", workload::workload(flags)),
        Command::Ctl(flags) => ("ctl", ctl::ctl(flags)),
        Command::Doctor(flags) => ("doctor", doctor::doctor(flags)),
        Command::Probe(flags) => ("probe", probe::probe(flags)),
        Command::Keep(_) => ("keep", keep::keep()),
        Command::Man(flags) => ("man", pages::man(&flags.directory)),
        Command::Completions(flags) => ("completions", pages::completions(flags.shell)),
    };
    result.unwrap_or_else(|failure| {
        terminal::say(&format!("afar {name}: {failure}\n"));
        failure.class().into()
    })
}

/// Help and version are answers; everything else is one sentence.
fn not_parsed(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _unread = terminal::answer(&error.render().to_string());
            ExitCode::SUCCESS
        }
        _ => {
            terminal::say(&usage::sentence(error, &Cli::command()));
            Class::Usage.into()
        }
    }
}
