//! Jobs, phase by phase: those of a phase run together, and a phase begins when the one before has
//! ended.

use std::ops::Range;

use flash::load::{Device, LoadConfig, Tally};

use super::error::BenchError;
use super::job::Job;
use super::plan::{Devices, Plan, Source};
use super::processors::Processors;
use crate::session::Session;

/// A load that can begin.
pub(crate) struct Ready<'a> {
    pub(crate) job: &'a Job,
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) config: LoadConfig,
    pub(crate) device: Device,
}

/// What came of a job.
pub(crate) struct Outcome<'a> {
    pub(crate) ready: &'a Ready<'a>,
    pub(crate) tally: Tally,
    /// From 0; jobs are reported together if theirs is the same and they are to be.
    pub(crate) group: usize,
}

/// What came of jobs that ran together.
pub(crate) struct Phase<'a> {
    pub(crate) outcomes: Vec<Outcome<'a>>,
    pub(crate) processors: Processors,
}

impl<'a> Ready<'a> {
    /// Opens the disk of a load.
    ///
    /// # Errors
    /// When it cannot be reached, or the load does not fit.
    pub(crate) fn open(plan: Plan<'a>, devices: &mut Devices) -> Result<Self, BenchError> {
        let device = devices.open(&plan)?;
        let config = plan.config(device.geometry(), device.request_bytes_max())?;
        let Plan { job, source, target, .. } = plan;
        Ok(Self { job, source, target, config, device })
    }

    // Whether one verifies what the other writes.
    fn disturbs(&self, other: &Self) -> bool {
        let [one, its] = [self.config.region, other.config.region];
        let overlaps = one[0] < its[0] + its[1] && its[0] < one[0] + one[1];
        let writes = self.config.read_percent < 100;
        self.target == other.target && overlaps && other.config.verifies && writes
    }
}

/// Which jobs run together, by their places: another begins where one waits for those above it.
pub(crate) fn phases(jobs: &[Job]) -> Vec<Range<usize>> {
    let waits = |(index, job): (usize, &Job)| (index > 0 && job.waits).then_some(index);
    let starts = jobs.iter().enumerate().filter_map(waits);
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let ends = starts[1..].iter().copied().chain([jobs.len()]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

/// The group of each job.
fn groups(jobs: &[&Ready<'_>]) -> Vec<usize> {
    let begins = |(index, ready): (usize, &&Ready<'_>)| {
        usize::from(index > 0 && (ready.job.waits || ready.job.begins_group))
    };
    jobs.iter()
        .enumerate()
        .map(begins)
        .scan(0, |group, begins| {
            *group += begins;
            Some(*group)
        })
        .collect()
}

/// The first job that would find wrong what another writes at the same time, and that other.
pub(crate) fn disturbed<'a>(jobs: &'a [Ready<'a>]) -> Option<(usize, &'a str)> {
    let pairs = (0..jobs.len()).flat_map(|one| (0..jobs.len()).map(move |other| (one, other)));
    let mut pairs = pairs.filter(|(one, other)| one != other);
    let found = pairs.find(|(one, other)| jobs[*other].disturbs(&jobs[*one]));
    found.map(|(one, other)| (one, jobs[other].job.name.as_str()))
}

/// Runs all phases; those that have run if it is interrupted.
///
/// # Errors
/// When a load cannot begin.
pub(crate) fn run<'a>(
    session: &mut Session,
    jobs: &'a [Ready<'a>],
    phases: &[Range<usize>],
) -> Result<Vec<Phase<'a>>, BenchError> {
    let groups = groups(&jobs.iter().collect::<Vec<_>>());
    let mut done = Vec::new();
    for (index, range) in phases.iter().enumerate() {
        if session.is_interrupted() {
            break;
        }
        let together = &jobs[range.clone()];
        let what = match phases.len() {
            1 => String::new(),
            all => format!("phase {} of {all}  ", index + 1),
        };
        let mut processors = Processors::of(together.iter().map(|one| &one.source), what);
        let loads: Vec<_> = together.iter().map(|one| (one.config, one.device.clone())).collect();
        let tallies = session.run(&loads, &mut processors).map_err(BenchError::Load)?;
        let outcomes = together
            .iter()
            .zip(tallies)
            .zip(&groups[range.clone()])
            .map(|((ready, tally), group)| Outcome { ready, tally, group: *group })
            .collect();
        done.push(Phase { outcomes, processors });
    }
    Ok(done)
}
