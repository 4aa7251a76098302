//! The messages between the supervisor and the part of it inside the program.
//!
//! Greeting: the program makes a system call that only a supervisor's filter understands, and gets
//! two descriptors. After that, messages of 64-bit words on a socket: commands in one direction,
//! replies in the other, in order.

/// First argument of the `prctl` calls that are meant for the supervisor ("afar").
pub const PRCTL: u64 = 0x6166_6172;
/// Version of this protocol.
pub const VERSION: u64 = 2;

/// Reports that room for this object has been mapped, or the `errno` why not. A negative answer
/// sends the thread back, any other is the address to go on at.
pub const INJECTED: u64 = 4;
/// Requests `/dev/userfaultfd`. The answer is a descriptor in the caller's table.
pub const DEVICE: u64 = 5;
/// Greeting of a program that has just been executed, by its helper: version, current break,
/// [`crate::fork_entry`] and the top of its stack follow. The answer is `memory << 32 | socket`, in
/// the helper's own descriptor table.
pub const HELLO: u64 = 1;
/// Greeting of a child that was forked and has not been executed; arguments and answer as in
/// [`HELLO`].
pub const FORKED: u64 = 2;
/// `afar_place(address, bytes, tier)`: the tier's name is packed into eight bytes.
pub const PLACE: u64 = 3;
/// Reports that a thread has come to [`crate::afar_fork`]. The answer is the address at which it
/// goes on in the program, if it is to fork first, or the negative of that.
pub const DETOUR: u64 = 6;
/// Reports that the thread has forked; the kernel's answer follows. Answered when it may write to
/// its memory again.
pub const FORK_MADE: u64 = 7;
/// Reports, from the child, that it exists. Answered when it may greet.
pub const BORN: u64 = 8;
/// Reports that the child has greeted; it goes on in the program when this is answered.
pub const SETTLED: u64 = 9;

/// Offset of what is needed to make this object's data writable: the distance to the data and their
/// length, four bytes each, in padding of the ELF header.
pub const DATA_AT: usize = 8;

/// High half of an otherwise unused argument, by which the filter recognises the helper's own
/// calls, and the supervisor's first `execve`.
pub const COOKIE: u64 = 0x5afa_0000_0000;

/// First word of a message from the supervisor. Second: a number that the reply repeats.
pub mod command {
    /// Map `[address, bytes, protection, flags]` from the memory file at the offset `address -
    /// base`; with `MAP_ANONYMOUS` in the flags, from no file.
    pub const MAP: u64 = 1;
    /// Unmap `[address, bytes]`.
    pub const UNMAP: u64 = 2;
    /// Unmap the pages of `[address, bytes]…`; their contents stay in the memory file.
    pub const DROP: u64 = 3;
    /// As [`DROP`], including locked memory: a thread that touches it next waits.
    pub const FREEZE: u64 = 8;
    /// Exit with `[status]`: the helper is the last thread.
    pub const LEAVE: u64 = 5;
    /// The list of ranges that a greeted process is to map is complete.
    pub const DONE: u64 = 4;
    /// `[number, arguments…]` of a system call that changes the caller's user or groups: the
    /// program is about to make it.
    pub const FOLLOW: u64 = 6;
    /// `[mask]`: the most capabilities that the program will have.
    pub const RESTRICT: u64 = 7;
}

/// First word of a message to the supervisor.
pub mod reply {
    /// `[READY, features of the userfaultfd or 0]`; carries the userfaultfd if there is one.
    pub const READY: u64 = 1;
    /// `[RESULT, number of the command, result]`.
    pub const RESULT: u64 = 2;
}

/// Words of the largest message: two of header and 255 ranges.
pub const WORDS_MAX: usize = 512;
