//! Flags of `afar discover`.

use std::path::PathBuf;

use clap::Args;

use client::InitiatorFlags;

/// List what can be connected to at an address: subsystems over NVMe/TCP, or targets over iSCSI
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct DiscoverFlags {
    /// Where to ask over NVMe/TCP (port 4420 if it is left out), or iscsi://USER@ADDRESS:PORT
    /// (nobody, port 3260)
    #[arg(value_name = "ADDRESS[:PORT]")]
    pub(crate) address: String,

    /// Write the answer as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each subsystem or portal; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Who this host says it is: it is told of what it may connect to
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.local.afar:discover")]
    #[arg(help_heading = NVME)]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) initiator: InitiatorFlags,
}

const OUTPUT: &str = "Output";
const NVME: &str = "NVMe/TCP";

const NOTES: &str = "\
Exit status: 0 there was an answer; 1 there was none; 2 bad usage.

Example: afar discover 10.0.0.2
         afar discover iscsi://10.0.0.2";
