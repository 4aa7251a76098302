//! When a target gives up what it does not need.

use clap::ValueEnum;
use serde::Deserialize;

/// When what a target does not need is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sandbox {
    /// As far as the kernel can; what it cannot is said
    #[default]
    Auto,
    /// Or the target does not start
    On,
    /// Never
    Off,
}
