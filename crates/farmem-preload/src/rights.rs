//! What the helper may do: at no moment more than the program.
//!
//! A thread has credentials of its own, and the helper shares its memory with the program: whoever
//! takes over the program has the helper's rights, too. So it keeps none. To follow the program to
//! another user it needs two capabilities for the time of that call, as long as the program has
//! them itself; they are permitted then, and effective only during the call.

use crate::system::{CAPGET, CAPSET, call};

const VERSION_3: u32 = 0x2008_0522;
// CAP_SETGID and CAP_SETUID.
const CHANGE_USER: u32 = 1 << 6 | 1 << 7;

// `struct __user_cap_data_struct`, for capabilities below 32 and above.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn get() -> Option<u32> {
    let header = [VERSION_3, 0];
    let mut halves = [Half::default(); 2];
    let (header, data) = (header.as_ptr() as u64, halves.as_mut_ptr() as u64);
    // SAFETY: both structures are locals of the size of version 3.
    let answer = unsafe { call(CAPGET, [header, data, 0, 0, 0, 0]) };
    (answer == 0).then(|| halves[0].permitted)
}

fn set(permitted: u32, effective: u32) {
    let header = [VERSION_3, 0];
    let halves = [Half { effective, permitted, inheritable: 0 }, Half::default()];
    let (header, data) = (header.as_ptr() as u64, halves.as_ptr() as u64);
    // SAFETY: as in `get`. Giving up rights is never refused.
    unsafe { call(CAPSET, [header, data, 0, 0, 0, 0]) };
}

/// Gives up everything but the right to follow the program to another user, if the program has it.
pub(crate) fn give_up() {
    restrict(u64::MAX);
}

/// Gives up what is not in `mask`, too.
pub(crate) fn restrict(mask: u64) {
    let mask = (mask & 0xffff_ffff) as u32;
    set(get().unwrap_or(0) & CHANGE_USER & mask, 0);
}

/// Changes user or groups as the program is about to: `words` are number and arguments of its call.
pub(crate) fn follow(words: &[u64]) -> i64 {
    let [number, a, b, c, d, e, f] = *words else { return -22 };
    let permitted = get().unwrap_or(0) & CHANGE_USER;
    set(permitted, permitted);
    // SAFETY: arguments of a call that the program makes with the same memory.
    let answer = unsafe { call(number, [a, b, c, d, e, f]) };
    give_up();
    answer
}
