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

use std::fs;
use std::path::Path;

use sys::group::Hierarchy;

mod budget;
mod config;
mod error;
mod journal;
mod keeper;
mod report;
mod supervisor;
mod tables;

pub use config::{SWAP_BUDGET_MIN, SwapConfig};
pub use error::{Obstacle, SwapError};
pub use keeper::keep;
pub use supervisor::SwapSupervisor;

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
