//! The file of `afar loop`: a program, and the network that carries its traffic.

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

/// A program, how it is run, and the network that carries its traffic.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    pub(super) command: Vec<String>,
    pub(super) local: String,
    /// What `local` is a share of, where it is a share.
    pub(super) of: ShareOf,
    /// The peak of the program's managed memory; empty until it has run with all memory local.
    pub(super) peak: OnceCell<Bytes>,
    /// A pattern whose group is the program's own time in seconds; `None`: the wall time.
    pub(super) metric: Option<regex::Regex>,
    pub(super) repetitions: u32,
    pub(super) rounds: u32,
    /// The largest relative difference of two profiles that agree.
    pub(super) agree: f64,
    /// The most attempts of a run that is disturbed each time.
    pub(super) attempts: u32,
    /// How much other guests and programs may take before a run is disturbed.
    pub(super) tolerance: Tolerance,
    /// Whether runs are valid although much of their memory was not managed.
    pub(super) allow_unmanaged: bool,
    settings: Settings,
}

const MANY: u32 = 1000;
/// The default of `attempts`, as in a sweep.
const ATTEMPTS: u32 = 3;
const TOLERANCE: Tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };

impl Experiment {
    /// Reads the file of `afar loop`.
    ///
    /// # Errors
    /// The first invalid key or value, with its place.
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

    /// An experiment with `afar workload`, which prints its own time.
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

    /// The share that is local, and of what; `None` if `local` is a size or 100 %.
    pub(super) fn share(&self) -> Option<(LocalSize, ShareOf)> {
        let local: LocalSize = self.local.parse().ok()?;
        local.is_share().then_some((local, self.of))
    }

    /// The network's settings, with the page faults in `record` as traffic.
    pub(super) fn network(&self, record: &Path) -> Settings {
        self.settings.clone().with("faults", &record.display().to_string())
    }

    /// The network's settings, without a record of page faults.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}
