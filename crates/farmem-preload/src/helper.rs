//! The greeting and the helper thread.

use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::protocol::{COOKIE, PRCTL, VERSION, WORDS_MAX, command, reply};
use crate::protocol::{DEVICE, FORKED, HELLO};
use crate::rights;
use crate::system::{self, call, spawn_thread};

/// Bytes of each stack.
pub(crate) const STACK_BYTES: usize = 64 << 10;
const MADV_DONTNEED: u64 = 4;
const MADV_NOHUGEPAGE: u64 = 15;
const MADV_DONTNEED_LOCKED: u64 = 24;
const EAGAIN: i64 = 11;
const SIG_SETMASK: u64 = 2;
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const USERFAULTFD_IOC_NEW: u64 = 0xaa00;
const CLOEXEC_NONBLOCK: u64 = 0o2_004_000;
// Write-protection, of file pages, resolved by the kernel itself; minor faults; the faulting
// thread's number.
const FEATURE_SETS: [u64; 2] =
    [1 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15, 1 | 1 << 8 | 1 << 10 | 1 << 12];

#[repr(align(16))]
#[allow(dead_code, reason = "only its address is used")]
pub(crate) struct Stack([u8; STACK_BYTES]);

static mut HELPER_STACK: Stack = Stack([0; STACK_BYTES]);
/// For a thread of the program that runs this object's code.
pub(crate) static mut FORK_STACK: Stack = Stack([0; STACK_BYTES]);

#[repr(align(16))]
#[allow(dead_code, reason = "written to by the processor")]
pub(crate) struct Vectors([u8; 512]);

/// Saves the vector registers of such a thread.
pub(crate) static mut VECTORS: Vectors = Vectors([0; 512]);

/// The helper's connection: its socket, the memory file, and the address at the file's start.
struct Link {
    socket: u64,
    memory: u64,
    base: u64,
}

// The helper's state, for which the first thread waits.
static HELPER: AtomicU32 = AtomicU32::new(STARTING);
const STARTING: u32 = 0;
const READY: u32 = 1;
const ABSENT: u32 = 2;

/// Greets the supervisor after a program was executed, and starts the helper.
pub(crate) extern "C" fn join_executed() {
    join(HELLO);
}

/// Greets the supervisor in a child that this object has forked, and starts its helper.
pub(crate) extern "C" fn join_forked() {
    join(FORKED);
}

/// The routine that a forked child runs before its first instruction. Ends in a breakpoint.
pub extern "C" fn fork_entry(_argument: u64) -> ! {
    join(FORKED);
    loop {
        // SAFETY: the supervisor traces this thread and waits for the breakpoint.
        unsafe { core::arch::asm!("int3") };
    }
}

// Starts the helper and waits until it has greeted. The helper greets, because it has a descriptor
// table of its own: the program's is never used. All signals are blocked meanwhile: none of the
// program's is ever delivered to the helper, and no handler writes to memory that is on its way
// into the arena.
fn join(greeting: u64) {
    HELPER.store(STARTING, Ordering::SeqCst);
    let before = swap_signals(u64::MAX);
    // SAFETY: the stack is the helper's alone.
    let helper = unsafe {
        let top = addr_of_mut!(HELPER_STACK) as u64 + STACK_BYTES as u64;
        spawn_thread(top, serve, greeting)
    };
    const FUTEX_WAIT_PRIVATE: u64 = 128;
    while helper >= 0 && HELPER.load(Ordering::SeqCst) == STARTING {
        let word = HELPER.as_ptr() as u64;
        let expected = u64::from(STARTING);
        // SAFETY: the word is a static; no time-out.
        unsafe { call(system::FUTEX, [word, FUTEX_WAIT_PRIVATE, expected, 0, 0, 0]) };
    }
    swap_signals(before);
}

// Sets the mask of blocked signals. Returns the one before.
fn swap_signals(blocked: u64) -> u64 {
    let mut before = 0_u64;
    let (new, old) = (&raw const blocked as u64, &raw mut before as u64);
    // SAFETY: both masks are locals of eight bytes.
    unsafe { call(system::RT_SIGPROCMASK, [SIG_SETMASK, new, old, 8, 0, 0]) };
    before
}

// Publishes the helper's state, and wakes the first thread.
fn announce(state: u32) {
    const FUTEX_WAKE_PRIVATE: u64 = 129;
    HELPER.store(state, Ordering::SeqCst);
    // SAFETY: the word is a static.
    unsafe { call(system::FUTEX, [HELPER.as_ptr() as u64, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0]) };
}

