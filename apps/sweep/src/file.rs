//! Parses and checks an experiment file (TOML).

use std::path::{Path, PathBuf};

use experiment::noise::Tolerance;
use measure::{Duration, EngineKind, Fraction, LinkMode, LocalSize, ShareOf};
use paging::PolicyKind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use console::terminal;
use document::toml_text;
use document::{Bandwidth, delay};

/// The axes, in the order in which tables show them.
pub(crate) const AXES: [&str; 9] =
    ["engine", "local", "of", "rtt", "bandwidth", "policy", "prefetch", "link", "profile"];

/// Why an experiment file is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{}: {source}; give an experiment file", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: line {line}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
    #[error("{}: {what}", path.display())]
    Value { path: PathBuf, what: String },
}

/// An experiment: a workload, its metric, and the conditions under which it runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Seed of the order of runs within blocks.
    #[serde(default = "one")]
    pub seed: u64,
    /// Blocks; in each of them every cell runs once.
    #[serde(default = "five")]
    pub repetitions: u32,
    #[serde(default = "ten_minutes")]
    timeout: String,
    /// A run is disturbed if other guests of the host took a larger share of its processor time.
    #[serde(default = "five_percent")]
    stolen_max: String,
    /// A run is disturbed if other programs kept a larger share of the processors busy.
    #[serde(default = "five_percent")]
    others_max: String,
    /// Most runs of a cell in one block, until one is undisturbed.
    #[serde(default = "three")]
    pub attempts: u32,
    /// Whether to run cells whose delay is shorter than a fault on this machine.
    #[serde(default)]
    pub allow_below_floor: bool,
    /// The program.
    pub workload: Workload,
    /// The figure of a run.
    #[serde(default)]
    pub metric: Metric,
    /// The values of all axes.
    #[serde(default)]
    pub matrix: Matrix,
    /// The settings of the requirement finder.
    #[serde(default)]
    pub find: Find,
}

/// The program, and its load if it is a server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The command that runs with far memory.
    pub command: Vec<String>,
    /// If the command is a server: the command that loads it, without far memory.
    pub load: Option<Vec<String>>,
    /// Text that the server prints when it is ready.
    pub ready_text: Option<String>,
    /// File that exists when the server is ready.
    pub ready_path: Option<String>,
    /// HOST:PORT that accepts connections when the server is ready.
    pub ready_tcp: Option<String>,
}

/// How the figure of a run is read: without a pattern or pointer it is the wall time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Regular expression whose first group is the figure.
    pub pattern: Option<String>,
    /// Pointer (RFC 6901) to the figure in JSON on standard output.
    pub json: Option<String>,
    /// Pointers to further numbers that are stored with the figure.
    #[serde(default)]
    pub further: Vec<String>,
    #[serde(default)]
    pub better: Better,
}

/// Whether lower or higher figures are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower is better, as of times.
    #[default]
    Lower,
    /// Higher is better, as of rates.
    Higher,
}

impl Better {
    /// Its word in an experiment file.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }
}

/// Values of each axis; every combination of values is a cell.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    #[serde(default, deserialize_with = "values")]
    engine: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    local: Vec<String>,
    /// What shares of local memory are shares of.
    #[serde(default, deserialize_with = "values")]
    of: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    rtt: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    bandwidth: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    policy: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    prefetch: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    link: Vec<String>,
    #[serde(default, deserialize_with = "values")]
    profile: Vec<String>,
}

/// The settings of all axes while the requirement finder moves along one, and the steps of each.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Find {
    pub(crate) engine: String,
    pub(crate) local: String,
    pub(crate) of: String,
    pub(crate) rtt: String,
    pub(crate) bandwidth: String,
    /// From the most to the least generous.
    pub(crate) local_steps: Vec<String>,
    pub(crate) rtt_steps: Vec<String>,
    pub(crate) bandwidth_steps: Vec<String>,
}

