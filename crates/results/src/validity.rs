//! How it is told whether a run is valid: one wording for summaries, sweeps, loops and reports.

use measure::{Bytes, Coverage, InvalidRun};

/// What is said first of a run that is valid because the user allowed what was not managed.
pub const ALLOWED: &str = "part of the program ran with local memory only (allowed)";

/// What is said first of a run that has not failed and says nothing of far memory.
pub const NOTHING: &str = "nothing to conclude";

/// A line about how much memory was managed and what stayed local.
#[must_use]
pub fn covered(coverage: &Coverage) -> String {
    let managed = Bytes::new(coverage.managed_bytes);
    let [anonymous, shared, files] =
        [coverage.unmanaged_anon_bytes, coverage.unmanaged_shared_bytes, coverage.file_bytes]
            .map(Bytes::new);
    let share = match coverage.share {
        // Rounded down: a run below the bound must not look as if it reached it.
        Some(share) => format!("{:.1} % managed", (share * 1000.0 + 1e-6).floor() / 10.0),
        None => "no memory seen".to_owned(),
    };
    format!(
        "{share}: {managed}; local: {anonymous} anonymous, {shared} shared, and {files} of files"
    )
}

/// `invalid: ` and the reasons.
#[must_use]
pub fn told(invalid: &InvalidRun) -> String {
    let reasons: Vec<String> = invalid.reasons.iter().map(ToString::to_string).collect();
    format!("invalid: {}", reasons.join("; "))
}
