//! A file or block device that holds the blocks of a disk.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, FallocateFlags, SeekFrom, StatxFlags, fallocate, fstatfs, seek, statx};
use rustix::io::Errno;

use crate::Result;
use crate::error::{During, Error};

/// File systems whose files are in memory, by their numbers in `statfs`.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// What can be done with one.
#[derive(Debug)]
pub struct Disk {
    /// It, open for reading and writing.
    pub file: OwnedFd,
    /// How large it is.
    pub bytes: u64,
    /// Reads and writes bypass the page cache: memory, offsets and lengths are to be multiples of
    /// [`Disk::alignment`].
    pub is_direct: bool,
    /// Its bytes are in memory: asking does not wait for a device.
    pub is_in_memory: bool,
    /// See [`Disk::is_direct`]; a power of two.
    pub alignment: u32,
    /// Stretches can be made zeros without writing them.
    pub clears: bool,
}

impl Disk {
    /// Opens one.
    ///
    /// # Errors
    /// When it is neither a file nor a block device, or cannot be read and written.
    pub fn open(path: &Path) -> Result<Self> {
        let open = |flags: i32| {
            File::options().read(true).write(true).custom_flags(flags | libc::O_CLOEXEC).open(path)
        };
        let buffered = open(0).during("open a disk")?;
        let kind = buffered.metadata().during("look at a disk")?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let reason = std::io::Error::other("it is neither a file nor a block device");
            return Err(Error::new("open a disk", reason));
        }
        let statistics = fstatfs(&buffered).during("look at the file system of a disk")?;
        let is_in_memory = kind.is_file() && IN_MEMORY.contains(&statistics.f_type);
        let direct = if is_in_memory { None } else { open(libc::O_DIRECT).ok() };
        let is_direct = direct.is_some();
        let file = OwnedFd::from(direct.unwrap_or(buffered));
        let bytes = seek(&file, SeekFrom::End(0)).during("find the end of a disk")?;
        let alignment = if is_direct { alignment(&file) } else { 1 };
        let clears = clears(&file, bytes, kind.is_block_device());
        Ok(Self { file, bytes, is_direct, is_in_memory, alignment, clears })
    }

    /// How large it is now.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn measure(file: &impl AsFd) -> Result<u64> {
        seek(file, SeekFrom::End(0)).during("find the end of a disk")
    }

    /// Makes a new file of zeros, which takes no room before it is written.
    ///
    /// # Errors
    /// When it is there already, or cannot be made.
    pub fn create(path: &Path, bytes: u64) -> Result<()> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.during("make a disk")?;
        file.set_len(bytes).during("make a disk of that size")
    }
}

// The kernel says since 6.1; before that, what every device takes.
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

// Tried beyond the end of a file, where it changes nothing; devices all can, if need be by writing.
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

    #[test]
    fn a_file_is_a_disk() {
        let path = std::env::temp_dir().join(format!("afar-disk-{}", std::process::id()));
        Disk::create(&path, 10_000).expect("it can be made");
        assert!(Disk::create(&path, 10_000).is_err(), "it is there");
        let disk = Disk::open(&path).expect("it can be opened");
        assert_eq!(disk.bytes, 10_000);
        assert!(disk.alignment.is_power_of_two());
        assert_eq!(Disk::measure(&disk.file).expect("it is there"), 10_000, "probing left it");
        std::fs::remove_file(&path).expect("it was there");
        assert!(Disk::open(Path::new("/dev/null")).is_err(), "a character device");
        assert!(Disk::open(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn memory_is_known() {
        let path = format!("/dev/shm/afar-disk-{}", std::process::id());
        Disk::create(Path::new(&path), 1 << 20).expect("it can be made");
        let disk = Disk::open(Path::new(&path)).expect("it can be opened");
        std::fs::remove_file(&path).expect("it was there");
        assert!(disk.is_in_memory && disk.clears && !disk.is_direct, "{disk:?}");
    }
}
