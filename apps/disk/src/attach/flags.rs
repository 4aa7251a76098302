//! Flags of `afar attach`.

use std::path::PathBuf;

use clap::Args;
use measure::Duration;

use client::InitiatorFlags;

/// Put a namespace or logical unit of a target into a directory, as one file named disk
///
/// What is read and written goes to the target, past the page cache; fsync puts it on the medium;
/// holes that are punched give room back. The file takes a file system (mkfs.ext4 -F DIR/disk) or a
/// loop device (losetup --direct-io=on -f DIR/disk, so that nothing is cached twice). A target that
/// goes away is looked for, and requests wait for it. Ctrl-C, SIGTERM and umount DIR detach.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct AttachFlags {
    /// nvme+tcp://HOST:PORT/NQN/NSID (port 4420 and the first namespace if they are left out),
    /// iscsi://USER@HOST:PORT/IQN/LUN?connections=NUMBER (nobody, port 3260, the first disk, 1), or
    /// a device of this machine as in afar serve: file:PATH, memory:SIZE, model:DRIVE:DEVICE
    #[arg(value_name = "URI")]
    pub(crate) target: String,

    /// Directory to mount on
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Another way to the same namespace; may be repeated. The way that the target says is best is
    /// taken, and of those that are as good the first
    #[arg(long, value_name = "URI", help_heading = PATHS)]
    pub(crate) path: Vec<String>,

    /// Take the disks that all ways lead to for one if they have the same identity, although no
    /// target proves it: targets other than afar's, or two afar serve --shared
    #[arg(long, help_heading = PATHS)]
    pub(crate) trust_identity: bool,

    /// How long there may be no way before every request fails [default: 600s; 120s over iSCSI];
    /// where it is given, also how long a target is looked for that is not there yet
    #[arg(long, value_name = "TIME", help_heading = PATHS)]
    pub(crate) ctrl_loss_tmo: Option<Duration>,

    /// Longest pause between two attempts to connect again; the first is a tenth of a second, each
    /// later one twice as long
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = PATHS)]
    pub(crate) reconnect_delay: Duration,

    /// How long the target may be silent (over iSCSI: until it is asked whether it is there, and
    /// again until it has answered); what was being written when it was lost cannot be written anew
    /// for as long
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = PATHS)]
    pub(crate) keep_alive_tmo: Duration,

    /// How long a command may take before its way counts as lost
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = PATHS)]
    pub(crate) io_timeout: Duration,

    /// Queues, over iSCSI sessions, each with a thread of its own
    #[arg(long, value_name = "NUMBER", default_value_t = 2, help_heading = WIRE)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) queues: u16,

    /// Commands under way in each queue
    #[arg(long, value_name = "NUMBER", default_value_t = 128, help_heading = WIRE)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1023))]
    pub(crate) queue_size: u16,

    /// Checks over headers of the protocol
    #[arg(long, help_heading = WIRE)]
    pub(crate) header_digest: bool,

    /// Checks over data
    #[arg(long, help_heading = WIRE)]
    pub(crate) data_digest: bool,

    /// Who this host says it is over NVMe/TCP
    #[arg(long, value_name = "NQN", help_heading = WIRE)]
    #[arg(default_value = "nqn.2026-11.local.afar:attach")]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) initiator: InitiatorFlags,
}

const PATHS: &str = "Ways to it";
const WIRE: &str = "Network";

const NOTES: &str = "\
Exit status: 0 detached, with everything on the medium; 1 not, or the target cannot be reached;
2 bad usage; 3 this machine does not let it mount.

Example: afar attach nvme+tcp://10.0.0.2/nqn.2026-11.local.afar:0923dd2db942:disk /mnt/flash";
