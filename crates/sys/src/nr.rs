//! Numbers of system calls (x86-64).

/// `mmap`
pub const MMAP: i64 = 9;
/// `munmap`
pub const MUNMAP: i64 = 11;
/// `brk`
pub const BRK: i64 = 12;
/// `ioctl`
pub const IOCTL: i64 = 16;
/// `mremap`
pub const MREMAP: i64 = 25;
/// `madvise`
pub const MADVISE: i64 = 28;
/// `clone`
pub const CLONE: i64 = 56;
/// `fork`
pub const FORK: i64 = 57;
/// `execve`
pub const EXECVE: i64 = 59;
/// `exit`
pub const EXIT: i64 = 60;
/// `capset`
pub const CAPSET: i64 = 126;
/// `mlock`
pub const MLOCK: i64 = 149;
/// `munlock`
pub const MUNLOCK: i64 = 150;
/// `mlockall`
pub const MLOCKALL: i64 = 151;
/// `munlockall`
pub const MUNLOCKALL: i64 = 152;
/// `prctl`
pub const PRCTL: i64 = 157;
/// `set_tid_address`
pub const SET_TID_ADDRESS: i64 = 218;
/// `exit_group`
pub const EXIT_GROUP: i64 = 231;
/// `execveat`
pub const EXECVEAT: i64 = 322;
/// `unshare`
pub const UNSHARE: i64 = 272;
/// `mlock2`
pub const MLOCK2: i64 = 325;
/// `io_uring_setup`
pub const IO_URING_SETUP: i64 = 425;
/// `io_uring_register`
pub const IO_URING_REGISTER: i64 = 427;
/// `clone3`
pub const CLONE3: i64 = 435;
/// `process_madvise`
pub const PROCESS_MADVISE: i64 = 440;

/// Numbers of the 32-bit interface.
pub mod foreign {
    /// `execve`
    pub const EXECVE: u32 = 11;
    /// `exit_group`
    pub const EXIT_GROUP: u32 = 252;
    /// `execveat`
    pub const EXECVEAT: u32 = 358;
}
