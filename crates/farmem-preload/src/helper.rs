//! The greeting and the helper thread.

use core::ptr::addr_of_mut;

use crate::protocol::{COOKIE, PRCTL, VERSION, WORDS_MAX, command, reply};
use crate::protocol::{FORKED, HELLO};
use crate::system::{self, call, spawn_thread};

const STACK_BYTES: usize = 64 << 10;
const MAP_SHARED: u64 = 1;
const MADV_DONTNEED: u64 = 4;
const MADV_NOHUGEPAGE: u64 = 15;
const SIG_SETMASK: u64 = 2;
const SIGKILL: u64 = 9;
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const USERFAULTFD_IOC_NEW: u64 = 0xaa00;
const CLOEXEC_NONBLOCK: u64 = 0o2_004_000;
// Write-protection, of file pages, resolved by the kernel itself; minor faults; the faulting thread's number.
const FEATURE_SETS: [u64; 2] = [
    1 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15,
    1 | 1 << 8 | 1 << 10 | 1 << 12,
];

#[repr(align(16))]
#[allow(dead_code, reason = "only its address is used")]
struct Stack([u8; STACK_BYTES]);

// One for the helper thread; one for a forked child's single thread before the program's code runs in it.
static mut HELPER_STACK: Stack = Stack([0; STACK_BYTES]);
static mut FORK_STACK: Stack = Stack([0; STACK_BYTES]);

/// What the helper needs; lives at the bottom of its stack.
#[repr(C)]
#[derive(Clone, Copy)]
struct Link {
    socket: u64,
    memory: u64,
    base: u64,
}

static mut LINK: Link = Link {
    socket: 0,
    memory: 0,
    base: 0,
};

/// Greets the supervisor, if there is one, and starts the helper. Called once, by the loader.
pub fn start() {
    join(HELLO);
}

/// Where a forked child is made to run before its first instruction. Ends in a breakpoint.
pub extern "C" fn fork_entry(_argument: u64) -> ! {
    join(FORKED);
    loop {
        // SAFETY: the supervisor traces this thread and waits for the breakpoint.
        unsafe { core::arch::asm!("int3") };
    }
}

fn join(greeting: u64) {
    // SAFETY: plain numbers in, plain number out; the addresses are those of our own statics.
    let (answer, pid) = unsafe {
        let program_break = call(system::BRK, [0; 6]).cast_unsigned();
        let entry = fork_entry as *const () as u64;
        let stack_top = addr_of_mut!(FORK_STACK) as u64 + STACK_BYTES as u64;
        let hello = [PRCTL, greeting, VERSION, program_break, entry, stack_top];
        (call(system::PRCTL, hello), call(system::GETPID, [0; 6]))
    };
    if answer < 0 || pid < 0 {
        return;
    }
    let answer = answer.cast_unsigned();
    let mut setup = [0_u64; WORDS_MAX];
    let socket = answer & 0xffff_ffff;
    // The first message says where the arena is.
    if receive(socket, &mut setup) < 16 {
        return;
    }
    let link = Link {
        socket,
        memory: answer >> 32,
        base: setup[0],
    };
    if greeting == FORKED {
        map_all(&link);
    }
    // SAFETY: nothing else reads or writes LINK before the helper starts.
    unsafe { LINK = link };
    let fault = open_userfaultfd(setup[1] != 0);
    let helper = start_helper();
    ready(&link, helper, fault);
    for fd in [link.socket, link.memory, fault.descriptor] {
        if fd != NONE {
            // SAFETY: our own descriptors; the helper has copies.
            unsafe { call(system::CLOSE, [fd, 0, 0, 0, 0, 0]) };
        }
    }
}

// Commands until DONE: the child's own copy of what its parent had mapped.
fn map_all(link: &Link) {
    let mut words = [0_u64; WORDS_MAX];
    while receive(link.socket, &mut words) >= 16 && words[0] != command::DONE {
        perform(link, &words);
    }
}

const NONE: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Fault {
    descriptor: u64,
    features: u64,
}

// The device, whose permissions an administrator can set, comes first; then the system call.
fn open_userfaultfd(wanted: bool) -> Fault {
    const NOTHING: Fault = Fault {
        descriptor: NONE,
        features: 0,
    };
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
        if unsafe {
            call(
                system::IOCTL,
                [fd, UFFDIO_API, api.as_mut_ptr() as u64, 0, 0, 0],
            )
        } == 0
        {
            return Fault {
                descriptor: fd,
                features,
            };
        }
        // SAFETY: our own descriptor.
        unsafe { call(system::CLOSE, [fd, 0, 0, 0, 0, 0]) };
    }
    NOTHING
}

fn userfaultfd() -> i64 {
    let path = c"/dev/userfaultfd".as_ptr() as u64;
    // SAFETY: a constant path; AT_FDCWD is -100; O_RDWR | O_CLOEXEC.
    let device = unsafe {
        call(
            system::OPENAT,
            [-100_i64 as u64, path, 0o2_000_002, 0, 0, 0],
        )
    };
    if device >= 0 {
        let device = device.cast_unsigned();
        // SAFETY: our own descriptor; the request takes flags by value.
        let fd = unsafe {
            let fd = call(
                system::IOCTL,
                [device, USERFAULTFD_IOC_NEW, CLOEXEC_NONBLOCK, 0, 0, 0],
            );
            call(system::CLOSE, [device, 0, 0, 0, 0, 0]);
            fd
        };
        if fd >= 0 {
            return fd;
        }
    }
    // SAFETY: flags by value.
    unsafe { call(system::USERFAULTFD, [CLOEXEC_NONBLOCK, 0, 0, 0, 0, 0]) }
}

