//! The command `afar`: the table of its commands. Only here are applications connected.
//!
//! ```text
//! command line ─► Cli ─► row of COMMANDS ─► application ─► exit status, or Failure in one sentence
//! ```

mod about;
mod command;
mod doctor;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod groups;
mod pages;
mod point;
#[cfg(test)]
mod python;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use console::{Class, Failure, SpeechFlags, Stream, Tone, terminal, usage};

command::table! {
    Run(memory::RunFlags) => memory::run,
    Sweep(sweep::SweepFlags) => sweep::sweep,
    Load(kv::LoadFlags) => kv::load,
    Kv(kv::StoreFlags) => kv::kv,
    Serve(disk::ServeFlags) => disk::serve,
    Top(disk::TopFlags) => disk::top,
    Discover(disk::DiscoverFlags) => disk::discover,
    Identify(disk::IdentifyFlags) => disk::identify,
    Attach(disk::AttachFlags) => disk::attach,
    Bench(disk::BenchFlags) => disk::bench,
    Torture(torture::TortureFlags) => torture::torture,
    Report(report::ReportFlags) => report,
    Watch(report::WatchFlags) => watch,
    Reproduce(paper::ReproduceFlags) => paper::reproduce,
    Sim(fabric::SimFlags) => fabric::sim,
    Loop(fabric::LoopFlags) => fabric::closed_loop,
    Predict(memory::PredictFlags) => memory::predict,
    Plan(plan::PlanFlags) => plan::plan,
    Workload(kv::WorkloadFlags) => kv::workload,
    Ctl(memory::CtlFlags) => memory::ctl,
    Doctor(doctor::DoctorFlags) => doctor::doctor,
    Probe(memory::ProbeFlags) => memory::probe,
    Keep(memory::KeepFlags) => memory::keep,
    Point(dispatch::PointFlags) => point::point,
    Version(about::VersionFlags) => about::version,
    Man(pages::ManFlags) => man,
    Completions(pages::CompletionsFlags) => completions,
}

/// Run programs with part of their memory far away, and serve and load flash over the network.
#[derive(Debug, Parser)]
#[command(name = "afar", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Each command explains itself: afar run --help")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    speech: SpeechFlags,
}

fn main() -> ExitCode {
    let began = Instant::now();
    let mut program = Cli::command();
    let parsed = program.try_get_matches_from_mut(asked(std::env::args_os())).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))?;
        Ok((cli, matches))
    });
    let (Cli { command, speech }, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return not_parsed(&error),
    };
    speech.hold();
    if console::is_verbose() {
        for line in usage::settings(&Cli::command(), &matches) {
            terminal::detail(|| line);
        }
    }
    let status = command.execute().unwrap_or_else(|failure| {
        let name = usage::name(&Cli::command());
        terminal::say(&format!("{} {failure}\n", wrong(&format!("{name}:"))));
        failure.class().into()
    });
    let name = command.name();
    terminal::detail(|| format!("{name} took {:.3} s", began.elapsed().as_secs_f64()));
    status
}

/// The command line, with `afar help COMMAND` rewritten to `afar COMMAND --help`.
fn asked(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Runs `afar report`. For sections about a sweep it needs `afar sweep`'s reader of directories.
fn report(flags: &report::ReportFlags) -> Result<ExitCode, Failure> {
    report::report(flags, &sweep::findings_of)
}

/// Runs `afar watch`, which gets the state of each kind of work from its application.
fn watch(flags: &report::WatchFlags) -> Result<ExitCode, Failure> {
    let sources = report::Sources {
        sweep: sweep::state_of,
        simulations: fabric::progress_of,
        run: memory::state_of,
        runs: memory::states,
        target: disk::watched,
    };
    report::watch(flags, sources)
}

fn man(flags: &pages::ManFlags) -> Result<ExitCode, Failure> {
    pages::man(flags, Cli::command())
}

fn completions(flags: &pages::CompletionsFlags) -> Result<ExitCode, Failure> {
    pages::completions(flags, &mut Cli::command())
}

/// Prints help or version, or else the error in a sentence; returns the exit status.
fn not_parsed(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let _unread = terminal::answer(&match console::has_color(Stream::Answer) {
                true => text.ansi().to_string(),
                false => text.to_string(),
            });
            ExitCode::SUCCESS
        }
        _ => {
            let (name, text) = usage::sentence(error, &Cli::command());
            terminal::say(&format!("{} {text}\n", wrong(&format!("{name}:"))));
            Class::Usage.into()
        }
    }
}

/// The command's name in front of an error, in the colour of errors.
fn wrong(name: &str) -> String {
    console::tinted(Stream::Message, Tone::Bad, name)
}
