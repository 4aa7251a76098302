//! The helper's rights: at no moment more than the program's.
//!
//! A thread has credentials of its own, and the helper shares its memory with the program: whoever
//! takes over the program has the helper's rights, too. So the helper has no effective capability.
//! Some of its work is the program's: to follow it to another user, and to map memory that the
//! program wants locked. The capabilities for that are permitted as long as the program has them
//! itself, and effective during that call only.

use crate::system::{CAPGET, CAPSET, call};

const VERSION_3: u32 = 0x2008_0522;
// CAP_SETGID and CAP_SETUID.
const CHANGE_USER: u32 = 1 << 6 | 1 << 7;
// CAP_IPC_LOCK.
const LOCK_MEMORY: u32 = 1 << 14;

// `struct __user_cap_data_struct`, for capabilities below 32 and above.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

// The helper's permitted capabilities below 32; `None` if they cannot be read.
fn get() -> Option<u32> {
    let header = [VERSION_3, 0];
    let mut halves = [Half::default(); 2];
    let (header, data) = (header.as_ptr() as u64, halves.as_mut_ptr() as u64);
    // SAFETY: both structures are locals of the size of version 3.
    let answer = unsafe { call(CAPGET, [header, data, 0, 0, 0, 0]) };
    (answer == 0).then(|| halves[0].permitted)
}

// Sets the helper's permitted and effective capabilities.
fn set(permitted: u32, effective: u32) {
    let header = [VERSION_3, 0];
    let halves = [Half { effective, permitted, inheritable: 0 }, Half::default()];
    let (header, data) = (header.as_ptr() as u64, halves.as_ptr() as u64);
    // SAFETY: as in `get`. Giving up rights is never refused.
    unsafe { call(CAPSET, [header, data, 0, 0, 0, 0]) };
}

/// Makes no capability effective, and permits only those that the program's own calls may need.
pub(crate) fn give_up() {
    restrict(u64::MAX);
}

/// As `give_up`, and drops capabilities that are not in `mask`, too.
pub(crate) fn restrict(mask: u64) {
    let mask = (mask & 0xffff_ffff) as u32;
    set(get().unwrap_or(0) & (CHANGE_USER | LOCK_MEMORY) & mask, 0);
}

/// Changes user or groups as the program is about to: `words` are number and arguments of its call.
pub(crate) fn follow(words: &[u64]) -> i64 {
    let [number, a, b, c, d, e, f] = *words else { return -22 };
    // SAFETY: arguments of a call that the program makes with the same memory.
    with(CHANGE_USER, || unsafe { call(number, [a, b, c, d, e, f]) })
}

/// Makes a call that may lock memory, with the program's right to do so.
pub(crate) fn locking(call: impl Fn() -> i64) -> i64 {
    with(LOCK_MEMORY, call)
}

// Makes a call with `capabilities` effective, as far as they are permitted.
fn with(capabilities: u32, call: impl Fn() -> i64) -> i64 {
    let permitted = get().unwrap_or(0);
    set(permitted, permitted & capabilities);
    let answer = call();
    give_up();
    answer
}
