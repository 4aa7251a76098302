//! Flags of whatever reaches logical units over iSCSI.

use std::path::PathBuf;

use clap::Args;

/// Who an initiator is.
#[derive(Debug, Args)]
#[command(next_help_heading = "iSCSI")]
pub(crate) struct InitiatorFlags {
    /// Who this initiator says it is
    #[arg(long, value_name = "IQN", default_value = "iqn.2026-11.local.afar:initiator")]
    pub(crate) initiator: String,

    /// File with the secret of the user that the URI names (CHAP); LIBISCSI_CHAP_PASSWORD in the
    /// environment holds it if there is no file
    #[arg(long, value_name = "FILE")]
    pub(crate) chap_secret: Option<PathBuf>,

    /// The same for what proves that the target is the target_user of the URI; or
    /// LIBISCSI_CHAP_TARGET_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub(crate) chap_target_secret: Option<PathBuf>,
}
