//! Why the swap engine cannot be used.

use std::io;

use sys::bpf::BpfError;

/// Why the host could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// The host lacks something.
    #[error("set up swap space: {0}")]
    Obstacle(#[from] Obstacle),
    /// The keeper refused.
    #[error("set up swap space: {0}")]
    Refused(String),
    /// Another run has set `vm.page-cluster`, which is one setting for all.
    #[error(
        "vm.page-cluster is set by another run (keeper {keeper}); wait for it to end, or leave \
         --page-cluster out"
    )]
    PageClusterTaken {
        /// The process that will restore the setting.
        keeper: u32,
    },
    /// The keeper could not be started, or the pipe to it failed.
    #[error("start the process that sets up swap space: {0}")]
    Keeper(#[source] io::Error),
    /// The keeper ended without an answer.
    #[error("the process that sets up swap space ended without an answer; see afar doctor")]
    KeeperGone,
    /// The keeper's journal could not be written.
    #[error("write the journal of changes to this host in /run/afar: {0}")]
    Journal(#[from] io::Error),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl From<SwapError> for farmem::RunError {
    fn from(error: SwapError) -> Self {
        Self::Host(Box::new(error))
    }
}

/// What this host lacks for the swap engine.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// The caller is not root.
    #[error("it changes the whole host, so it needs root; run afar as root")]
    NotRoot,
    /// The kernel cannot swap.
    #[error("this kernel cannot swap; one with CONFIG_SWAP is needed")]
    NoSwap,
    /// There is no zram.
    #[error("this kernel has no zram; load it with: sudo modprobe zram")]
    NoZram,
    /// Pages are read from zram without a request to it, so that nothing sees or delays the reads.
    #[error(
        "this kernel reads zram without block requests (rw_page), so that no read could be \
         delayed; Linux 6.3 and later make requests, and --engine arena does without"
    )]
    NoRequests,
    /// No control groups with memory limits.
    #[error(
        "there are no control groups with memory limits; mount them, or boot with \
         cgroup_enable=memory"
    )]
    NoGroups,
    /// zswap would keep pages in memory, compressed, instead of sending them to the device.
    #[error(
        "zswap keeps swapped pages from the device; turn it off with: \
         echo N | sudo tee /sys/module/zswap/parameters/enabled"
    )]
    Zswap,
    /// The BPF program of the delay cannot be loaded.
    #[error("{0}; CAP_BPF and CAP_PERFMON are needed")]
    Bpf(#[from] BpfError),
}
