//! Turns: loads on a store over one way, step by step; each turn is stored in a file.

use std::fs;
use std::path::{Path, PathBuf};

use measure::Duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::loads::{Asked, Kind, Loads, Reads};
use super::stack::{Over, Spent, Stack};
use crate::ReproduceError;

/// The results of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) over: Over,
    pub(crate) repetition: usize,
    /// Reads of one client, without other load.
    pub(crate) unloaded: Reads,
    /// A closed loop of many clients.
    pub(crate) peak: Step,
    /// Open loops.
    pub(crate) steps: Vec<Step>,
    /// A lower bound of the share of gets that read no block from the drive.
    pub(crate) cached: Option<f64>,
}

/// One load of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Requests that arrived per second; 0 in a closed loop.
    pub(crate) asked_per_s: f64,
    pub(crate) reads: Reads,
    pub(crate) spent: Spent,
}

/// The loads of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub(crate) read_percent: u8,
    pub(crate) rates: Vec<f64>,
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
}

/// Attempts of a load that other guests of the machine disturb.
const ATTEMPTS: u32 = 3;
/// Clients that keep the store busy.
pub(crate) const CLIENTS: u32 = 48;

/// Runs all loads of a turn on a store; `None` if it was interrupted.
///
/// # Errors
/// When a load cannot begin, or a request fails.
pub(crate) fn turn(
    loads: &mut Loads<'_>,
    stack: Stack<'_>,
    (over, repetition): (Over, usize),
    steps: &Steps,
) -> Result<Option<Turn>, ReproduceError> {
    let name = over.name();
    let asked =
        |kind, read_percent, warm_up| Asked { kind, read_percent, time: steps.time, warm_up };
    // The first load fills the cache.
    let what = format!("{name}, unloaded");
    let busy = asked(Kind::Closed(CLIENTS), 100, Duration::ZERO);
    let Some(_) = loads.run(&format!("{name}, warming up"), stack.address(), &busy)? else {
        return Ok(None);
    };
    let alone = asked(Kind::Closed(1), 100, steps.warm_up);
    let Some(unloaded) = loads.run(&what, stack.address(), &alone)? else { return Ok(None) };
    let load = asked(Kind::Closed(CLIENTS), steps.read_percent, steps.warm_up);
    let peak = timed(loads, &stack, &format!("{name}, all it can"), &load)?;
    let Some((reads, spent)) = peak else { return Ok(None) };
    let peak = Step { asked_per_s: 0.0, reads, spent };
    let mut open = Vec::new();
    for &rate in &steps.rates {
        let load = asked(Kind::Open(rate), steps.read_percent, steps.warm_up);
        let what = format!("{name}, {rate:.0}/s");
        let Some((reads, spent)) = timed(loads, &stack, &what, &load)? else { return Ok(None) };
        open.push(Step { asked_per_s: rate, reads, spent });
    }
    Ok(Some(Turn { over, repetition, unloaded, peak, steps: open, cached: stack.end()? }))
}

/// Runs a load after a warm-up, and measures its processor time. Repeats the load if it was
/// disturbed. `None` if it was interrupted.
///
/// # Errors
/// As [`turn`].
pub(crate) fn timed(
    loads: &mut Loads<'_>,
    stack: &Stack<'_>,
    what: &str,
    asked: &Asked,
) -> Result<Option<(Reads, Spent)>, ReproduceError> {
    let before = Asked { time: asked.warm_up, warm_up: Duration::ZERO, ..*asked };
    let Some(_) = loads.run(what, stack.address(), &before)? else { return Ok(None) };
    let counted = Asked { warm_up: Duration::ZERO, ..*asked };
    for attempt in 1.. {
        let begun = stack.used();
        let Some(reads) = loads.run(what, stack.address(), &counted)? else { break };
        let spent = stack.used().since(&begun, reads.count);
        if attempt == ATTEMPTS || !spent.is_disturbed() {
            return Ok(Some((reads, spent)));
        }
    }
    Ok(None)
}

/// Results stored as files of a directory.
#[derive(Debug)]
pub(crate) struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// Creates the directory if it is missing.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn new(directory: PathBuf) -> Result<Self, ReproduceError> {
        match fs::create_dir_all(&directory) {
            Ok(()) => Ok(Self { directory }),
            Err(source) => Err(ReproduceError::Directory { path: directory, source }),
        }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Reads the result stored under a name; `None` if there is none or it cannot be parsed.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = fs::read_to_string(self.directory.join(format!("{name}.json"))).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Stores a result under a name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(&self, name: &str, what: &impl Serialize) -> Result<(), ReproduceError> {
        let path = self.directory.join(format!("{name}.json"));
        let new = self.directory.join(format!("{name}.json.new"));
        let text = serde_json::to_string_pretty(what).unwrap_or_default();
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| ReproduceError::Directory { path, source })
    }
}

#[cfg(test)]
mod tests {
    use test_support::Scratch;

    use super::*;

    #[test]
    fn what_is_kept_is_read_and_what_is_torn_is_not() {
        let scratch = Scratch::new("kept");
        let kept = Kept::new(scratch.join("runs")).expect("a directory under target");
        let turn = Turn {
            over: Over::Nvme,
            repetition: 2,
            unloaded: Reads { count: 1, mean_us: 0.1 + 0.2, ..Reads::default() },
            peak: Step { asked_per_s: 0.0, reads: Reads::default(), spent: Spent::default() },
            steps: Vec::new(),
            cached: Some(0.125),
        };
        assert_eq!(kept.read::<Turn>("a"), None);
        kept.write("a", &turn).expect("it can be written");
        assert_eq!(kept.read("a"), Some(turn));
        fs::write(kept.path().join("a.json"), "{\"over\": \"nv").expect("it can be written");
        assert_eq!(kept.read::<Turn>("a"), None);
    }
}
