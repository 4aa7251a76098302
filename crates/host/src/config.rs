//! How a disk is reached, and what happens to it.

use measure::Duration;
use nvme::log::AnaState;

use super::disk_path::DiskPath;

/// How a disk is reached.
#[derive(Debug, Clone)]
pub struct DiskConfig {
    /// Ways to one namespace, the first preferred; 1 to [`PATHS_MAX`](crate::Disk::PATHS_MAX).
    pub paths: Vec<DiskPath>,
    /// I/O queues (over iSCSI, sessions) over each path: 1 to 16, fewer if a controller grants
    /// fewer.
    pub queues: u16,
    /// Commands under way on each: 1 to 4095.
    pub depth: u16,
    /// Longest pause between two attempts to find a path that was lost.
    pub reconnect_delay: Duration,
    /// How long there may be no path that can be used before the disk is lost.
    pub loss_timeout: Duration,
    /// How long a command may take before its path counts as lost.
    pub io_timeout: Duration,
    /// Paths whose identifiers are the same lead to one disk, although no target proves it.
    pub trusts_identity: bool,
}

/// Something that happens to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEvent<'a> {
    /// A path is there.
    PathUp {
        /// Its number in [`DiskConfig::paths`].
        path: usize,
        /// How the namespace can be reached over it.
        state: AnaState,
    },
    /// A path was lost, or could not be found again for another reason than before.
    PathDown {
        /// See above.
        path: usize,
        /// Why.
        reason: &'a str,
    },
    /// The namespace can be reached otherwise over a path.
    PathState {
        /// See above.
        path: usize,
        /// How.
        state: AnaState,
    },
    /// It has another size.
    Resized {
        /// Bytes.
        bytes: u64,
    },
    /// What a path had that was lost does nothing any more that it was asked: its controller was
    /// reset by way of another, or its sessions have begun anew. Blocks of writes that were sent
    /// again can be written to.
    Fenced {
        /// See above.
        path: usize,
    },
    /// There was no path for too long.
    Lost,
}

/// Is told what happens, by threads of the disk, which wait for it.
pub type Observer = Box<dyn Fn(DiskEvent<'_>) + Send + Sync>;
