//! What the four jobs have in common.

use std::error::Error;

use measure::{WorkloadInput, WorkloadOutcome};

/// A job over generated data. The order of calls is prepare, run, verify, as often as the job is
/// repeated; the other methods are called afterwards.
pub(crate) trait Job {
    /// The job's name on the command line.
    fn name(&self) -> &'static str;

    /// Generates the data, or restores it for the next run. Not timed.
    fn prepare(&mut self);

    /// Does the job. Timed.
    fn run(&mut self);

    /// Checks the result and returns its checksum. Not timed.
    ///
    /// # Errors
    /// When the result is wrong.
    fn verify(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>>;

    /// The amount of data and the result, for people.
    fn facts(&self) -> String;

    /// The amount of data, for the record.
    fn input(&self) -> WorkloadInput;

    /// The result, and rates for a run that took `seconds`, for the record.
    fn outcome(&self, seconds: f64) -> WorkloadOutcome;
}
