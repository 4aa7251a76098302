//! A file: a program, and the network that its traffic goes over.

use std::cell::OnceCell;
use std::path::Path;

use measure::{Bytes, LocalSize, ShareOf};
use serde::Deserialize;

use super::LoopError;
use crate::sim::SimError;
use crate::sim::setting::Settings;
use ::experiment::noise::Tolerance;
use document::{Source, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    program: Program,
    #[serde(default)]
    network: std::collections::BTreeMap<toml::Spanned<String>, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    command: Vec<String>,
    local: Value,
    of: Option<Value>,
    metric: Option<Value>,
    repetitions: Option<Value>,
    rounds: Option<Value>,
    agree: Option<Value>,
    attempts: Option<Value>,
    stolen_max: Option<Value>,
    others_max: Option<Value>,
}

/// See the module's description.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    pub(super) command: Vec<String>,
    pub(super) local: String,
    /// What a share of that is a share of.
    pub(super) of: ShareOf,
    /// The most that the program uses, once it has run with all memory local.
    pub(super) peak: OnceCell<Bytes>,
    /// Whose first group is the program's own time in seconds; else it is the wall time.
    pub(super) metric: Option<regex::Regex>,
    pub(super) repetitions: u32,
    pub(super) rounds: u32,
    /// How far two profiles may differ.
    pub(super) agree: f64,
    /// A disturbed run is repeated until it has had so many attempts.
    pub(super) attempts: u32,
    /// What else the machine may do without disturbing a run.
    pub(super) tolerance: Tolerance,
    /// Whether runs count of which much stayed local.
    pub(super) allow_unmanaged: bool,
    settings: Settings,
}

const MANY: u32 = 1000;
/// As in a sweep.
const ATTEMPTS: u32 = 3;
const TOLERANCE: Tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    /// The first thing in it that cannot be, with its place.
    pub(super) fn read(path: &Path) -> Result<Self, LoopError> {
        let source = Source::read(path).map_err(SimError::from)?;
        let document: Document = source.parse().map_err(SimError::from)?;
        let Program { command, local, of, metric, repetitions, rounds, agree, .. } =
            &document.program;
        let Program { attempts, stolen_max, others_max, .. } = &document.program;
        let wrong = |value: &Value, message: String| {
            LoopError::from(SimError::from(source.wrong(&value.span(), message)))
        };
        if command.is_empty() {
            return Err(wrong(local, "command is empty; give a program".to_owned()));
        }
        let text = |value: &Value| value.get_ref().0.clone();
        let _local: LocalSize = source.value(local).map_err(SimError::from)?;
        let of = match of {
            None => ShareOf::Peak,
            Some(of) => source.value(of).map_err(SimError::from)?,
        };
        let number = |value: &Option<Value>, default: u32| match value {
            None => Ok(default),
            Some(value) => {
                let read = text(value).parse().ok().filter(|number| (1..=MANY).contains(number));
                let message = || format!("\"{}\": give 1 to {MANY}", text(value));
                read.ok_or_else(|| wrong(value, message()))
            }
        };
        let share = |value: &Option<Value>, default: f64| match value {
            None => Ok(default),
            Some(value) => {
                let share: measure::Fraction = source.value(value).map_err(SimError::from)?;
                Ok::<_, LoopError>(f64::from(share.ppm()) / 1e6)
            }
        };
        let pattern = |value: &Value| {
            let regex = regex::Regex::new(&text(value)).ok();
            let regex = regex.filter(|regex| regex.captures_len() == 2);
            let message = "metric: give a regular expression with one group".to_owned();
            regex.ok_or_else(|| wrong(value, message))
        };
        let mut settings = Settings::default().with("traffic", "blades");
        for (key, value) in &document.network {
            let place = document::toml_text::place(&source.name, &source.text, key.span().start);
            settings.read(key.get_ref(), &text(value), place)?;
        }
        settings.check()?;
        Ok(Self {
            command: command.clone(),
            local: text(local),
            of,
            peak: OnceCell::new(),
            metric: metric.as_ref().map(pattern).transpose()?,
            repetitions: number(repetitions, 5)?,
            rounds: number(rounds, 8)?,
            agree: share(agree, 0.05)?,
            attempts: number(attempts, ATTEMPTS)?,
            tolerance: Tolerance {
                stolen_max: share(stolen_max, TOLERANCE.stolen_max)?,
                others_max: share(others_max, TOLERANCE.others_max)?,
            },
            allow_unmanaged: false,
            settings,
        })
    }

    /// A program of afar's own, that prints how long it took.
    pub(super) fn of_workload(
        words: &[&str],
        (local, of): (&str, ShareOf),
        repetitions: u32,
    ) -> Self {
        let command = ["afar", "workload"].iter().chain(words);
        let metric = regex::Regex::new(": ([0-9.]+) s").ok();
        Self {
            command: command.map(|word| (*word).to_owned()).collect(),
            local: local.to_owned(),
            of,
            peak: OnceCell::new(),
            metric,
            repetitions,
            rounds: 1,
            agree: 0.05,
            attempts: 1,
            tolerance: TOLERANCE,
            allow_unmanaged: false,
            settings: Settings::default(),
        }
    }

    /// Local memory, unless it is a size, with what it is a share of: less than all of it.
    pub(super) fn share(&self) -> Option<(LocalSize, ShareOf)> {
        let local: LocalSize = self.local.parse().ok()?;
        local.is_share().then_some((local, self.of))
    }

    /// The network with the traffic of a record.
    pub(super) fn network(&self, record: &Path) -> Settings {
        self.settings.clone().with("faults", &record.display().to_string())
    }

    /// What was set of it.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}
