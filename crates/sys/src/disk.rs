//! A file or block device that holds the blocks of a disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{
    AtFlags, FallocateFlags, SeekFrom, StatxFlags, XattrFlags, fallocate, fgetxattr, fsetxattr,
    fstat, fstatfs, seek, statx,
};
use rustix::io::Errno;

use crate::Result;
use crate::error::{During, Error};
pub use crate::owner::Taken;
use crate::owner::{claim, expect_no_mount, lock};

/// File systems whose files are in memory, by their numbers in `statfs`.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
/// The longest extended attribute that is read.
const ATTRIBUTE_BYTES: usize = 256;

/// An open disk, and what can be done with it.
#[derive(Debug)]
pub struct Disk {
    /// The file or device, open for reading, and for writing unless it is read-only.
    pub file: OwnedFd,
    /// Its size.
    pub bytes: u64,
    /// Reads and writes bypass the page cache: memory, offsets and lengths are to be multiples of
    /// [`Disk::alignment`].
    pub is_direct: bool,
    /// The bytes are in memory: reads and writes do not wait for a device.
    pub is_in_memory: bool,
    /// See [`Disk::is_direct`]; a power of two.
    pub alignment: u32,
    /// Ranges can be set to zeros without writing them.
    pub clears: bool,
}

/// How a disk is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opening {
    /// Open for reading only: others may read it, too.
    pub is_read_only: bool,
    /// Whether others may have the disk open, too.
    pub claim: Claim,
}

/// Whether others may have a disk open, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claim {
    /// Exclusively.
    #[default]
    Alone,
    /// Together with others that share it.
    Shared,
    /// Without a lock: this process holds one by another handle for at least as long.
    Held,
}

/// Why a disk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The operating system refuses.
    #[error(transparent)]
    System(#[from] Error),
    /// Another process has it.
    #[error(transparent)]
    Taken(#[from] Taken),
}

/// The identity of a file, whatever its name; a copy has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMark {
    /// Inode number within its file system.
    pub inode: u64,
    /// Creation time, in nanoseconds since 1970; 0 if the file system does not have it.
    pub born_ns: u64,
}

impl Disk {
    /// Opens a disk, with a lock that lasts until it is dropped and no request is under way.
    ///
    /// # Errors
    /// If it is neither a file nor a block device, cannot be read and written, or is taken by
    /// another process.
    pub fn open(path: &Path, opening: Opening) -> std::result::Result<Self, DiskError> {
        let open = |flags: i32| {
            let mut options = OpenOptions::new();
            options.read(true).write(!opening.is_read_only);
            options.custom_flags(flags | libc::O_CLOEXEC).open(path)
        };
        let buffered = open(0).during("open a disk")?;
        let kind = buffered.metadata().during("look at a disk")?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let reason = io::Error::other("it is neither a file nor a block device");
            return Err(Error::new("open a disk", reason).into());
        }
        let statistics = fstatfs(&buffered).during("look at the file system of a disk")?;
        let is_in_memory = kind.is_file() && IN_MEMORY.contains(&statistics.f_type);
        let (file, is_direct) = if kind.is_file() {
            let direct = if is_in_memory { None } else { open(libc::O_DIRECT).ok() };
            let is_direct = direct.is_some();
            let file = direct.unwrap_or(buffered);
            match opening.claim {
                Claim::Held => {}
                claim => lock(&file, claim == Claim::Shared || opening.is_read_only)?,
            }
            (file, is_direct)
        } else {
            let is_alone = opening.claim == Claim::Alone && !opening.is_read_only;
            let alone = if is_alone { libc::O_EXCL } else { 0 };
            let is_busy = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
            let direct = claim(&buffered, || open(libc::O_DIRECT | alone), is_busy)?;
            let direct = direct.during("open a block device")?;
            if opening.claim != Claim::Held {
                // O_EXCL excludes others that use it, and the lock those that would share.
                lock(&direct, !is_alone)?;
            }
            if !is_alone {
                expect_no_mount(&direct)?;
            }
            (direct, true)
        };
        let file = OwnedFd::from(file);
        let bytes = seek(&file, SeekFrom::End(0)).during("find the end of a disk")?;
        let alignment = if is_direct { alignment(&file) } else { 1 };
        let clears = !opening.is_read_only && clears(&file, bytes, kind.is_block_device());
        Ok(Self { file, bytes, is_direct, is_in_memory, alignment, clears })
    }

    /// The current size of a disk, in bytes.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn measure(file: &impl AsFd) -> Result<u64> {
        seek(file, SeekFrom::End(0)).during("find the end of a disk")
    }

    /// Creates a file of zeros, sparse, so that it takes no room before it is written. No file
    /// remains if it cannot have that size.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub fn create(path: &Path, bytes: u64) -> Result<()> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.during("make a disk")?;
        file.set_len(bytes).during("make a disk of that size").inspect_err(|_| {
            // A file of another size is not wanted.
            let _stays = std::fs::remove_file(path);
        })
    }
}

