//! What a machine can do, and what killed runs have left on it.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar doctor --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Checkup {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Whether `afar run` works.
    pub usable: bool,
    /// One for each thing that afar uses.
    pub checks: Vec<Check>,
    /// In order of process id and name.
    pub leftovers: Vec<Leftover>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The thing.
    pub name: String,
    /// Whether it is as it should be.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it is for, if it is missing.
    pub needed_for: Option<String>,
    /// The command that would fix it, if there is one.
    pub remedy: Option<String>,
}

/// Whether a thing is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is.
    Ok,
    /// It is not.
    No,
}

/// One thing that should not be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Leftover {
    /// The thing.
    pub what: What,
    /// Whether it has been removed just now.
    pub removed: bool,
    /// Why it could not be.
    pub error: Option<String>,
}

/// What a killed run can leave behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// A process that ran under a supervisor that is gone.
    Orphan {
        /// Its process id.
        pid: u32,
        /// The name of its program.
        name: String,
    },
    /// A supervisor without a program.
    Supervisor {
        /// Its process id.
        pid: u32,
    },
    /// A pinned BPF object, or a control group.
    Path {
        /// Where it is.
        path: String,
    },
    /// An attached disk that nobody serves any more.
    Mount {
        /// Where it is mounted.
        path: String,
    },
    /// The socket of a run that was killed.
    Socket {
        /// Where it is.
        path: String,
    },
    /// What a run under the swap engine has changed.
    Swap {
        /// The id of the process that should have put it back.
        keeper: u32,
        /// In words.
        changes: String,
    },
}

impl Record for Checkup {
    const SCHEMA: &'static str = "afar.doctor/2";
}

impl Check {
    /// The check of something that is as it should be; `found` describes it.
    #[must_use]
    pub fn ok(name: &str, found: impl Into<String>) -> Self {
        let (name, found) = (name.to_owned(), found.into());
        Self { name, state: State::Ok, found, needed_for: None, remedy: None }
    }

    /// The check of something that is not as it should be; `found` describes it.
    #[must_use]
    pub fn no(name: &str, found: impl Into<String>) -> Self {
        Self { state: State::No, ..Self::ok(name, found) }
    }

    /// The same check, with what the thing is needed for.
    #[must_use]
    pub fn needed_for(self, what: &str) -> Self {
        Self { needed_for: Some(what.to_owned()), ..self }
    }

    /// The same check, with the command that would fix it.
    #[must_use]
    pub fn fix(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}
