//! The swap engine: the kernel's own swapping, with a delay on the swap device.
//!
//! ```text
//! keeper: zram, swapon, group ─► program in it ─► kernel swaps ─► request ─► delay ─► report
//! ```
//!
//! Gao et al. 2016, section 3.1, without their kernel module. It manages whatever the kernel can
//! swap: of statically linked programs, of all descendants, of shared memory. In return the budget
//! is one for all of them, the kernel chooses what leaves, and the delay comes on top of what the
//! kernel's swap path takes by itself.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use measure::{Bytes, Fraction, LinkConfig, LocalSize};
use sys::bpf::BpfError;
use sys::group::Hierarchy;

mod budget;
mod journal;
mod keeper;
mod report;
mod supervisor;
mod tables;

pub use keeper::keep;
pub use supervisor::SwapSupervisor;

/// Smallest budget of a group: the kernel accounts for memory in batches per processor, and a
/// program's stack and page tables count too.
pub const SWAP_BUDGET_MIN: Bytes = Bytes::new(4 << 20);

/// A run under the swap engine.
#[derive(Debug, Clone)]
pub struct SwapConfig {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Local memory; `None` for no limit.
    pub local: Option<LocalSize>,
    /// What a fraction of local memory is a fraction of; `None` for what is in use at each moment.
    pub of: Option<Bytes>,
    /// What lies between.
    pub link: LinkConfig,
    /// Seed of every random choice.
    pub seed: u64,
    /// Hand every fault to [`Observer::faults`](super::Observer::faults).
    pub record: bool,
    /// What `vm.page-cluster` is to be while it runs; `None` leaves it.
    pub page_cluster: Option<u64>,
    /// The command that runs [`keep`] with its standard input and output.
    pub keeper: Vec<OsString>,
}

impl SwapConfig {
    /// The smallest budget of local memory, if a share of the memory is to be far.
    fn share_min(&self) -> Option<Bytes> {
        let is_share = match self.local {
            Some(LocalSize::Fraction(share)) => share != Fraction::ONE,
            _ => false,
        };
        (is_share && self.of.is_none()).then_some(SWAP_BUDGET_MIN)
    }
}

/// Why the host could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// Something is missing.
    #[error("set up swap space: {0}")]
    Obstacle(#[from] Obstacle),
    /// The keeper did not.
    #[error("set up swap space: {0}")]
    Refused(String),
    /// Two runs would have to have different settings.
    #[error(
        "vm.page-cluster is set by another run (keeper {keeper}); wait for it to end, or leave \
         --page-cluster out"
    )]
    PageClusterTaken {
        /// The process that will put it back.
        keeper: u32,
    },
    /// The keeper could not be started or talked to.
    #[error("start the process that sets up swap space: {0}")]
    Keeper(#[source] io::Error),
    /// It ended without an answer.
    #[error("the process that sets up swap space ended without an answer; see afar doctor")]
    KeeperGone,
    /// Its journal could not be written.
    #[error("write the journal of changes to this host in /run/afar: {0}")]
    Journal(#[from] io::Error),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] sys::Error),
}

/// What this host lacks for the swap engine.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// The caller may not.
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
    /// Pages would stay in memory, compressed, in place of going to the device.
    #[error(
        "zswap keeps swapped pages from the device; turn it off with: \
         echo N | sudo tee /sys/module/zswap/parameters/enabled"
    )]
    Zswap,
    /// The delay cannot be loaded.
    #[error("{0}; CAP_BPF and CAP_PERFMON are needed")]
    Bpf(#[from] BpfError),
}

/// Whether the swap engine can be used here.
///
/// # Errors
/// The first thing that is missing.
pub fn probe() -> Result<(), Obstacle> {
    if sys::process::effective_user() != 0 {
        return Err(Obstacle::NotRoot);
    }
    sys::setting::read(journal::PAGE_CLUSTER).ok_or(Obstacle::NoSwap)?;
    if !fs::exists("/sys/class/zram-control").unwrap_or(false) {
        return Err(Obstacle::NoZram);
    }
    if fs::read("/sys/kernel/btf/vmlinux").is_ok_and(|types| has_name(&types, b"rw_page")) {
        return Err(Obstacle::NoRequests);
    }
    let hierarchy = Hierarchy::find().ok_or(Obstacle::NoGroups)?;
    // In version 2 a group can be kept out of it.
    if zswap_is_on() && hierarchy.version == sys::group::Version::One {
        return Err(Obstacle::Zswap);
    }
    Ok(tables::probe()?)
}

// Whether the kernel's description of its own types (BTF) has a field of this name.
fn has_name(types: &[u8], name: &[u8]) -> bool {
    types.split(|&byte| byte == 0).any(|text| text == name)
}

fn zswap_is_on() -> bool {
    let setting = fs::read_to_string("/sys/module/zswap/parameters/enabled");
    setting.is_ok_and(|text| text.trim() == "Y")
}

/// What `vm.page-cluster` is now; none without swapping.
#[must_use]
pub fn page_cluster() -> Option<u64> {
    sys::setting::read(journal::PAGE_CLUSTER)
}

/// What runs that were killed, together with their keepers, have left on this host.
#[derive(Debug)]
pub struct Leftover {
    journal: journal::Journal,
}

/// Finds them.
#[must_use]
pub fn leftovers() -> Vec<Leftover> {
    let dead = |journal: &journal::Journal| !journal.is_answered_for();
    journal::all().into_iter().filter(dead).map(|journal| Leftover { journal }).collect()
}

/// Whether the control group at `path` is that of a run that goes on, or of one of [`leftovers`].
#[must_use]
pub fn is_known(path: &Path) -> bool {
    let is_it =
        |step: &journal::Step| matches!(step, journal::Step::Group { path: it } if it == path);
    journal::all().iter().any(|journal| journal.has(is_it))
}

impl Leftover {
    /// The keeper that died.
    #[must_use]
    pub fn keeper(&self) -> u32 {
        self.journal.owner()
    }

    /// What it is, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        self.journal.describe()
    }

    /// Puts the host back; answers what could not be put back, and why.
    #[must_use]
    pub fn undo(&self) -> Vec<String> {
        self.journal.undo()
    }
}

#[cfg(test)]
mod tests {
    use super::has_name;

    #[test]
    fn a_name_is_found_whole() {
        let types = b"\x9f\xeb\0bdev_rw_page\0rw_pages\0rw_page\0end\0";
        assert!(has_name(types, b"rw_page") && has_name(types, b"end"));
        assert!(!has_name(types, b"page") && !has_name(types, b"rw"));
        assert!(!has_name(b"\0bdev_rw_page\0rw_pages\0", b"rw_page"));
    }
}
