//! Flags of whatever reaches logical units over iSCSI.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Who an initiator is.
#[derive(Debug, Args)]
#[command(next_help_heading = "iSCSI")]
pub struct InitiatorFlags {
    /// Who this initiator says it is
    #[arg(long, value_name = "IQN", default_value = "iqn.2026-11.local.afar:initiator")]
    pub initiator: String,

    /// File with the secret of the user that the URI names (CHAP); LIBISCSI_CHAP_PASSWORD in the
    /// environment holds it if there is no file
    #[arg(long, value_name = "FILE")]
    pub chap_secret: Option<PathBuf>,

    /// The same for what proves that the target is the target_user of the URI; or
    /// LIBISCSI_CHAP_TARGET_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub chap_target_secret: Option<PathBuf>,

    /// What it is proved with, the first preferred. Targets that have only MD5 do, and there are
    /// those that say they have more
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum, ignore_case = true)]
    #[arg(default_values = ["SHA3-256", "SHA256", "SHA1", "MD5"])]
    pub chap_algs: Vec<AlgorithmFlag>,
}

/// What a secret is proved with (CHAP_A), as open-iscsi names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmFlag {
    /// SHA3-256 (code 8)
    #[value(name = "SHA3-256")]
    Sha3_256,
    /// SHA-256 (code 7)
    #[value(name = "SHA256")]
    Sha256,
    /// SHA-1 (code 6)
    #[value(name = "SHA1")]
    Sha1,
    /// MD5 (code 5)
    #[value(name = "MD5")]
    Md5,
}
