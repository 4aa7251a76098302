//! The part of an NQN or IQN that differs from machine to machine.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

/// Files with an identifier of the machine, the best first (machine-id(5), hostname(5)).
const NAMES: [&str; 3] =
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];
/// Hashed with the identifier, which machine-id(5) says must stay secret.
const PURPOSE: &str = "afar serve: name of a subsystem\n";
/// Bytes of the hash in a name.
const BYTES: usize = 6;

/// The machine's part of names: twelve hexadecimal digits, always the same on a machine.
pub(super) fn part() -> &'static str {
    // Read once: a sandbox may keep this process from reading it again.
    static PART: OnceLock<String> = OnceLock::new();
    PART.get_or_init(|| {
        let read = |path: &&str| std::fs::read_to_string(path).ok();
        let name = NAMES.iter().filter_map(read).find(|text| !text.trim().is_empty());
        of(name.unwrap_or_default().trim())
    })
}

// The part for a machine's identifier, by SHA-256.
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