// With every signal blocked, so that none of the program's is ever delivered to the helper.
fn start_helper() -> i64 {
    let (all, mut before) = (u64::MAX, 0_u64);
    let (all, saved) = (&raw const all as u64, &raw mut before as u64);
    // SAFETY: both masks are locals of eight bytes; the stack is the helper's alone.
    unsafe {
        call(system::RT_SIGPROCMASK, [SIG_SETMASK, all, saved, 8, 0, 0]);
        let top = addr_of_mut!(HELPER_STACK) as u64 + STACK_BYTES as u64;
        let helper = spawn_thread(top, serve, 0);
        call(system::RT_SIGPROCMASK, [SIG_SETMASK, saved, 0, 8, 0, 0]);
        helper
    }
}

// Sends READY with the userfaultfd as a passenger.
fn ready(link: &Link, helper: i64, fault: Fault) {
    let mut words = [reply::READY, helper.cast_unsigned(), fault.features];
    let mut slice = [words.as_mut_ptr() as u64, 24];
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
    unsafe {
        call(
            system::SENDMSG,
            [link.socket, header, MSG_NOSIGNAL, 0, 0, 0],
        )
    };
}

extern "C" fn serve(_argument: u64) -> ! {
    // SAFETY: written before this thread was started, and never again.
    let link = unsafe { LINK };
    let process = keep_only(&link);
    let mut words = [0_u64; WORDS_MAX];
    loop {
        let bytes = receive(link.socket, &mut words);
        if bytes < 16 {
            if bytes == -4 {
                continue;
            }
            // The supervisor is gone.
            // SAFETY: no pointers.
            unsafe {
                let own = call(system::GETPID, [0; 6]).cast_unsigned();
                call(system::KILL, [own, SIGKILL, 0, 0, 0, 0]);
            }
            system::exit_group(137);
        }
        let count = (bytes.cast_unsigned() as usize / 8).min(WORDS_MAX);
        let result = if words[0] == command::DROP {
            drop_ranges(process, &words[2..count])
        } else {
            perform(&link, &words)
        };
        answer(link.socket, words[1], result);
    }
}

// Names the thread, closes every descriptor but ours, and opens one for this process.
fn keep_only(link: &Link) -> u64 {
    let (low, high) = if link.socket < link.memory {
        (link.socket, link.memory)
    } else {
        (link.memory, link.socket)
    };
    // SAFETY: this thread's own descriptor table; ranges that are empty are refused, which is fine.
    unsafe {
        if low > 0 {
            call(system::CLOSE_RANGE, [0, low - 1, 0, 0, 0, 0]);
        }
        if high > low + 1 {
            call(system::CLOSE_RANGE, [low + 1, high - 1, 0, 0, 0, 0]);
        }
        call(system::CLOSE_RANGE, [high + 1, 0xffff_ffff, 0, 0, 0, 0]);
        const PR_SET_NAME: u64 = 15;
        call(
            system::PRCTL,
            [PR_SET_NAME, c"afar-helper".as_ptr() as u64, 0, 0, 0, 0],
        );
        let own = call(system::GETPID, [0; 6]).cast_unsigned();
        call(system::PIDFD_OPEN, [own, 0, 0, 0, 0, 0]).cast_unsigned()
    }
}

// MAP and UNMAP. The cookie tells the filter that the call is ours.
fn perform(link: &Link, words: &[u64; WORDS_MAX]) -> i64 {
    let [operation, _, address, bytes, protection, flags, ..] = *words;
    // SAFETY: ranges of the arena, which is the supervisor's to arrange.
    unsafe {
        match operation {
            command::MAP => {
                let memory = link.memory | COOKIE;
                let offset = address - link.base;
                let flags = MAP_SHARED | flags;
                let result = call(
                    system::MMAP,
                    [address, bytes, protection, flags, memory, offset],
                );
                call(
                    system::MADVISE,
                    [address, bytes, MADV_NOHUGEPAGE, 0, 0, COOKIE],
                );
                result
            }
            command::UNMAP => call(system::MUNMAP, [address, bytes, 0, 0, 0, COOKIE]),
            _ => -22,
        }
    }
}

// The words are an array of `struct iovec` as they stand.
fn drop_ranges(process: u64, ranges: &[u64]) -> i64 {
    let count = ranges.len() as u64 / 2;
    let total: u64 = ranges.chunks_exact(2).map(|range| range[1]).sum();
    let vector = ranges.as_ptr() as u64;
    // SAFETY: the vector is ours; contents survive, because the mapping is shared.
    let done = unsafe {
        call(
            system::PROCESS_MADVISE,
            [process, vector, count, MADV_DONTNEED, 0, 0],
        )
    };
    if done >= 0 && done.cast_unsigned() == total {
        return 0;
    }
    // Kernels before 6.13, or a range that the program has unmapped meanwhile: one by one.
    for range in ranges.chunks_exact(2) {
        // SAFETY: as above.
        unsafe {
            call(
                system::MADVISE,
                [range[0], range[1], MADV_DONTNEED, 0, 0, COOKIE],
            )
        };
    }
    0
}

fn receive(socket: u64, words: &mut [u64; WORDS_MAX]) -> i64 {
    let buffer = words.as_mut_ptr() as u64;
    // SAFETY: the buffer is as long as the call is told.
    unsafe {
        call(
            system::RECVFROM,
            [socket, buffer, WORDS_MAX as u64 * 8, 0, 0, 0],
        )
    }
}

fn answer(socket: u64, number: u64, result: i64) {
    let words = [reply::RESULT, number, result.cast_unsigned()];
    const MSG_NOSIGNAL: u64 = 0x4000;
    // SAFETY: the buffer is a local of 24 bytes.
    unsafe {
        call(
            system::SENDTO,
            [socket, words.as_ptr() as u64, 24, MSG_NOSIGNAL, 0, 0],
        )
    };
}
