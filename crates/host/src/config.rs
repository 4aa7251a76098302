//! The configuration of a disk, and its events.

use measure::Duration;
use nvme::log::AnaState;

use super::disk_path::DiskPath;

/// The configuration of a disk: its paths, queues and time limits.
#[derive(Debug, Clone)]
pub struct DiskConfig {
    /// Paths to one namespace, the first preferred; 1 to [`PATHS_MAX`](crate::Disk::PATHS_MAX).
    pub paths: Vec<DiskPath>,
    /// I/O queues (over iSCSI, sessions) over each path: 1 to 16, fewer if a controller grants
    /// fewer.
    pub queues: u16,
    /// Commands under way on each queue: 1 to 4095.
    pub depth: u16,
    /// Longest pause between two attempts to reconnect a lost path.
    pub reconnect_delay: Duration,
    /// How long there may be no usable path before the disk is lost.
    pub loss_timeout: Duration,
    /// How long a command may take before its path counts as lost.
    pub io_timeout: Duration,
    /// Whether paths with equal identifiers count as one disk without proof by the target.
    pub trusts_identity: bool,
}

/// An event of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEvent<'a> {
    /// A path is connected.
    PathUp {
        /// Its number in [`DiskConfig::paths`].
        path: usize,
        /// The ANA state of the namespace over it.
        state: AnaState,
    },
    /// A path was lost, or reconnecting failed for another reason than before.
    PathDown {
        /// See above.
        path: usize,
        /// Why.
        reason: &'a str,
    },
    /// The ANA state over a path has changed.
    PathState {
        /// See above.
        path: usize,
        /// The new ANA state.
        state: AnaState,
    },
    /// The disk has another size.
    Resized {
        /// The new size in bytes.
        bytes: u64,
    },
    /// All commands of a lost path have ended: its controller was reset over another path, or its
    /// iSCSI sessions were reinstated. Blocks of writes that were sent again can be written.
    Fenced {
        /// See above.
        path: usize,
    },
    /// There was no usable path for [`DiskConfig::loss_timeout`].
    Lost,
}

/// A callback for events; threads of the disk call it and wait for it.
pub type Observer = Box<dyn Fn(DiskEvent<'_>) + Send + Sync>;
