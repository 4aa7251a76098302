//! What the record of a run says about the memory that was managed, added up anew from its process
//! images: a test whose program ran natively has tested nothing.

use std::fmt::Write as _;
use std::path::Path;

use measure::{COVERAGE_BOUND, ImageSummary, MEMORY_SMALL, Run, RunResults};

/// Asserts that the run was valid, its largest image managed, and enough of its memory.
#[track_caller]
pub(super) fn check(record: &Path, words: &str) {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    if let Err(why) = judge(&text) {
        panic!("{words}: the run says nothing: {why}");
    }
}

/// Whether a signal ended the program before it had any memory to speak of.
pub(super) fn is_cut_short(record: &Path) -> bool {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    let run = Run::<RunResults>::from_json(&text);
    // Until its first call for memory a program has only what the kernel gave it.
    let had_none = |results: &RunResults| {
        let all: u64 = results.images.iter().map(ImageSummary::memory_bytes).sum();
        results.tells_nothing() || all <= MEMORY_SMALL.get()
    };
    run.is_ok_and(|run| run.results.signal.is_some() && had_none(&run.results))
}

fn judge(record: &str) -> Result<(), String> {
    let run = Run::<RunResults>::from_json(record).map_err(|error| error.to_string())?;
    let results = &run.results;
    let told = describe(&results.images);
    results.figures().map_err(|invalid| format!("{invalid}\n{told}"))?;
    let largest = results.images.iter().max_by_key(|image| (image.memory_bytes(), image.managed));
    if !largest.is_some_and(|image| image.managed) {
        return Err(format!("its largest image was not managed\n{told}"));
    }
    let sum = |of: fn(&ImageSummary) -> u64| results.images.iter().map(of).sum::<u64>();
    let (managed, all) = (sum(|image| image.managed_peak_bytes), sum(ImageSummary::memory_bytes));
    let share = (all > 0).then(|| managed as f64 / all as f64);
    let said = results.coverage.share;
    // What was written and read again may be off in the last digit.
    let is_said = match (share, said) {
        (Some(share), Some(said)) => (share - said).abs() < 1e-9,
        (share, said) => share == said,
    };
    if !is_said {
        return Err(format!("{managed} of {all} bytes are not a share of {said:?}\n{told}"));
    }
    if share.is_some_and(|share| share < COVERAGE_BOUND) {
        return Err(format!("only {managed} of {all} bytes were managed\n{told}"));
    }
    Ok(())
}

fn describe(images: &[ImageSummary]) -> String {
    let mut out = String::new();
    for image in images {
        let why = image.why_unmanaged.as_deref().unwrap_or("managed");
        let _infallible = writeln!(
            out,
            "  {} (pid {}), {why}: {} B managed; {} B anonymous and {} B shared stayed local",
            image.name,
            image.pid,
            image.managed_peak_bytes,
            image.unmanaged_anon_bytes,
            image.unmanaged_shared_bytes
        );
    }
    out
}