// Greets the supervisor, in the helper, up to READY. `None` if the supervisor has no room for this
// process.
fn greet(greeting: u64) -> Option<Link> {
    // SAFETY: this thread's own descriptor table, and plain numbers; the addresses are those of our
    // own statics.
    let answer = unsafe {
        call(system::CLOSE_RANGE, [0, 0xffff_ffff, 0, 0, 0, 0]);
        let program_break = call(system::BRK, [0; 6]).cast_unsigned();
        let entry = fork_entry as *const () as u64;
        let stack_top = addr_of_mut!(FORK_STACK) as u64 + STACK_BYTES as u64;
        let hello = [PRCTL, greeting, VERSION, program_break, entry, stack_top];
        call(system::PRCTL, hello)
    };
    if answer < 0 {
        return None;
    }
    let answer = answer.cast_unsigned();
    let socket = answer & 0xffff_ffff;
    let mut setup = [0_u64; WORDS_MAX];
    // The first message has the address at the start of the memory file, whether a userfaultfd is
    // wanted, and the address to read.
    if receive(socket, &mut setup) < 24 {
        return None;
    }
    enrol(setup[2]);
    let link = Link { socket, memory: answer >> 32, base: setup[0] };
    map_all(&link);
    ready(&link, open_userfaultfd(setup[1] != 0));
    rights::give_up();
    Some(link)
}

// Reads an address where nothing is mapped: the read fails, but its fault tells the trap which
// process this is, whatever number it has in whatever namespace.
fn enrol(address: u64) {
    const SIG_BLOCK: u64 = 0;
    // SAFETY: the kernel answers EFAULT; and every signal is blocked here anyway.
    unsafe { call(system::RT_SIGPROCMASK, [SIG_BLOCK, address, 0, 8, 0, 0]) };
}

// Performs commands until DONE: they map the program's static data, or a child's own copy of its
// parent's mappings.
fn map_all(link: &Link) {
    let mut words = [0_u64; WORDS_MAX];
    while receive(link.socket, &mut words) >= 16 && words[0] != command::DONE {
        if perform(link, &words) < 0 {
            // The process must not go on in memory that is not its own.
            system::die();
        }
    }
}

const NONE: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Fault {
    descriptor: u64,
    features: u64,
}

// Opens a userfaultfd: by the supervisor's device, which it may open whoever this process is; else
// by the process's own; else by the system call.
fn open_userfaultfd(wanted: bool) -> Fault {
    const NOTHING: Fault = Fault { descriptor: NONE, features: 0 };
    if !wanted {
        return NOTHING;
    }
    for features in FEATURE_SETS {
        let fd = userfaultfd();
        if fd < 0 {
            return NOTHING;
        }
        let fd = fd.cast_unsigned();
        let mut api = [UFFD_API, features, 0];
        // SAFETY: `api` is the structure that the request names.
        if unsafe { call(system::IOCTL, [fd, UFFDIO_API, api.as_mut_ptr() as u64, 0, 0, 0]) } == 0 {
            return Fault { descriptor: fd, features };
        }
        // SAFETY: our own descriptor.
        unsafe { call(system::CLOSE, [fd, 0, 0, 0, 0, 0]) };
    }
    NOTHING
}

// A descriptor of a new userfaultfd, or `-errno`.
fn userfaultfd() -> i64 {
    let path = c"/dev/userfaultfd".as_ptr() as u64;
    // SAFETY: plain numbers.
    let given = unsafe { call(system::PRCTL, [PRCTL, DEVICE, 0, 0, 0, 0]) };
    let fd = of_device(given);
    if fd >= 0 {
        return fd;
    }
    // SAFETY: a constant path; AT_FDCWD is -100; O_RDWR | O_CLOEXEC.
    let own = unsafe { call(system::OPENAT, [-100_i64 as u64, path, 0o2_000_002, 0, 0, 0]) };
    let fd = of_device(own);
    if fd >= 0 {
        return fd;
    }
    // SAFETY: flags by value.
    unsafe { call(system::USERFAULTFD, [CLOEXEC_NONBLOCK, 0, 0, 0, 0, 0]) }
}

// Makes a userfaultfd from the descriptor of the device, and closes that. Returns `-errno` if it
// fails.
fn of_device(device: i64) -> i64 {
    if device < 0 {
        return device;
    }
    let device = device.cast_unsigned();
    // SAFETY: our own descriptor; the request takes flags by value.
    unsafe {
        let fd = call(system::IOCTL, [device, USERFAULTFD_IOC_NEW, CLOEXEC_NONBLOCK, 0, 0, 0]);
        call(system::CLOSE, [device, 0, 0, 0, 0, 0]);
        fd
    }
}

// Sends READY with the userfaultfd's descriptor attached, if there is one.
fn ready(link: &Link, fault: Fault) {
    let mut words = [reply::READY, fault.features];
    let mut slice = [words.as_mut_ptr() as u64, 16];
    // struct cmsghdr: length 20, SOL_SOCKET, SCM_RIGHTS, then the descriptor.
    let mut control = [20_u64, 1 | 1 << 32, fault.descriptor & 0xffff_ffff];
    let mut message = [0, 0, slice.as_mut_ptr() as u64, 1, 0, 0, 0];
    if fault.descriptor != NONE {
        message[4] = control.as_mut_ptr() as u64;
        message[5] = 24;
    }
    const MSG_NOSIGNAL: u64 = 0x4000;
    let header = message.as_mut_ptr() as u64;
    // SAFETY: a well-formed message header whose parts are locals.
    unsafe { call(system::SENDMSG, [link.socket, header, MSG_NOSIGNAL, 0, 0, 0]) };
}

