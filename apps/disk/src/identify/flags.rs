//! Flags of `afar identify`.

use std::path::PathBuf;

use clap::Args;
use client::InitiatorFlags;

/// Ask a controller or a logical unit what it is
///
/// Asks a controller over NVMe/TCP what it and its namespaces are, or a target over iSCSI what its
/// logical units are.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct IdentifyFlags {
    /// nvme+tcp://HOST[:PORT]/NQN or iscsi://[USER@]HOST[:PORT]/IQN/LUN
    #[arg(value_name = "URI")]
    pub(crate) target: String,

    /// Write the answer as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Who this host says it is to a controller
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.local.afar:identify")]
    #[arg(help_heading = NVME)]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) initiator: InitiatorFlags,
}

const OUTPUT: &str = "Output";
const NVME: &str = "NVMe/TCP";

const NOTES: &str = "\
Names of what it shows are those of nvme(1) or of SCSI, as the specifications have them. `afar
discover` lists what a target serves.

Exit status: 0 it is shown; 1 it cannot be reached or refuses; 2 bad usage.

Example: afar identify nvme+tcp://10.0.0.2/nqn.2026-11.local.afar:0923dd2db942:disk
         afar identify iscsi://10.0.0.2/iqn.2026-11.local.afar:0923dd2db942:disk/0";
