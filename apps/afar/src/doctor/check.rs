//! One thing that was looked at.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What it is for, if it is missing.
    pub(super) needed_for: Option<&'static str>,
    /// The command that would fix it, if there is one.
    pub(super) remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    No,
}
