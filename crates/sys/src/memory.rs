//! Memory files and views of them.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{FallocateFlags, MemfdFlags, SeekFrom};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::During;
use crate::{Error, Result};

const PAGE: u64 = 4096;

/// A file that lives in memory only and disappears with its last user.
#[derive(Debug)]
pub struct MemoryFile {
    file: File,
}

impl MemoryFile {
    /// Creates an empty memory file of `bytes` (sparse: nothing is allocated). Programs may be run
    /// from it.
    ///
    /// # Errors
    /// When the kernel refuses a new file (out of descriptors or memory).
    pub fn new(name: &str, bytes: u64) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC;
        let fd = rustix::fs::memfd_create(name, flags | MemfdFlags::EXEC)
            .or_else(|_| rustix::fs::memfd_create(name, flags))
            .during("create a memory file")?;
        rustix::fs::ftruncate(&fd, bytes).during("size a memory file")?;
        Ok(Self { file: File::from(fd) })
    }

    /// Another handle on the same file.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub fn share(&self) -> Result<Self> {
        Ok(Self { file: self.file.try_clone().during("duplicate a descriptor")? })
    }

    /// Frees the memory of a range; the range reads as zeros from now on, in every mapping.
    ///
    /// # Errors
    /// When the kernel refuses (never for whole pages of a memory file of ours).
    pub fn punch(&self, offset: u64, bytes: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, bytes)
            .during("free a range of a memory file")
    }

    /// The first byte at or after `offset`, and below `end`, that has memory behind it; `None` if
    /// there is none.
    ///
    /// # Errors
    /// When the kernel refuses to seek.
    pub fn next_data(&self, offset: u64, end: u64) -> Result<Option<u64>> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => Ok((start < end).then_some(start)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(error) => Err(Error::new("find populated memory", error)),
        }
    }

    /// The next range at or after `offset`, and below `end`, that has memory behind it, cut to
    /// `most` bytes; `None` if there is none.
    ///
    /// Searched page by page: `SEEK_HOLE` would look for a hole up to the end of the file.
    ///
    /// # Errors
    /// When the kernel refuses to seek.
    pub fn next_populated(&self, offset: u64, end: u64, most: u64) -> Result<Option<(u64, u64)>> {
        let Some(start) = self.next_data(offset, end)? else { return Ok(None) };
        let end = end.min(start.saturating_add(most));
        let mut hole = (start / PAGE + 1) * PAGE;
        while hole < end && self.next_data(hole, end)? == Some(hole) {
            hole += PAGE;
        }
        Ok(Some((start, hole.min(end))))
    }

    /// Copies the populated pages among `bytes` bytes at `from` of this file to `to` of `target`.
    ///
    /// # Errors
    /// When memory runs out; the target is then partly written.
    pub fn copy_to(&self, target: &Self, from: u64, to: u64, bytes: u64) -> Result<()> {
        const CHUNK: u64 = 1 << 18;
        let mut buffer = vec![0_u8; usize::try_from(bytes.min(CHUNK)).unwrap_or(0)];
        let end = from + bytes;
        let mut at = from;
        while let Some((start, stop)) = self.next_populated(at, end, CHUNK)? {
            let chunk = &mut buffer[..usize::try_from(stop - start).unwrap_or(0)];
            self.file.read_exact_at(chunk, start).during("read a memory file")?;
            let place = to + (start - from);
            target.file.write_all_at(chunk, place).during("write a memory file")?;
            at = stop;
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).during("write a memory file")
    }

    /// Reads exactly `bytes.len()` bytes at `offset`.
    ///
    /// # Errors
    /// When the file is shorter.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).during("read a memory file")
    }

    /// Wakes one waiter, in whatever process, for the word at `offset` (futex(2)).
    ///
    /// # Errors
    /// When the page cannot be mapped.
    #[expect(unsafe_code, reason = "mmap, futex and munmap")]
    pub fn wake(&self, offset: u64) -> Result<()> {
        let (start, within) = (offset / PAGE * PAGE, usize::try_from(offset % PAGE).unwrap_or(0));
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping of one page, unmapped below; the word lies within it.
        unsafe {
            let page = rustix::mm::mmap(
                std::ptr::null_mut(),
                4096,
                protection,
                MapFlags::SHARED,
                &self.file,
                start,
            )
            .during("map a page of a memory file")?;
            let word = page.byte_add(within);
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1);
            rustix::mm::munmap(page, 4096).during("unmap a page of a memory file")
        }
    }

    /// Bytes of memory that the file occupies now.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn allocated_bytes(&self) -> Result<u64> {
        let status = rustix::fs::fstat(&self.file).during("measure a memory file")?;
        Ok(u64::try_from(status.st_blocks).unwrap_or(0) * 512)
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl From<MemoryFile> for OwnedFd {
    fn from(memory: MemoryFile) -> Self {
        memory.file.into()
    }
}

