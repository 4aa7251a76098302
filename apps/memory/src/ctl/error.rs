//! Why a run could not be looked at or changed.

use std::io;
use std::time::Duration as Timeout;

use console::{Class, Classed};

use crate::setting::SettingError;

/// Longest wait for a reply: a run answers ten times a second, unless it is stopped.
pub(super) const PATIENCE: Timeout = Timeout::from_secs(2);

/// Why a run could not be looked at or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CtlError {
    #[error("\"{0}\" is not understood; write list, PID show or PID set SETTING...")]
    Words(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("process {pid} is no run of afar; afar ctl list shows them")]
    NoRun { pid: u32 },
    #[error("process {pid} does not answer to this user; use the one who started it, or root")]
    NotOurs { pid: u32 },
    #[error("process {pid} has not answered for {} s; it may be stopped", PATIENCE.as_secs())]
    Silent { pid: u32 },
    #[error("process {pid}: {text}")]
    Refused { pid: u32, text: String },
    #[error("ask process {pid}: {source}; it may just have ended")]
    Connection { pid: u32, source: io::Error },
}

impl Classed for CtlError {
    fn class(&self) -> Class {
        match self {
            Self::Words(_) | Self::Setting(_) | Self::Refused { .. } => Class::Usage,
            _ => Class::Failed,
        }
    }
}
