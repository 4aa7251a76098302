//! Whether the swap engine can be used on this host.

use std::fs;

use sys::group::Hierarchy;

use crate::error::Obstacle;
use crate::{journal, tables};

/// Checks whether the swap engine can be used here.
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
    // In version 2 a group can bypass zswap.
    if zswap_is_on() && hierarchy.version == sys::group::Version::One {
        return Err(Obstacle::Zswap);
    }
    Ok(tables::probe()?)
}

// Whether the kernel's description of its own types (BTF) has a field of this name.
fn has_name(types: &[u8], name: &[u8]) -> bool {
    types.split(|&byte| byte == 0).any(|text| text == name)
}

/// Whether zswap is enabled.
pub(super) fn zswap_is_on() -> bool {
    let setting = fs::read_to_string("/sys/module/zswap/parameters/enabled");
    setting.is_ok_and(|text| text.trim() == "Y")
}

/// The value of `vm.page-cluster`; `None` if the kernel cannot swap.
#[must_use]
pub fn page_cluster() -> Option<u64> {
    sys::setting::read(journal::PAGE_CLUSTER)
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
