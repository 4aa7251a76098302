//! What tells names that this machine gives from those of others.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

/// Where a machine is named, the best first (machine-id(5), hostname(5)).
const NAMES: [&str; 3] =
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];
/// So that nobody learns the machine's own identifier from it.
const PURPOSE: &str = "afar serve: name of a subsystem\n";
/// 48 bits.
const BYTES: usize = 6;

/// Twelve hexadecimal digits, the same for as long as the machine is.
pub(super) fn part() -> &'static str {
    // Read once: a sandbox may keep this process from reading it again.
    static PART: OnceLock<String> = OnceLock::new();
    PART.get_or_init(|| {
        let read = |path: &&str| std::fs::read_to_string(path).ok();
        let name = NAMES.iter().filter_map(read).find(|text| !text.trim().is_empty());
        of(name.unwrap_or_default().trim())
    })
}

// Made of a name by SHA-256.
fn of(name: &str) -> String {
    let digest = Sha256::digest(format!("{PURPOSE}{name}"));
    digest.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_differ_and_stay() {
        assert_eq!(part(), part());
        assert_eq!(part().len(), 2 * BYTES);
        assert_ne!(of("one"), of("other"));
    }
}
