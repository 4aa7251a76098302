//! The machine a run takes place on, from /proc and /sys.

use std::path::Path;

use measure::Host;

/// Describes this machine; what cannot be read is empty.
#[must_use]
pub fn describe() -> Host {
    let cpuinfo = read("/proc/cpuinfo");
    Host {
        kernel: read("/proc/sys/kernel/osrelease"),
        cpu_model: field(&cpuinfo, "model name").to_owned(),
        cpu_count: std::thread::available_parallelism().map_or(0, |count| count.get() as u64),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        thp: selected(&read("/sys/kernel/mm/transparent_hugepage/enabled")).to_owned(),
        clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtualised: virtualised(&cpuinfo),
        governor: some(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        mitigations: mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")),
    }
}

/// The text of a file without its final line end; empty if it cannot be read.
fn read(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim_end().to_owned()
}

/// The text; `None` if it is empty.
fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The first value of `name` in lines of `name : value`.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or("", |(_, value)| value.trim())
}

/// Physical memory, in bytes; 0 if unknown.
fn memory_bytes(meminfo: &str) -> u64 {
    let kib = field(meminfo, "MemTotal").trim_end_matches("kB").trim();
    kib.parse::<u64>().unwrap_or(0) * 1024
}

/// The word in brackets: `always [madvise] never`.
fn selected(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(word, _)| word)
}

/// Whether this is a virtual machine, as the processor says on x86, or a container; `None` if
/// unknown.
fn virtualised(cpuinfo: &str) -> Option<bool> {
    let flags = field(cpuinfo, "flags");
    if flags.is_empty() {
        return None;
    }
    let in_container = Path::new("/.dockerenv").exists()
        || Path::new("/run/.containerenv").exists()
        || std::env::var_os("container").is_some();
    Some(in_container || flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// The state of each vulnerability that affects the processor, in order of name.
fn mitigations(directory: &Path) -> Option<String> {
    let mut found: Vec<String> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let state = std::fs::read_to_string(entry.path()).ok()?;
            let state = state.trim_end();
            (state != "Not affected").then(|| format!("{name}: {state}"))
        })
        .collect();
    found.sort();
    Some(if found.is_empty() { "not affected".to_owned() } else { found.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_finds_the_first() {
        let text = "processor\t: 0\nmodel name\t: X 9\nmodel name\t: Y\n";
        assert_eq!(field(text, "model name"), "X 9");
        assert_eq!(field(text, "flags"), "");
    }

    #[test]
    fn memory_and_selection() {
        assert_eq!(memory_bytes("MemTotal:       2048 kB\n"), 2 << 20);
        assert_eq!(memory_bytes(""), 0);
        assert_eq!(selected("always [madvise] never"), "madvise");
        assert_eq!(selected(""), "");
    }

    #[test]
    fn virtualised_needs_to_know_the_processor() {
        assert_eq!(virtualised(""), None);
        assert_eq!(virtualised("flags : fpu hypervisor"), Some(true));
    }
}
