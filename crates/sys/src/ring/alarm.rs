//! The timer that wakes the owner of a ring without a completion.
//!
//! DESIGN NOTES
//!
//! * A timer for each wait is armed and disarmed thousands of times a second and hardly ever ends.
//!   In a virtual machine, whose host has the real timer, that took 8 % of a target's time while it
//!   answered one read at a time. So one timer stays armed from wait to wait. It is moved only if
//!   the ring's owner is to be woken sooner; an owner that is woken too soon waits again.

use io_uring::{opcode, squeue, types};

/// The user data of requests whose completions are ignored.
pub(super) const UNHEARD: u64 = u64::MAX;
/// The user data of the timer.
pub(super) const ALARM: u64 = u64::MAX - 1;

/// See the module's description.
pub(super) struct Alarm {
    /// When the timer ends, by the monotonic clock; `None` if the kernel has no timer.
    armed_ns: Option<u64>,
    /// Boxed, since the kernel reads it when it takes the request.
    time: Box<types::Timespec>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self { armed_ns: None, time: Box::default() }
    }

    /// The request that makes the timer end at `until_ns` or sooner; `None` if it does already.
    pub(super) fn request(&mut self, until_ns: u64) -> Option<squeue::Entry> {
        let armed_ns = self.armed_ns;
        if armed_ns.is_some_and(|armed| armed <= until_ns) {
            return None;
        }
        self.armed_ns = Some(until_ns);
        let (seconds, rest) = (until_ns / 1_000_000_000, until_ns % 1_000_000_000);
        let rest = u32::try_from(rest).expect("it is below a second");
        *self.time = types::Timespec::new().sec(seconds).nsec(rest);
        let by_clock = types::TimeoutFlags::ABS;
        let entry = if armed_ns.is_some() {
            // If the timer has ended meanwhile, the update fails, and its completion ends the wait.
            let update = opcode::TimeoutUpdate::new(ALARM, &raw const *self.time);
            let entry = update.flags(by_clock).build().user_data(UNHEARD);
            entry.flags(squeue::Flags::SKIP_SUCCESS)
        } else {
            let timer = opcode::Timeout::new(&raw const *self.time);
            timer.flags(by_clock).build().user_data(ALARM)
        };
        Some(entry)
    }

    /// Notes that the timer has ended.
    pub(super) const fn ended(&mut self) {
        self.armed_ns = None;
    }
}
