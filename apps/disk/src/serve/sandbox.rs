//! The setting `--sandbox`.

use clap::ValueEnum;
use serde::Deserialize;

/// Whether a target drops rights that it does not need.
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