impl Default for Find {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            engine: "arena".to_owned(),
            local: "25%".to_owned(),
            of: "peak".to_owned(),
            rtt: "5us".to_owned(),
            bandwidth: "40Gbps".to_owned(),
            local_steps: texts(&["100%", "90%", "75%", "60%", "50%", "40%", "25%", "10%"]),
            rtt_steps: texts(&["2us", "3us", "5us", "10us", "20us", "40us", "100us"]),
            bandwidth_steps: texts(&[
                "100Gbps", "60Gbps", "40Gbps", "20Gbps", "10Gbps", "5Gbps", "2Gbps", "1Gbps",
            ]),
        }
    }
}

/// The default of `seed`.
const fn one() -> u64 {
    1
}

/// The default of `attempts`.
const fn three() -> u32 {
    3
}

/// The default of `repetitions`.
const fn five() -> u32 {
    5
}

/// The default of `timeout`.
fn ten_minutes() -> String {
    "600s".to_owned()
}

/// The default of `stolen_max` and `others_max`.
fn five_percent() -> String {
    "5%".to_owned()
}

impl Matrix {
    /// The values of an axis; empty if the experiment does not set it.
    pub(crate) fn axis(&self, name: &str) -> &[String] {
        match name {
            "engine" => &self.engine,
            "local" => &self.local,
            "of" => &self.of,
            "rtt" => &self.rtt,
            "bandwidth" => &self.bandwidth,
            "policy" => &self.policy,
            "prefetch" => &self.prefetch,
            "link" => &self.link,
            _ => &self.profile,
        }
    }
}