/// A shared, writable view of a file or kernel map, as atomic words because others write to it,
/// too.
#[derive(Debug)]
pub struct SharedView {
    base: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the view is plain memory; every access goes through atomics.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for SharedView {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Sync for SharedView {}

impl SharedView {
    /// Maps the first `bytes` of `fd`, shared and writable.
    ///
    /// # Errors
    /// When the kernel refuses the mapping.
    #[expect(unsafe_code, reason = "mmap")]
    pub fn map(fd: &impl AsFd, bytes: usize) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choosing; nothing else refers to
        // it.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0)
        }
        .during("map shared memory")?;
        let base = NonNull::new(base)
            .ok_or_else(|| Error::new("map shared memory", rustix::io::Errno::FAULT))?;
        Ok(Self { base, bytes })
    }

    /// The view as 32-bit words.
    #[must_use]
    #[expect(unsafe_code, reason = "a slice over the mapping")]
    pub fn words32(&self) -> &[AtomicU32] {
        // SAFETY: the mapping is page-aligned, `bytes` long, lives as long as `self`, and atomics
        // allow writers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.bytes / 4) }
    }

    /// The view as 64-bit words.
    #[must_use]
    #[expect(unsafe_code, reason = "a slice over the mapping")]
    pub fn words64(&self) -> &[AtomicU64] {
        // SAFETY: as in `words32`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.bytes / 8) }
    }

    /// Address of the first byte in this process.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }
}

impl Drop for SharedView {
    #[expect(unsafe_code, reason = "munmap")]
    fn drop(&mut self) {
        // SAFETY: `base` and `bytes` came from mmap and the slices handed out borrow `self`. An
        // error here would mean that the range is no longer mapped, and then there is nothing left
        // to do.
        let _unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr(), self.bytes) };
    }
}

/// Number of the descriptor, for messages to another process.
#[must_use]
pub fn raw(fd: &impl AsFd) -> i32 {
    fd.as_fd().as_raw_fd()
}
/// Makes a mapping as `mmap(2)` would, at any address, and unmaps it: an error if the kernel
/// refuses such a mapping. No page is touched. `protection` and `flags` are those of the call.
///
/// # Errors
/// The kernel's refusal.
#[expect(unsafe_code, reason = "mmap of what another process asks for")]
pub fn try_map(
    bytes: u64,
    protection: u64,
    flags: u64,
    file: Option<&impl AsFd>,
    offset: u64,
) -> Result<()> {
    let operation = "map a file";
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let number = |value: u64| libc::c_int::try_from(value).unwrap_or(-1);
    let descriptor = file.map_or(-1, |file| file.as_fd().as_raw_fd());
    let offset = libc::off_t::try_from(offset).unwrap_or(-1);
    let none = std::ptr::null_mut();
    // SAFETY: no address is asked for, so the mapping replaces nothing.
    let address =
        unsafe { libc::mmap(none, length, number(protection), number(flags), descriptor, offset) };
    if address == libc::MAP_FAILED {
        return Err(Error::last(operation));
    }
    // SAFETY: the mapping made above, which nobody else knows of.
    unsafe { libc::munmap(address, length) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn populated_memory_is_found_and_copied_as_it_lies() {
        let new = || MemoryFile::new("afar-test", 64 * PAGE).unwrap();
        let (memory, copy) = (new(), new());
        for page in [1, 2, 3, 7, 40] {
            memory.write_at(&[page], u64::from(page) * PAGE + 5).unwrap();
        }
        let found = |from, end, most| {
            let found = memory.next_populated(from * PAGE, end * PAGE, most * PAGE).unwrap();
            found.map(|(start, stop)| (start / PAGE, stop / PAGE))
        };
        assert_eq!(found(0, 64, 64), Some((1, 4)));
        // Neither beyond what is asked about, nor more than is asked for.
        assert_eq!((found(0, 3, 64), found(0, 64, 2)), (Some((1, 3)), Some((1, 3))));
        assert_eq!((found(4, 64, 9), found(4, 7, 9)), (Some((7, 8)), None));
        assert_eq!((found(41, 64, 9), found(64, 99, 9)), (None, None));
        assert_eq!(memory.next_data(PAGE + 9, 64 * PAGE).unwrap(), Some(PAGE + 9));
        memory.copy_to(&copy, 2 * PAGE, 10 * PAGE, 40 * PAGE).unwrap();
        let mut byte = [0];
        for (at, value) in [(9, 0), (10, 2), (11, 3), (15, 7), (48, 40)] {
            copy.read_at(&mut byte, at * PAGE + 5).unwrap();
            assert_eq!(byte, [value], "page {at}");
        }
        assert_eq!(copy.allocated_bytes().unwrap(), 4 * PAGE);
    }
}
