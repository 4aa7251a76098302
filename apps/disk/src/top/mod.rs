//! `afar top`: shows what a target does, by reading its metrics periodically.
//!
//! ```text
//! scrape ─► text ─► sample: counters ─► view: difference of two samples ─► table, JSON
//! ```

mod error;
pub(crate) mod flags;
mod leases;
mod line;
mod sample;
mod scrape;
mod view;

use std::process::ExitCode;
use std::time::{Duration as Timeout, Instant};

use console::{Failure, Output, Screen, terminal};
use measure::Duration;
use results::live::TargetView;
use sys::event::{Poll, Signals};

use crate::serve::with_port;
use crate::top::flags::TopFlags;

use sample::Sample;

pub(crate) use error::TopError;

const PORT: u16 = 9420;
const INTERVALS: [Duration; 2] = [Duration::from_ms(100), Duration::from_ms(3_600_000)];

/// Runs `afar top`.
///
/// # Errors
/// When `--interval` is out of range, or the target does not answer with its metrics.
pub fn top(flags: &TopFlags) -> Result<ExitCode, Failure> {
    let [shortest, longest] = INTERVALS;
    if flags.interval < shortest || flags.interval > longest {
        return Err(TopError::Interval(flags.interval).into());
    }
    let signals = console::interrupts_and_hangups().map_err(TopError::from)?;
    let address = with_port(&flags.address, PORT).map_err(TopError::from)?;
    let mut last = look(&address)?;
    let [json, csv] = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let (json, mut csv) = (json?, csv?);
    let is_answered = [&json, &csv].into_iter().flatten().any(Output::is_stdout);
    let mut json = json.map(Output::lines).transpose()?;
    let screen = if flags.once || is_answered { None } else { Screen::enter() };
    let interval = Timeout::from_nanos(flags.interval.as_ns());
    let mut due = Instant::now();
    loop {
        due += interval;
        if is_told_to_end(&signals, due)? {
            drop(screen);
            let code = if flags.once { Err(TopError::Interrupted) } else { Ok(ExitCode::SUCCESS) };
            return code.map_err(Failure::from);
        }
        let sample = look(&address)?;
        let view = view::between(&last, &sample);
        last = sample;
        let mut goes_on = match &mut json {
            Some(lines) => lines.write(&view::to_json(&view))?,
            None => true,
        };
        if let Some(csv) = csv.take() {
            csv.write(&view::to_csv(&view))?;
        }
        goes_on &= match &screen {
            _ if is_answered => true,
            Some(screen) => screen.draw(&view::to_table(&view))?,
            None => terminal::show(&view::to_table(&view))?,
        };
        if !goes_on || flags.once {
            return Ok(ExitCode::SUCCESS);
        }
        // After a slow answer, missed intervals are skipped.
        due = due.max(Instant::now() - interval);
    }
}

/// Returns the target's view of the time since the last call.
pub type Looks = Box<dyn FnMut() -> Result<TargetView, String> + Send>;

/// Reads the metrics at `address`. Each call of the returned function reads them again, and returns
/// the difference; after a restart of the target, everything since its start.
///
/// # Errors
/// A sentence, when the target does not answer with its metrics: here, or from a later call.
pub fn watched(address: &str) -> Result<Looks, String> {
    let address = with_port(address, PORT).map_err(|error| error.to_string())?;
    let mut last = look(&address).map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let now = look(&address).map_err(|error| error.to_string())?;
        let seen = view::between(&last, &now);
        last = now;
        Ok(seen)
    }))
}

// Reads a target's metrics.
fn look(address: &str) -> Result<Sample, TopError> {
    let text = scrape::fetch(address)?;
    let strange = |reason| TopError::Strange { address: address.to_owned(), reason };
    Sample::read(&text).map_err(strange)
}

// Waits until `until`, or for a signal; returns whether there was one.
fn is_told_to_end(signals: &Signals, until: Instant) -> Result<bool, TopError> {
    let mut poll = Poll::new()?;
    poll.add(signals, 0)?;
    let mut ready = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        poll.wait(Some(left), &mut ready)?;
        if signals.next().is_some() {
            return Ok(true);
        }
    }
}
