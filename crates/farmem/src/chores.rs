//! Periodic work for every process: tending it, sampling its memory, scanning for unseen pages.
//!
//! ```text
//! tick -> so many chores -> one at a time, a millisecond apart at least -> next tick
//! ```
//!
//! A chore reads files of `/proc`, some 100 µs long. Faults may need frames meanwhile, and a batch
//! of frames lasts about as long. So chores are spread out, and a tick has a number of them however
//! many processes there are: all processes in turn.

mod steps;

/// Chores of each kind at a tick.
const CHORES_MAX: usize = 8;
const APART_NS: u64 = 1_000_000;

/// Chores that are left until the next tick.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    to_tend: usize,
    to_look_at: usize,
    to_scan: usize,
    next_ns: u64,
    /// Slot of the process whose turn it was last to be looked after.
    tended: usize,
}

impl Chores {
    /// Begins a tick: sets how many chores of each kind are due, at most one per process or image.
    pub(crate) fn begin(&mut self, processes: usize, images: usize) {
        self.to_tend = processes.min(CHORES_MAX);
        self.to_look_at = images.min(CHORES_MAX);
        self.to_scan = CHORES_MAX;
    }

    /// Whether any are left.
    pub(crate) const fn any(&self) -> bool {
        self.to_tend + self.to_look_at + self.to_scan > 0
    }
}

// Whether a thread may be inside `munmap` or `mremap`.
fn unmaps(tid: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
    let running = call.starts_with("running");
    running || matches!(call.split(' ').next(), Some("11" | "25"))
}

// Whether a tracer or a signal has stopped a thread.
fn is_stopped(tgid: u32, tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tgid}/task/{tid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest.trim_start());
    state.starts_with(['t', 'T'])
}

// The exit status of a process of which only the helper still runs; `None` if other threads do. The
// kernel takes the status of a process from its last thread.
fn alone(tgid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{tgid}/task/{tgid}/stat")).ok()?;
    let status = zombie_status(&stat)?;
    let tasks = std::fs::read_dir(format!("/proc/{tgid}/task")).ok()?;
    (tasks.count() == 2).then_some(status)
}

// The exit status of a zombie: the last of 52 fields of its `stat`. `None` if it has not ended.
fn zombie_status(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let status: u64 = fields.get(49)?.parse().ok()?;
    (fields[0] == "Z").then_some(status >> 8 & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_thread_that_has_ended_is_the_last_field() {
        let line = |state, code| format!("7 (a) b) {state}{} {code}\n", " 0".repeat(48));
        assert_eq!(zombie_status(&line("Z", 9 << 8)), Some(9));
        assert_eq!(zombie_status(&line("S", 9 << 8)), None);
        assert_eq!(zombie_status("7 (a) Z 0"), None);
    }
}
