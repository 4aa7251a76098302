//! Swap space, and compressed memory disks (zram) for it.
//!
//! All of this needs root and changes the whole host until it is undone; the caller records what is
//! to be undone.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::{During, check};
use crate::{Error, Result};

const CONTROL: &str = "/sys/class/zram-control";
const PAGE: usize = 4096;

/// Shift of the major number in a device number of the kernel: `major << 20
/// minor`.
const MAJOR_SHIFT: u32 = 20;

/// A compressed memory disk, by number: `/dev/zram3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zram(pub u32);

impl Zram {
    /// The numbers of all zram disks, in order.
    ///
    /// # Errors
    /// When the kernel does not show its block devices.
    pub fn all() -> Result<Vec<u32>> {
        let entries = fs::read_dir("/sys/block").during("list the block devices")?;
        let number = |entry: fs::DirEntry| {
            entry.file_name().to_str()?.strip_prefix("zram")?.parse::<u32>().ok()
        };
        let mut numbers: Vec<u32> = entries.flatten().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Adds a disk, without a size.
    ///
    /// # Errors
    /// When the kernel has no zram, or the caller is not root.
    pub fn add() -> Result<Self> {
        let path = Path::new(CONTROL).join("hot_add");
        let text = fs::read_to_string(path).during("add a zram device")?;
        let number = text.trim().parse().map_err(io::Error::other);
        number.map(Self).during("add a zram device")
    }

    /// Sets the size of the disk, in bytes.
    ///
    /// # Errors
    /// If it has a size already, or the kernel has no memory for its table.
    pub fn resize(self, bytes: u64) -> Result<()> {
        fs::write(self.attribute("disksize"), bytes.to_string()).during("size a zram device")
    }

    /// The size of the disk in bytes; 0 for one that is not in use.
    #[must_use]
    pub fn size(self) -> u64 {
        let text = fs::read_to_string(self.attribute("disksize")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// The compression in force: the name in brackets.
    #[must_use]
    pub fn compression(self) -> String {
        let text = fs::read_to_string(self.attribute("comp_algorithm")).unwrap_or_default();
        let chosen = text.split(['[', ']']).nth(1).unwrap_or_default();
        chosen.to_owned()
    }

    /// Sets the compression algorithm, which is possible only before the size is set.
    ///
    /// # Errors
    /// When the kernel does not know the algorithm.
    pub fn compress_by(self, algorithm: &str) -> Result<()> {
        fs::write(self.attribute("comp_algorithm"), algorithm).during("set up a zram device")
    }

    /// Frees the memory of the disk, which has no size afterwards.
    ///
    /// # Errors
    /// If the disk is in use.
    pub fn reset(self) -> Result<()> {
        fs::write(self.attribute("reset"), "1").during("reset a zram device")
    }

    /// Removes the disk.
    ///
    /// # Errors
    /// If the disk is in use.
    pub fn remove(self) -> Result<()> {
        let path = Path::new(CONTROL).join("hot_remove");
        fs::write(path, self.0.to_string()).during("remove a zram device")
    }

    /// Whether the disk exists.
    #[must_use]
    pub fn exists(self) -> bool {
        self.directory().exists()
    }

    /// The device file of the disk.
    #[must_use]
    pub fn path(self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.0))
    }

    /// The device number in the kernel's internal form.
    ///
    /// # Errors
    /// If there is no device file.
    pub fn device(self) -> Result<u32> {
        let number = fs::metadata(self.path()).during("look at a zram device")?.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        Ok(major << MAJOR_SHIFT | minor)
    }

    /// The directory of the disk in sysfs.
    fn directory(self) -> PathBuf {
        PathBuf::from(format!("/sys/block/zram{}", self.0))
    }

    /// The path of a sysfs attribute.
    fn attribute(self, name: &str) -> PathBuf {
        self.directory().join(name)
    }
}

/// Writes the header that makes a device of `bytes` swap space (`mkswap`, version 1).
///
/// # Errors
/// If the device cannot be written to.
pub fn format(path: &Path, bytes: u64) -> Result<()> {
    let device = fs::File::options().write(true).open(path).during("open the swap device")?;
    device.write_all_at(&header(bytes), 0).during("format the swap device")
}

// The header page. `union swap_header` of the kernel: 1024 bytes for a boot loader, version, number
// of the last page, number of bad pages; the signature ends the page.
fn header(bytes: u64) -> Vec<u8> {
    const SIGNATURE: &[u8] = b"SWAPSPACE2";
    let last = u32::try_from((bytes / PAGE as u64).saturating_sub(1)).unwrap_or(u32::MAX);
    let mut page = vec![0_u8; PAGE];
    page[1024..1028].copy_from_slice(&1_u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&last.to_ne_bytes());
    page[PAGE - SIGNATURE.len()..].copy_from_slice(SIGNATURE);
    page
}

/// Makes the kernel use the device as swap space, with the highest priority.
///
/// # Errors
/// If the device is not formatted, in use already, or the caller is not root.
#[expect(unsafe_code, reason = "swapon has no safe wrapper")]
pub fn on(path: &Path) -> Result<()> {
    const PREFER: i32 = 0x8000;
    const PRIORITY_MAX: i32 = 0x7fff;
    let path = c_path(path)?;
    // SAFETY: the path is a string that ends with zero and lives through the call.
    let result = unsafe { libc::swapon(path.as_ptr(), PREFER | PRIORITY_MAX) };
    check("swap to a device", result.into()).map(|_zero| ())
}

/// Makes the kernel stop using the device as swap space; its pages return to memory.
///
/// # Errors
/// If the device is not in use, or there is no memory for its pages.
#[expect(unsafe_code, reason = "swapoff has no safe wrapper")]
pub fn off(path: &Path) -> Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path is a string that ends with zero and lives through the call.
    check("stop swapping to a device", unsafe { libc::swapoff(path.as_ptr()) }.into())
        .map(|_zero| ())
}

/// Whether the kernel uses the device as swap space.
#[must_use]
pub fn is_on(path: &Path) -> bool {
    let table = fs::read("/proc/swaps").unwrap_or_default();
    let path = path.as_os_str().as_bytes();
    let lines = table.split(|&byte| byte == b'\n').skip(1);
    let mut names = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next());
    names.any(|name| name == path)
}

/// A path as a C string.
fn c_path(path: &Path) -> Result<CString> {
    let invalid = |_zero_inside| Error::new("name a device", rustix::io::Errno::INVAL);
    CString::new(path.as_os_str().as_bytes()).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_what_mkswap_writes() {
        let page = header(1 << 20);
        assert_eq!(page.len(), 4096);
        assert_eq!(page[1024..1032], [1, 0, 0, 0, 255, 0, 0, 0]);
        assert_eq!(&page[4086..], b"SWAPSPACE2");
        assert!(page[..1024].iter().all(|&byte| byte == 0));
        assert!(page[1032..4086].iter().all(|&byte| byte == 0), "no bad pages, no name");
    }

    #[test]
    fn nothing_swaps_to_what_is_not_there() {
        assert!(!is_on(Path::new("/dev/zram4294967295")));
        assert!(!Zram(u32::MAX).exists());
        assert_eq!(Zram(u32::MAX).size(), 0);
        assert!(off(Path::new("/dev/zram4294967295")).is_err());
    }
}
