//! Transparent huge pages: 2 MiB of a program's memory mapped at once, by the kernel's choice.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Whether the kernel may use huge pages for programs.
#[must_use]
pub fn may_be() -> bool {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|setting| !setting.contains("[never]"))
}

/// Disables huge pages for what `command` starts, and for all its descendants (prctl(2),
/// `PR_SET_THP_DISABLE`).
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn do_without(command: &mut Command) {
    let before_exec = || {
        // SAFETY: it takes numbers only.
        match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes a system call only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(before_exec) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_does_without() {
        let mut command = Command::new("grep");
        command.args(["THP_enabled", "/proc/self/status"]);
        let said = |command: &mut Command| {
            let output = command.output().expect("grep is there").stdout;
            String::from_utf8(output).expect("it is text")
        };
        let before = said(&mut command);
        do_without(&mut command);
        // A kernel without them says nothing.
        assert_eq!(said(&mut command), before.replace('1', "0"));
    }
}
