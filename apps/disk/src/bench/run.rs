//! Runs jobs phase by phase: jobs of a phase run together; a phase begins when the one before ends.

use std::ops::Range;

use diskload::{Device, LoadConfig, Tally};

use super::error::BenchError;
use super::job::Job;
use super::plan::{Devices, Plan, Source, pace};
use super::processors::Processors;
use client::Session;

/// A load whose disk is open.
#[derive(Clone)]
pub(crate) struct Ready {
    pub(crate) job: Job,
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) config: LoadConfig,
    pub(crate) device: Device,
}

/// The result of a job.
pub(crate) struct Outcome {
    pub(crate) ready: Ready,
    pub(crate) tally: Tally,
    /// The number of its group, from 0. Jobs of a group are reported together if `is_grouped`.
    pub(crate) group: usize,
}

/// The results of jobs that ran together.
pub(crate) struct Phase {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) processors: Processors,
}

impl Ready {
    /// Opens the disk of a load.
    ///
    /// # Errors
    /// When the disk cannot be opened or reached, or the load does not fit on it.
    pub(crate) fn open(plan: Plan<'_>, devices: &mut Devices) -> Result<Self, BenchError> {
        let device = devices.open(&plan)?;
        let config = plan.config(device.geometry(), device.request_bytes_max())?;
        let Plan { job, source, target, .. } = plan;
        Ok(Self { job: job.clone(), source, target, config, device })
    }

    /// The same load under another name.
    pub(crate) fn named(&self, name: &str) -> Self {
        let mut other = self.clone();
        name.clone_into(&mut other.job.name);
        other
    }

    /// The same load at `rate` requests per second.
    pub(crate) fn at(mut self, rate: f64) -> Self {
        self.job.rate = Some(rate);
        self.config.pace = pace(&self.job);
        self
    }

    // Whether this load writes where `other` verifies.
    fn disturbs(&self, other: &Self) -> bool {
        let [one, its] = [self.config.region, other.config.region];
        let overlaps = one[0] < its[0] + its[1] && its[0] < one[0] + one[1];
        let writes = self.config.read_percent < 100;
        self.target == other.target && overlaps && other.config.verifies && writes
    }
}

/// The phases, as ranges of jobs: a job that waits begins another phase.
pub(crate) fn phases(jobs: &[Job]) -> Vec<Range<usize>> {
    let waits = |(index, job): (usize, &Job)| (index > 0 && job.waits).then_some(index);
    let starts = jobs.iter().enumerate().filter_map(waits);
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let ends = starts[1..].iter().copied().chain([jobs.len()]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

/// The group number of each job; `new_group` or a wait begins another group.
fn groups(jobs: &[Ready]) -> Vec<usize> {
    let begins = |(index, ready): (usize, &Ready)| {
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

/// The first job whose checks would fail because another writes to its region at the same time, as
/// its index, and the name of the other.
pub(crate) fn disturbed(jobs: &[Ready]) -> Option<(usize, &str)> {
    let pairs = (0..jobs.len()).flat_map(|one| (0..jobs.len()).map(move |other| (one, other)));
    let mut pairs = pairs.filter(|(one, other)| one != other);
    let found = pairs.find(|(one, other)| jobs[*other].disturbs(&jobs[*one]));
    found.map(|(one, other)| (one, jobs[other].job.name.as_str()))
}

/// Runs all phases. After an interrupt it returns those that have run.
///
/// # Errors
/// When a load cannot begin.
pub(crate) fn run(
    session: &mut Session,
    jobs: &[Ready],
    phases: &[Range<usize>],
) -> Result<Vec<Phase>, BenchError> {
    let groups = groups(jobs);
    session.expect("phase", phases.len());
    let mut done = Vec::new();
    for range in phases {
        if session.is_interrupted() {
            break;
        }
        let together = &jobs[range.clone()];
        let phase = run_together(session, together, &groups[range.clone()], String::new())?;
        let names: Vec<&str> = together.iter().map(|ready| ready.job.name.as_str()).collect();
        session.end_part(&names.join(", "));
        done.push(phase);
    }
    Ok(done)
}

/// Runs a phase; `what` begins the live line.
///
/// # Errors
/// When a load cannot begin.
pub(crate) fn run_together(
    session: &mut Session,
    jobs: &[Ready],
    groups: &[usize],
    what: String,
) -> Result<Phase, BenchError> {
    let mut processors = Processors::of(jobs.iter().map(|one| &one.source), what);
    let loads: Vec<_> = jobs.iter().map(|one| (one.config, one.device.clone())).collect();
    let tallies = session.run(&loads, &mut processors).map_err(BenchError::Load)?;
    let outcome = |((ready, tally), group): ((&Ready, Tally), &usize)| Outcome {
        ready: ready.clone(),
        tally,
        group: *group,
    };
    let outcomes = jobs.iter().zip(tallies).zip(groups).map(outcome).collect();
    Ok(Phase { outcomes, processors })
}
