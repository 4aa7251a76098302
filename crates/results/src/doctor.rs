//! What a machine can do, and what killed runs have left on it.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar doctor --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Checkup {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Whether `afar run` works on this machine.
    pub usable: bool,
    /// Checks, one for each thing that afar uses.
    pub checks: Vec<Check>,
    /// What killed runs have left behind, in order of process id and name.
    pub leftovers: Vec<Leftover>,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// `ok` if the check passed, `no` if not.
    pub state: State,
    /// What the check found, as a text.
    pub found: String,
    /// What does not work without the thing checked; missing if the check passed.
    pub needed_for: Option<String>,
    /// Command that fixes what was found; missing if the check passed, or no command is known.
    pub remedy: Option<String>,
}

/// Whether a check passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The check passed.
    Ok,
    /// The check failed.
    No,
}

/// One thing that a killed run has left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Leftover {
    /// What a killed run has left behind.
    pub what: What,
    /// Whether this command has removed the leftover.
    pub removed: bool,
    /// Why the leftover could not be removed; missing if it was, or if removal was not requested.
    pub error: Option<String>,
}

/// What a killed run can leave behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// A process that ran under a supervisor that is gone.
    Orphan {
        /// Process id of a process whose supervisor is gone.
        pid: u32,
        /// Command name of a process whose supervisor is gone.
        name: String,
    },
    /// A supervisor without a program.
    Supervisor {
        /// Process id of a supervisor whose program is gone.
        pid: u32,
    },
    /// A pinned BPF object, or a control group.
    Path {
        /// Path of a leftover BPF object or control group.
        path: String,
    },
    /// An attached disk that nobody serves any more.
    Mount {
        /// Mount point of an attached disk that nobody serves any more.
        path: String,
    },
    /// The socket of a run that was killed.
    Socket {
        /// Path of the socket of a killed run.
        path: String,
    },
    /// What a run under the swap engine has changed.
    Swap {
        /// Id of the process that should have undone what a run of the swap engine changed on this
        /// host.
        keeper: u32,
        /// What a run of the swap engine changed on this host, as a text.
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
