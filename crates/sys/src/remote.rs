//! The memory of another process, through `/proc`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use crate::Result;
use crate::error::During;

/// The current address space of a process. When the process executes another program, this still
/// refers to the old one, which is then gone.
#[derive(Debug)]
pub struct Remote {
    file: File,
}

impl Remote {
    /// Opens the address space of thread `tid`.
    ///
    /// # Errors
    /// When the thread is gone, or the caller may not trace it.
    pub fn open(tid: u32) -> Result<Self> {
        let path = format!("/proc/{tid}/mem");
        let file = OpenOptions::new().read(true).write(true).open(path);
        Ok(Self { file: file.during("open the memory of a process")? })
    }

    /// Reads memory at `address` into all of `buffer`.
    ///
    /// # Errors
    /// When not all of it is mapped.
    pub fn read(&self, buffer: &mut [u8], address: u64) -> Result<()> {
        self.file.read_exact_at(buffer, address).during("read the memory of a process")
    }

    /// Writes `bytes` to `address`, whatever the protection of the page: a page of a private
    /// mapping becomes the process's own copy.
    ///
    /// # Errors
    /// When not all of it is mapped, the mapping is shared, or the kernel forbids forced writes.
    pub fn write(&self, bytes: &[u8], address: u64) -> Result<()> {
        self.file.write_all_at(bytes, address).during("write the memory of a process")
    }

    /// Whether no process uses this address space any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let mut byte = [0_u8; 1];
        // The kernel answers end of file for an address space without users, and an error for an
        // address where nothing is mapped.
        matches!(self.file.read_at(&mut byte, 0), Ok(0))
    }
}

/// Whether two processes share one address space, as a child of `vfork` and its parent do.
///
/// # Errors
/// When either is gone, or the caller may not trace it.
#[expect(unsafe_code, reason = "kcmp(2) has no safe wrapper")]
pub fn share_memory(one: u32, other: u32) -> Result<bool> {
    const KCMP_VM: u64 = 1;
    // SAFETY: no pointers.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0_u64, 0_u64) };
    if order < 0 {
        return Err(io::Error::last_os_error()).during("compare two processes");
    }
    Ok(order == 0)
}
