//! Flags of `afar serve`.

use std::net::SocketAddr;

use clap::Args;
use measure::Duration;

use crate::setting::socket_address;

/// Serve disks to other machines over NVMe/TCP
///
/// Each disk is a subsystem of its own with one namespace. Linux mounts it: nvme connect -t tcp. It
/// serves until Ctrl-C, which ends what is under way first. SIGHUP looks at the sizes of files
/// again and tells hosts.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeFlags {
    /// NAME=URI: the subsystem nqn.2026-11.local.afar:NAME (or NAME itself, if it begins with nqn.)
    /// and file:PATH, memory:SIZE or null:
    #[arg(value_name = "DISK", required = true)]
    pub(crate) disks: Vec<String>,

    /// Where hosts connect; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4420")]
    #[arg(value_parser = socket_address)]
    pub(crate) nvme: Vec<SocketAddr>,

    /// Only these hosts may connect: their NQNs
    #[arg(long, value_name = "NQN", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,

    /// Threads, over which the queues of hosts are spread [default: one per processor]
    #[arg(long, value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) shards: Option<u16>,

    /// Look for the next request without sleeping for this long, where that has paid the last time
    #[arg(long, value_name = "TIME", default_value = "20us")]
    pub(crate) busy_poll: Duration,

    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const NOTES: &str = "\
file: takes ?size=SIZE to make the file if it is not there, and every kind ?block=4096 for blocks of
another size than 512 bytes.

Not done: reservations, several paths with access states, authentication and TLS. Serve on networks
you trust.

Exit status: 0 it was told to end; 1 it failed; 2 bad usage.

Example: afar serve --nvme 0.0.0.0:4420 disk=file:/data/disk.img?size=10GiB";
