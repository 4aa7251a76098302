//! What the four jobs have in common.

use std::error::Error;

use measure::{WorkloadInput, WorkloadOutcome};

/// A job over generated data. The order of calls is prepare, run, verify, as often as the job is
/// repeated; the other methods are called afterwards.
pub(crate) trait Job {
    /// As in the command.
    fn name(&self) -> &'static str;

    /// Makes the data, or makes it as it was again. Not timed.
    fn prepare(&mut self);

    /// The job. Timed.
    fn run(&mut self);

    /// Checks the result and answers its checksum. Not timed.
    ///
    /// # Errors
    /// When the result is wrong.
    fn verify(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>>;

    /// How much there was and what was found, for people.
    fn facts(&self) -> String;

    /// The same for programs: what there was.
    fn input(&self) -> WorkloadInput;

    /// What was found, and how much of it per second if it took `seconds`.
    fn outcome(&self, seconds: f64) -> WorkloadOutcome;
}
