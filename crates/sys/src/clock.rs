//! Clocks: the monotonic one, which BPF programs read too, and the processor's time-stamp counter.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock of `bpf_ktime_get_ns`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Processor time of the calling thread, in nanoseconds.
#[must_use]
pub fn thread_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Nanoseconds since 1970 by the system's clock.
#[must_use]
pub fn unix_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// A time in nanoseconds; 0 before its epoch.
fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The processor's time-stamp counter, read after all earlier instructions have completed (x86-64).
#[must_use]
#[expect(unsafe_code, reason = "an intrinsic")]
pub fn cycles() -> u64 {
    let mut processor = 0_u32;
    // SAFETY: `rdtscp` exists on every x86-64 processor that runs a kernel with the features afar
    // needs.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut processor) }
}
