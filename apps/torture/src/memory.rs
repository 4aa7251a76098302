//! The memory of a target on this machine.

use std::net::SocketAddr;

use sys::listener::{Listener, listening_at};

/// The target's processes: the one that is named, or those that listen at `address` on this
/// machine; empty if there are none.
pub(super) fn processes(named: Option<u32>, address: SocketAddr) -> Vec<u32> {
    match (named, listening_at(address)) {
        (Some(pid), _) => vec![pid],
        (None, Listener::Processes(pids)) => pids,
        (None, _) => Vec::new(),
    }
}

/// The resident memory (VmRSS) of all processes, in bytes; `None` if it is not known.
pub(super) fn resident_bytes(pids: &[u32]) -> Option<u64> {
    if pids.is_empty() {
        return None;
    }
    pids.iter().map(|pid| of_process(*pid)).sum()
}

/// The resident memory of one process, in bytes.
fn of_process(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib << 10)
}