impl Sweep {
    /// Reads and checks an experiment file. Returns the experiment and the text of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a value is invalid; syntax errors have a line.
    pub(crate) fn read(path: &Path) -> Result<(Self, String), FileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| FileError::Unreadable { path: path.to_owned(), source })?;
        terminal::detail(|| format!("read {}", path.display()));
        Ok((Self::of(&text, path)?, text))
    }

    /// Parses and checks the `text` of an experiment file; errors name `path`.
    ///
    /// # Errors
    /// As [`Sweep::read`].
    pub(crate) fn of(text: &str, path: &Path) -> Result<Self, FileError> {
        Self::parse(text).map_err(|error| match error {
            Wrong::Syntax { line, message } => {
                FileError::Syntax { path: path.to_owned(), line, message }
            }
            Wrong::Value(what) => FileError::Value { path: path.to_owned(), what },
        })
    }

    /// Parses the text of an experiment that is part of this program.
    ///
    /// # Panics
    /// When the text is no valid experiment.
    pub fn own(text: &str) -> Self {
        match Self::parse(text) {
            Ok(sweep) => sweep,
            Err(Wrong::Syntax { message: why, .. } | Wrong::Value(why)) => {
                unreachable!("{why}: {text}")
            }
        }
    }

    /// Parses and checks the text of an experiment file.
    fn parse(text: &str) -> Result<Self, Wrong> {
        let sweep: Self = toml_text::parse(text)
            .map_err(|toml_text::Wrong { line, message }| Wrong::Syntax { line, message })?;
        sweep.check().map_err(Wrong::Value)?;
        Ok(sweep)
    }

    /// Checks everything but the values of axes.
    fn check(&self) -> Result<(), String> {
        let workload = &self.workload;
        if workload.command.is_empty() {
            return Err("workload.command is empty; give a program and its arguments".to_owned());
        }
        let ready = [&workload.ready_text, &workload.ready_path, &workload.ready_tcp];
        let ready = ready.iter().filter(|ready| ready.is_some()).count();
        match (&workload.load, ready) {
            (Some(load), _) if load.is_empty() => {
                return Err("workload.load is empty; give a program and its arguments".to_owned());
            }
            (Some(_), 1) | (None, 0) => {}
            (Some(_), _) => {
                return Err("workload.load needs one of ready_text, ready_path and ready_tcp, to \
                            know when to begin"
                    .to_owned());
            }
            (None, _) => return Err("workload.ready_… is for servers; give a load too".to_owned()),
        }
        if self.repetitions == 0 {
            return Err("repetitions = 0: give at least 1".to_owned());
        }
        if self.attempts == 0 {
            return Err("attempts = 0: give at least 1".to_owned());
        }
        if self.metric.pattern.is_some() && self.metric.json.is_some() {
            return Err("metric.pattern and metric.json: give only one of them".to_owned());
        }
        if let Some(pattern) = &self.metric.pattern {
            let regex = regex::Regex::new(pattern).map_err(|error| no_pattern(pattern, &error))?;
            if regex.captures_len() != 2 {
                return Err(format!(
                    "metric.pattern: {pattern:?}: put the figure, and nothing else, in parentheses"
                ));
            }
        }
        let timeout = self.timeout.parse::<Duration>();
        timeout.map_err(|error| format!("timeout: {error}"))?;
        for (name, share) in [("stolen_max", &self.stolen_max), ("others_max", &self.others_max)] {
            share.parse::<Fraction>().map_err(|error| format!("{name}: {error}"))?;
        }
        self.check_values()
    }

    /// Checks the values of all axes and the settings of the requirement finder.
    fn check_values(&self) -> Result<(), String> {
        for name in AXES {
            let values = self.matrix.axis(name);
            for (index, value) in values.iter().enumerate() {
                check_value(name, value).map_err(|error| format!("matrix.{name}: {error}"))?;
                if values[..index].contains(value) {
                    return Err(format!("matrix.{name}: {value} is there twice"));
                }
            }
        }
        let find = &self.find;
        for (name, value) in [("engine", &find.engine), ("of", &find.of)] {
            check_value(name, value).map_err(|error| format!("find.{name}: {error}"))?;
        }
        let axes = [
            ("local", &find.local, &find.local_steps),
            ("rtt", &find.rtt, &find.rtt_steps),
            ("bandwidth", &find.bandwidth, &find.bandwidth_steps),
        ];
        for (name, base, steps) in axes {
            for value in std::iter::once(base).chain(steps) {
                check_value(name, value).map_err(|error| format!("find.{name}: {error}"))?;
            }
            if steps.is_empty() {
                return Err(format!("find.{name}_steps is empty; leave it out for the default"));
            }
        }
        Ok(())
    }

    /// The text of `others_max`.
    pub(crate) fn others_max(&self) -> &str {
        &self.others_max
    }

    /// The text of `stolen_max`.
    pub(crate) fn stolen_max(&self) -> &str {
        &self.stolen_max
    }

    /// The time limit of a run.
    pub(crate) fn timeout(&self) -> std::time::Duration {
        let timeout: Duration = self.timeout.parse().unwrap_or(Duration::from_ms(600_000));
        std::time::Duration::from_nanos(timeout.as_ns())
    }

    /// The noise up to which a run counts as undisturbed.
    pub(crate) fn tolerance(&self) -> Tolerance {
        let share =
            |text: &str| text.parse::<Fraction>().map_or(1.0, |share| f64::from(share.ppm()) / 1e6);
        Tolerance { stolen_max: share(&self.stolen_max), others_max: share(&self.others_max) }
    }
}

enum Wrong {
    Syntax { line: usize, message: String },
    Value(String),
}

// Checks a value as `afar run` will parse it.
fn check_value(axis: &str, value: &str) -> Result<(), String> {
    match axis {
        "engine" => value.parse::<EngineKind>().map(|_| ()).map_err(|error| error.to_string()),
        "local" => value.parse::<LocalSize>().map(|_| ()).map_err(|error| error.to_string()),
        "of" => value.parse::<ShareOf>().map(|_| ()).map_err(|error| error.to_string()),
        "rtt" => delay(value).map(|_| ()).map_err(|error| error.to_string()),
        "bandwidth" => value.parse::<Bandwidth>().map(|_| ()).map_err(|error| error.to_string()),
        "policy" => value.parse::<PolicyKind>().map(|_| ()).map_err(|error| error.to_string()),
        "link" => value.parse::<LinkMode>().map(|_| ()).map_err(|error| error.to_string()),
        "prefetch" => {
            value.parse::<paging::Prefetch>().map(|_| ()).map_err(|error| error.to_string())
        }
        _ if Path::new(value).is_file() => Ok(()),
        _ => Err(format!("there is no file {value}")),
    }
}

