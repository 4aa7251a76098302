//! System-wide settings: numbers under `/proc/sys`.

use std::fs;
use std::path::Path;

use crate::error::During;
use crate::{Error, Result};

/// The value of a setting, such as `vm/page-cluster`; `None` if there is none.
#[must_use]
pub fn read(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse().ok()
}

/// Sets a number. Returns the old one.
///
/// # Errors
/// When there is no such setting, or the caller is not root.
pub fn write(name: &str, value: u64) -> Result<u64> {
    const CHANGE: &str = "change a setting of the system";
    let before = read(name).ok_or_else(|| Error::new(CHANGE, rustix::io::Errno::NOENT))?;
    fs::write(Path::new("/proc/sys").join(name), value.to_string()).during(CHANGE)?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_knows_numbers_only() {
        assert!(read("vm/page-cluster").is_some());
        assert_eq!(read("kernel/ostype"), None);
        assert_eq!(read("vm/no-such-setting"), None);
        assert!(write("vm/no-such-setting", 0).is_err());
    }
}
