//! `afar loop`: a program makes traffic, the network makes delays, the program runs under these.
//!
//! ```text
//! run under no delay ─ record ─► sim ─► profile alone ─► run ─ record ─► sim ─► profile ─► run
//!                                        (no queueing)                     until two of them agree
//! ```
//!
//! What is reported is how much slower the program is than without delay: with the delays of a
//! network that is idle, and with those of one that carries the program's own traffic. Each run
//! under delays is compared with one without that ran beside it. `afar run` and `afar sim`
//! exchange records and profiles as files.

mod error;
mod experiment;
mod fed;
pub(crate) mod flags;
mod program;
mod round;
mod told;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::experiment::stats;
use console::{Class, Directory, Failure, Output, Progress, terminal};
use measure::DelayProfile;

use crate::closed_loop::flags::LoopFlags;

use self::experiment::Experiment;
pub use fed::{
    Fed, Feeder, Page as FedPage, Reads as FedReads, Round as FedRound, Short, Slower,
    Zero as FedZero,
};
use program::Programs;

pub(crate) use round::Traffic;
use round::{Closed, PageTimes, Round};

pub use error::{LoopError, Stopped};

/// Runs `afar loop`.
///
/// # Errors
/// If the file is invalid, the program fails, or a flow never finishes.
pub fn closed_loop(flags: &LoopFlags) -> Result<ExitCode, Failure> {
    let mut experiment = Experiment::read(&flags.experiment)?;
    experiment.allow_unmanaged = flags.allow_unmanaged;
    let directory = flags.output.clone().unwrap_or_else(|| flags.experiment.with_extension("loop"));
    let _made = Directory::make(&directory)?;
    let [json, csv] = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let (json, csv) = (json?, csv?);
    let record = Output::open(&directory.join("loop.json"))?;
    let signals = console::interrupts().map_err(LoopError::from)?;
    // One step without delay, the idle round, and at most `rounds` rounds.
    let progress = Progress::new("step", experiment.rounds as usize + 2);
    let mut turning = Turning {
        programs: Programs {
            experiment: &experiment,
            directory: &directory,
            signals: &signals,
            calibrated: None,
        },
        progress,
    };
    let closed = match turning.close() {
        Ok(closed) => closed,
        Err(Stopped::Interrupted) => {
            terminal::say("afar loop: interrupted; there is no result\n");
            return Ok(Class::Interrupted.into());
        }
        Err(Stopped::Error(LoopError::Invalid(why))) => {
            let text = results::write(&told::invalid(&experiment, &why));
            record.write(&text)?;
            json.map(|json| json.write(&text)).transpose()?;
            return Err(LoopError::Invalid(why).into());
        }
        Err(Stopped::Error(error)) => return Err(error.into()),
    };
    turning.progress.close();
    let result = told::record(&experiment, &closed);
    let text = results::write(&result);
    let rows = || console::csv_of(&serde_json::json!(result.rounds), &["seconds"]);
    let written = || text.clone();
    let shown = || told::text(&experiment, &closed, &directory);
    console::answer(shown, vec![(Some(record), &written), (json, &written), (csv, &rows)])?;
    match closed.agreed {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::shown(Class::Failed, told::DISAGREED.to_owned())),
    }
}

struct Turning<'a> {
    programs: Programs<'a>,
    progress: Progress,
}

impl Turning<'_> {
    /// Runs the program and simulates its traffic in turn until delays and traffic agree.
    fn close(&mut self) -> Result<Closed, Stopped> {
        self.progress.show("without delay");
        let zero = self.programs.run(None, "zero")?;
        let (mut profile, _) = self.simulate(&zero.record, "idle", true)?;
        self.progress.end(&format!("without delay {:.2} s", zero.seconds));
        let (zero_s, allowed) = (zero.seconds, zero.allowed);
        let mut closed = Closed { zero_s, rounds: Vec::new(), agreed: false, allowed };
        for round in 0..=self.programs.experiment.rounds {
            let name = format!("round-{round}");
            self.progress.show(&format!("{name}: the program runs"));
            let times = self.path(&format!("{}.csv", last(round)));
            let (ran, ratios) = self.programs.compare(&times, &name, &[])?;
            let (values, is_disturbed) = ratios.counting();
            let slowdown = stats::estimate(&values).expect("a program runs at least once");
            self.progress.show(&format!("{name}: its traffic is simulated"));
            closed.allowed |= ran.allowed;
            let (next, flow_slowdown) = self.simulate(&ran.record, &name, false)?;
            closed.rounds.push(Round {
                seconds: ran.seconds,
                fetch_count: ran.fetch_count,
                page: PageTimes::of(&profile),
                flow_slowdown,
                slowdown,
                is_disturbed,
                disturbed_count: ratios.disturbed_count(),
                first_disturbance: ratios.first_disturbance().map(str::to_owned),
            });
            self.progress.end(&format!("{name} {:.2} s", ran.seconds));
            let agree = self.programs.experiment.agree;
            let pages = (PageTimes::of(&profile), PageTimes::of(&next));
            profile = next;
            // The idle network agrees with the first simulation only if nothing ever waits.
            if pages.0.agrees(&pages.1, agree) {
                closed.agreed = true;
                break;
            }
        }
        Ok(closed)
    }

    /// Simulates the traffic in `record`; returns the profile of delays, also stored as CSV, and
    /// the mean slowdown of flows. With `idle` the delays are of flows alone in the network.
    fn simulate(
        &self,
        record: &Path,
        name: &str,
        idle: bool,
    ) -> Result<(DelayProfile, f64), Stopped> {
        let settings = self.programs.experiment.network(record);
        let traffic = Traffic::simulate(&settings, self.programs.signals)?;
        Ok((traffic.keep(&self.path(&format!("{name}.csv")), idle)?, traffic.slowdown()))
    }

    /// A file in the loop's directory.
    fn path(&self, name: &str) -> PathBuf {
        self.programs.directory.join(name)
    }
}

/// The name of the profile whose delays a round has.
fn last(round: u32) -> String {
    round.checked_sub(1).map_or_else(|| "idle".to_owned(), |before| format!("round-{before}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_agree_by_mean_and_tail() {
        let profile = |times: &[f64]| {
            let text: String = times.iter().map(|time| format!("4096,{time}\n")).collect();
            PageTimes::of(&text.parse().expect("it is a profile"))
        };
        let one = profile(&[1.0, 1.0, 4.0]);
        assert!((one.mean_us - 2.0).abs() < 0.01 && one.p99_us == 4.0, "{one:?}");
        assert!(one.agrees(&profile(&[1.0, 1.0, 4.1]), 0.05));
        assert!(!one.agrees(&profile(&[1.0, 1.0, 5.0]), 0.05));
        assert!(!one.agrees(&profile(&[2.0, 2.0, 4.0]), 0.05));
    }

    #[test]
    fn a_round_runs_under_the_times_of_the_one_before() {
        assert_eq!([last(0), last(1), last(2)], ["idle", "round-0", "round-1"]);
    }
}