// The helper's main loop: greets, then performs commands for ever.
extern "C" fn serve(greeting: u64) -> ! {
    let link = greet(greeting);
    let Some(link) = link else {
        announce(ABSENT);
        system::exit(0);
    };
    let process = name_and_find();
    announce(READY);
    let mut words = [0_u64; WORDS_MAX];
    loop {
        let bytes = receive(link.socket, &mut words);
        if bytes == -4 {
            continue;
        }
        if bytes < 16 {
            // The supervisor is gone.
            system::die();
        }
        let count = (bytes.cast_unsigned() as usize / 8).min(WORDS_MAX);
        let result = match words[0] {
            command::DROP => drop_ranges(process, &words[2..count], MADV_DONTNEED),
            command::FREEZE => drop_ranges(process, &words[2..count], MADV_DONTNEED_LOCKED),
            command::LEAVE => system::exit(words[2]),
            command::FOLLOW => rights::follow(&words[2..count]),
            command::RESTRICT => {
                rights::restrict(words[2]);
                0
            }
            _ => perform(&link, &words),
        };
        answer(link.socket, words[1], result);
    }
}

// Names the thread. Returns a pidfd of this process.
fn name_and_find() -> u64 {
    const PR_SET_NAME: u64 = 15;
    // SAFETY: a constant string; plain numbers.
    unsafe {
        call(system::PRCTL, [PR_SET_NAME, c"afar-helper".as_ptr() as u64, 0, 0, 0, 0]);
        let own = call(system::GETPID, [0; 6]).cast_unsigned();
        call(system::PIDFD_OPEN, [own, 0, 0, 0, 0, 0]).cast_unsigned()
    }
}

// Performs MAP and UNMAP. The cookie tells the filter that the call is the helper's.
fn perform(link: &Link, words: &[u64; WORDS_MAX]) -> i64 {
    let [operation, _, address, bytes, protection, flags, ..] = *words;
    // SAFETY: ranges of the arena, which is the supervisor's to arrange.
    unsafe {
        match operation {
            command::MAP => {
                let memory = link.memory | COOKIE;
                let offset = address - link.base;
                let arguments = [address, bytes, protection, flags, memory, offset];
                let mut result = call(system::MMAP, arguments);
                // The program wants all its memory locked, and exceeds the limit of an unprivileged
                // one.
                if result == -EAGAIN {
                    result = rights::locking(|| call(system::MMAP, arguments));
                }
                call(system::MADVISE, [address, bytes, MADV_NOHUGEPAGE, 0, 0, COOKIE]);
                result
            }
            command::UNMAP => call(system::MUNMAP, [address, bytes, 0, 0, 0, COOKIE]),
            _ => -22,
        }
    }
}

// Unmaps pages of ranges with `advice`. `ranges` has the layout of an array of `struct iovec`.
fn drop_ranges(process: u64, ranges: &[u64], advice: u64) -> i64 {
    let count = ranges.len() as u64 / 2;
    let total: u64 = ranges.chunks_exact(2).map(|range| range[1]).sum();
    let vector = ranges.as_ptr() as u64;
    // SAFETY: the vector is ours; contents survive, because the mapping is shared.
    let done =
        unsafe { call(system::PROCESS_MADVISE, [process, vector, count, advice, 0, COOKIE]) };
    if done >= 0 && done.cast_unsigned() == total {
        return 0;
    }
    // Kernels before 6.13, or a range that the program has unmapped meanwhile: one by one.
    for range in ranges.chunks_exact(2) {
        // SAFETY: as above.
        unsafe { call(system::MADVISE, [range[0], range[1], advice, 0, 0, COOKIE]) };
    }
    0
}

// Receives a message. Returns its length in bytes, or `-errno`.
fn receive(socket: u64, words: &mut [u64; WORDS_MAX]) -> i64 {
    let buffer = words.as_mut_ptr() as u64;
    // SAFETY: the buffer is as long as the call is told.
    unsafe { call(system::RECVFROM, [socket, buffer, WORDS_MAX as u64 * 8, 0, 0, 0]) }
}

// Sends the result of command `number`.
fn answer(socket: u64, number: u64, result: i64) {
    let words = [reply::RESULT, number, result.cast_unsigned()];
    const MSG_NOSIGNAL: u64 = 0x4000;
    // SAFETY: the buffer is a local of 24 bytes.
    unsafe { call(system::SENDTO, [socket, words.as_ptr() as u64, 24, MSG_NOSIGNAL, 0, 0]) };
}