/// The identity of a file.
///
/// # Errors
/// When the kernel does not say.
pub fn mark(file: &impl AsFd) -> Result<FileMark> {
    let status = fstat(file).during("look at a file")?;
    let born = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok();
    let born = born.filter(|found| found.stx_mask & StatxFlags::BTIME.bits() != 0);
    let born_ns = born.map_or(0, |found| {
        let seconds = u64::try_from(found.stx_btime.tv_sec).unwrap_or(0);
        seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::from(found.stx_btime.tv_nsec))
    });
    Ok(FileMark { inode: status.st_ino, born_ns })
}

/// The value of an extended attribute of a file; `None` if the file does not have it.
///
/// # Errors
/// If the attribute cannot be read: `EOPNOTSUPP` if the file system has no attributes.
pub fn attribute(file: &impl AsFd, name: &str) -> Result<Option<Vec<u8>>> {
    let mut value = vec![0; ATTRIBUTE_BYTES];
    match fgetxattr(file, name, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA) => Ok(None),
        Err(error) => Err(Error::new("read an attribute of a file", error)),
    }
}

/// Sets an extended attribute of a file and forces it to the medium; `is_new` if it must not exist.
///
/// # Errors
/// `EOPNOTSUPP` if the file system has no attributes, `EEXIST` if the attribute exists and
/// `is_new`, or another refusal.
pub fn set_attribute(file: &impl AsFd, name: &str, value: &[u8], is_new: bool) -> Result<()> {
    let flags = if is_new { XattrFlags::CREATE } else { XattrFlags::empty() };
    fsetxattr(file, name, value, flags).during("give a file an attribute")?;
    rustix::fs::fsync(file).during("put an attribute on the medium")
}

/// A name that a block device has for as long as it is the same hardware and partition: its
/// world-wide name or serial number, and its partition number. `None` if the device has neither.
#[must_use]
pub fn hardware_name(path: &Path) -> Option<String> {
    let status =
        std::fs::metadata(path).ok().filter(|found| found.file_type().is_block_device())?;
    let number = status.rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let own = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let read = |file: &Path| {
        let text = std::fs::read_to_string(file).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let partition = read(&own.join("partition"));
    let whole = if partition.is_some() { own.parent()? } else { &own };
    let names = ["wwid", "device/wwid", "serial", "device/serial"];
    let name = names.iter().find_map(|name| read(&whole.join(name)))?;
    Some(format!("{name} {}", partition.as_deref().unwrap_or("0")))
}

// The alignment that direct I/O on a file needs, as the kernel reports it since 6.1; otherwise
// 4096, which all devices accept.
fn alignment(file: &OwnedFd) -> u32 {
    const UNKNOWN: u32 = 4096;
    let Ok(answer) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
        return UNKNOWN;
    };
    match answer.stx_dio_offset_align.max(answer.stx_dio_mem_align) {
        known if known.is_power_of_two() => known,
        _ => UNKNOWN,
    }
}