// The message about an invalid pattern: only the last line of the parser's message, which says what
// is wrong.
fn no_pattern(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    format!("metric.pattern: {pattern:?} is no regular expression: {what}")
}

// Deserializes the values of an axis; an empty list is an error.
fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::deserialize(deserializer)?;
    match values.is_empty() {
        true => Err(D::Error::custom("an empty list; give values, or leave the key out")),
        false => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "[workload]\ncommand = [\"true\"]\n";

    fn refused(text: &str) -> String {
        match Sweep::parse(text) {
            Err(Wrong::Syntax { line, message }) => format!("{line}: {message}"),
            Err(Wrong::Value(what)) => what,
            Ok(_) => panic!("accepted: {text}"),
        }
    }

    #[test]
    fn least_is_a_command() {
        let sweep = Sweep::parse(LEAST).ok().expect("it is enough");
        assert_eq!((sweep.seed, sweep.repetitions, sweep.timeout().as_secs()), (1, 5, 600));
        assert_eq!(sweep.metric.better, Better::Lower);
        let tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };
        assert_eq!((sweep.tolerance(), sweep.attempts), (tolerance, 3));
    }

    #[test]
    fn examples_are_experiments() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let files = std::fs::read_dir(examples).expect("they are there").flatten();
        let files = files.filter(|file| file.path().is_file());
        let read = files.map(|file| Sweep::read(&file.path()).expect("it is one"));
        assert_eq!(read.count(), 8);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let engine = refused("[workload]\ncommand = [\"true\"]\n[matrix]\nengine = [\"disk\"]");
        assert_eq!(engine, "matrix.engine: there is no engine \"disk\"; use arena or swap");
        let with = |rest: &str| refused(&format!("{LEAST}{rest}"));
        assert!(refused("seed = 1\nrepetitons = 3\n").starts_with("2: unknown field `repetitons`"));
        let unit = with("[matrix]\nrtt = [\"5 parsecs\"]");
        assert!(unit.starts_with("matrix.rtt: \"5 parsecs\": unknown unit \"parsecs\""), "{unit}");
        assert!(
            with("[matrix]\nof = [\"most\"]").ends_with("use live, peak or a size such as 512MiB")
        );
        assert!(with("[find]\nof = \"1\"").starts_with("find.of: \"1\""));
        assert_eq!(with("[matrix]\nlocal = [\"5%\", \"5%\"]"), "matrix.local: 5% is there twice");
        assert!(with("load = [\"x\"]").starts_with("workload.load needs one of ready_text"));
        assert!(with("ready_tcp = \"x:1\"").contains("is for servers"));
        assert!(
            with("[metric]\npattern = \"a(\"")
                .starts_with("metric.pattern: \"a(\" is no regular expression: unclosed group")
        );
        assert!(with("[metric]\npattern = \"a\"").contains("in parentheses"));
        assert!(with("[matrix]\nlocal = []").contains("an empty list; give values"));
        assert!(
            with("[metric]\npattern = \"(a)\"\njson = \"/a\"").contains("give only one of them")
        );
        assert!(
            refused("repetitions = 0\n[workload]\ncommand = [\"true\"]").contains("at least 1")
        );
        assert!(refused(&format!("attempts = 0\n{LEAST}")).starts_with("attempts = 0: "));
        assert!(refused(&format!("stolen_max = \"5\"\n{LEAST}")).starts_with("stolen_max: "));
        assert!(refused("[workload]\ncommand = []").contains("workload.command is empty"));
    }
}
