//! The description of a figure and how it is measured.

use crate::bed::{Bed, Drive};
use crate::error::ReproduceError;
use crate::flags::Options;
use crate::measured::Measured;
use crate::report::Report;
use crate::session::Session;

/// A figure of a paper. Each paper's folder lists its own, and the command line shows them all.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Its name on the command line and in file names.
    pub(crate) name: &'static str,
    /// The paper, the figure's number, and what it shows.
    pub(crate) about: &'static str,
    /// How long it took with `--quick` on two shared processors, in seconds; it varies by machine.
    pub(crate) quick_s: u32,
    pub(crate) run: Run,
}

/// The function that measures a figure; it returns `None` if it was interrupted before any result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// By running programs, or by simulating.
    Alone(fn(&Options) -> Result<Option<Measured>, ReproduceError>),
    /// By running loads, with a progress line.
    Watched(fn(Session, &Options) -> Result<Option<Measured>, ReproduceError>),
    /// By loading an emulated drive over each way to it.
    OnBed(Drive, fn(&mut Bed) -> Result<Option<Report>, ReproduceError>),
    /// The same by reads alone, so that it can be any other disk, too.
    OnAnyBed(Drive, fn(&mut Bed) -> Result<Option<Report>, ReproduceError>),
}

impl Figure {
    /// Whether it is measured by reads of a drive, which can be another than the paper's.
    pub(crate) const fn takes_disk(&self) -> bool {
        matches!(self.run, Run::OnAnyBed(..))
    }

    /// Measures it.
    ///
    /// # Errors
    /// When the drive, the target or the files cannot be made, or a request fails.
    pub(crate) fn measure(&self, options: &Options) -> Result<Option<Measured>, ReproduceError> {
        // Created before any thread starts, so that no thread receives the signals.
        let session = || Session::new(self.name.to_owned());
        match self.run {
            Run::Alone(run) => run(options),
            Run::Watched(run) => run(session()?, options),
            Run::OnBed(drive, run) | Run::OnAnyBed(drive, run) => {
                let Some(mut bed) = Bed::new(session()?, options, drive)? else { return Ok(None) };
                let report = run(&mut bed)?;
                bed.session.end_line();
                Ok(report.map(|report| Measured {
                    report,
                    described: bed.describe(),
                    bed: bed.record(),
                    is_interrupted: bed.session.is_interrupted(),
                }))
            }
        }
    }
}