// Whether ranges can be set to zeros without writing them. Tried beyond the end of a file, where it
// changes nothing; the kernel does it for every device, if need be by writing.
fn clears(file: &OwnedFd, bytes: u64, is_device: bool) -> bool {
    if is_device {
        return true;
    }
    let beyond = bytes.next_multiple_of(4096);
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    !matches!(fallocate(file, flags, beyond, 4096), Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Opening = Opening { is_read_only: false, claim: Claim::Alone };
    const SHARED: Opening = Opening { is_read_only: false, claim: Claim::Shared };
    const READ: Opening = Opening { is_read_only: true, claim: Claim::Alone };

    fn scratch(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("afar-disk-{name}-{}", std::process::id()));
        Disk::create(&path, 10_000).expect("it can be made");
        path
    }

    #[test]
    fn a_file_is_a_disk() {
        let path = scratch("is");
        assert!(Disk::create(&path, 10_000).is_err(), "it is there");
        let disk = Disk::open(&path, ALONE).expect("it can be opened");
        assert_eq!(disk.bytes, 10_000);
        assert!(disk.alignment.is_power_of_two());
        assert_eq!(Disk::measure(&disk.file).expect("it is there"), 10_000, "probing left it");
        std::fs::remove_file(&path).expect("it was there");
        assert!(Disk::open(Path::new("/dev/null"), ALONE).is_err(), "a character device");
        assert!(Disk::open(Path::new("/nowhere"), ALONE).is_err());
    }

    #[test]
    fn memory_is_known() {
        let path = format!("/dev/shm/afar-disk-{}", std::process::id());
        Disk::create(Path::new(&path), 1 << 20).expect("it can be made");
        let disk = Disk::open(Path::new(&path), ALONE).expect("it can be opened");
        std::fs::remove_file(&path).expect("it was there");
        assert!(disk.is_in_memory && disk.clears && !disk.is_direct, "{disk:?}");
    }

    #[test]
    fn a_file_is_had_once() {
        let path = scratch("once");
        let other = path.with_extension("link");
        std::fs::hard_link(&path, &other).expect("it is not there");
        let refused = |path: &Path, opening| match Disk::open(path, opening) {
            Err(DiskError::Taken(taken)) => taken.holder,
            opened => panic!("{opened:?}"),
        };
        let first = Disk::open(&path, ALONE).expect("nobody has it");
        for opening in [ALONE, SHARED, READ] {
            assert_eq!(refused(&other, opening), "this process");
        }
        drop(first);
        let both = [&path, &other].map(|path| Disk::open(path, SHARED).expect("both say so"));
        assert_eq!(refused(&path, ALONE), "this process");
        drop(both);
        let both = [&path, &other].map(|path| Disk::open(path, READ).expect("nobody writes"));
        assert_eq!(refused(&path, ALONE), "this process");
        drop(both);
        drop(Disk::open(&other, ALONE).expect("nobody has it any more"));
        for path in [path, other] {
            std::fs::remove_file(path).expect("it was there");
        }
    }

    // So it is between fork and exec, whatever the descriptor's flags.
    #[test]
    fn what_a_child_still_has_is_waited_for() {
        let path = scratch("child");
        let disk = Disk::open(&path, ALONE).expect("nobody has it");
        rustix::io::fcntl_setfd(&disk.file, rustix::io::FdFlags::empty()).expect("it is there");
        let mut child =
            std::process::Command::new("sleep").arg("0.3").spawn().expect("it is there");
        drop(disk);
        let disk = Disk::open(&path, ALONE).expect("the child ends");
        assert!(child.try_wait().expect("it is ours").is_some(), "it had it until then");
        drop(disk);
        std::fs::remove_file(path).expect("it was there");
    }

    #[test]
    fn a_copy_is_another_file_and_a_renamed_one_is_not() {
        let path = scratch("mark");
        let [copy, renamed] = ["copy", "renamed"].map(|name| path.with_extension(name));
        let marked = |path: &Path| mark(&File::open(path).expect("it is there")).expect("it is");
        let own = marked(&path);
        std::fs::copy(&path, &copy).expect("there is room");
        std::fs::rename(&path, &renamed).expect("it is there");
        assert_eq!(marked(&renamed), own);
        assert_ne!(marked(&copy), own);
        let file = File::options().write(true).open(&copy).expect("it is there");
        assert_eq!(attribute(&file, "user.afar.test").expect("there are some"), None);
        set_attribute(&file, "user.afar.test", b"x", true).expect("there are some");
        assert!(set_attribute(&file, "user.afar.test", b"y", true).is_err(), "it has it");
        let value = attribute(&file, "user.afar.test").expect("there are some");
        assert_eq!(value.as_deref(), Some(&b"x"[..]));
        for path in [copy, renamed] {
            std::fs::remove_file(path).expect("it was there");
        }
    }
}
