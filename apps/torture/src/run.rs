//! Runs a case beside the neighbour.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::Session;
use results::torture::{Felt, Verdict};

use super::case::{Case, Findings, Row, Trouble};
use super::memory::resident_bytes;
use super::neighbour::Neighbour;
use super::plan::{Plan, TortureError};

/// The results of a case.
pub(super) struct Outcome {
    pub(super) row: &'static Row,
    pub(super) verdict: Verdict,
    /// Why the case was not tried, or errors other than wrong reactions.
    pub(super) reasons: Vec<String>,
    pub(super) findings: Findings,
    pub(super) neighbour: Felt,
    /// Resident memory of the target before and after; `None` if it is not known.
    pub(super) resident_bytes: [Option<u64>; 2],
    pub(super) elapsed: Duration,
}

const CALM: Duration = Duration::from_secs(1);
const CALM_QUICK: Duration = Duration::from_millis(300);
/// Reads that the neighbour must complete before a case and after it,
const READS: u64 = 5;
/// and the time for them.
const STARVED: Duration = Duration::from_secs(10);

/// Measures the neighbour's reads without hostile peers.
///
/// # Errors
/// When no read succeeds.
pub(super) fn calm(plan: &Plan, session: &mut Session) -> Result<Felt, TortureError> {
    let neighbour = Neighbour::begin(&plan.neighbour);
    let began = Instant::now();
    let time = if plan.site.quick { CALM_QUICK } else { CALM };
    session.wait("calm", || began.elapsed() >= time || neighbour.has_ended())?;
    let felt = neighbour.end();
    if felt.read_count == 0 && !session.is_interrupted() {
        return Err(TortureError::Silent { name: plan.neighbour_name.clone() });
    }
    Ok(felt)
}

/// Runs a case; `None` if the program was interrupted.
///
/// # Errors
/// When a wait for events fails.
pub(super) fn run(
    plan: &Plan,
    row: &'static Row,
    session: &mut Session,
    line: &str,
) -> Result<Option<Outcome>, TortureError> {
    if session.is_interrupted() {
        return Ok(None);
    }
    let mut outcome = Outcome {
        row,
        verdict: Verdict::Skipped,
        reasons: Vec::new(),
        findings: Findings::default(),
        neighbour: Felt::default(),
        resident_bytes: [None, None],
        elapsed: Duration::ZERO,
    };
    if row.writes && !plan.allows_writes {
        outcome.reasons.push("it may write; --allow-writes tries it".to_owned());
        return Ok(Some(outcome));
    }
    let neighbour = Neighbour::begin(&plan.neighbour);
    let mut starved = !reads_on(&neighbour, READS);
    outcome.resident_bytes[0] = resident_bytes(&plan.pids);
    let began = Instant::now();
    let stop = AtomicBool::new(false);
    let (result, findings) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut case = Case::new(&plan.site, row, &stop);
            let result = (row.run)(&mut case);
            (result, case.into_findings())
        });
        let waited = session.wait(line, || thread.is_finished());
        stop.store(session.is_interrupted() || waited.is_err(), Ordering::Relaxed);
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        waited.map(|()| ended)
    })?;
    outcome.elapsed = began.elapsed();
    starved |= !reads_on(&neighbour, READS);
    outcome.neighbour = neighbour.end();
    outcome.resident_bytes[1] = resident_bytes(&plan.pids);
    outcome.findings = findings;
    if session.is_interrupted() {
        return Ok(None);
    }
    outcome.judge(result, starved);
    Ok(Some(outcome))
}

// Whether the neighbour completes `count` more reads in time.
fn reads_on(neighbour: &Neighbour, count: u64) -> bool {
    let (began, until) = (Instant::now(), neighbour.ended() + count);
    while neighbour.ended() < until && !neighbour.has_ended() && began.elapsed() < STARVED {
        std::thread::sleep(Duration::from_micros(200));
    }
    neighbour.ended() >= until
}

impl Outcome {
    // Sets the verdict from the reactions and from the neighbour's errors.
    fn judge(&mut self, result: Result<(), Trouble>, starved: bool) {
        let is_right = self.findings.wrong == 0;
        self.verdict = match result {
            Ok(()) if is_right && self.findings.ways > 0 => Verdict::AsStated,
            Ok(()) if is_right => {
                self.reasons.push("nothing was tried".to_owned());
                Verdict::Not
            }
            Err(Trouble::NotOffered(what)) if is_right => {
                self.reasons.push(what);
                Verdict::NotOffered
            }
            Err(Trouble::Failed(what)) => {
                self.reasons.push(what);
                Verdict::Not
            }
            _ => Verdict::Not,
        };
        let Felt { error_count, first_failure, .. } = &self.neighbour;
        if *error_count > 0 {
            let first = first_failure.as_deref().unwrap_or("its connection was lost");
            self.reasons.push(format!("the neighbour had {error_count} errors: {first}"));
            self.verdict = Verdict::Not;
        } else if starved {
            let seconds = STARVED.as_secs();
            self.reasons.push(format!("the neighbour had no answers for {seconds} s"));
            self.verdict = Verdict::Not;
        }
    }
}
