//! What `/proc` reports of processes and of the machine.

/// The children of process `pid`; none if it is gone.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| list.split(' ').filter_map(|n| n.parse().ok()).collect::<Vec<_>>();
    listed.flat_map(numbers).collect()
}

/// A field of /proc/meminfo in bytes; 4 GiB if it cannot be read.
#[must_use]
pub fn memory_bytes(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(1 << 22) * 1024
}
