//! What this machine or this process lacks, with remedies: `afar run` prints it when it refuses,
//! and `afar doctor` too.

use std::fmt;

use farmem::probe;
use sys::feature;
use sys::memory::MemoryFile;

/// A missing feature or privilege.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {remedy}")]
pub struct Lack {
    /// What is missing, and how that showed.
    pub found: String,
    /// The remedy.
    pub remedy: String,
}

/// A needed feature or privilege.
pub struct Need {
    /// The name in `afar doctor`.
    pub name: &'static str,
    /// What does not work without it.
    pub needed_for: &'static str,
    /// Tests whether it is there.
    pub tried: fn() -> Result<(), Lack>,
}

/// What every run under the arena engine needs, by whichever trap.
pub const ENGINE: [Need; 5] = [
    Need { name: "seccomp notifications", needed_for: "afar run", tried: notifications },
    Need { name: "ptrace", needed_for: "afar run", tried: tracing },
    Need { name: "pidfd", needed_for: "afar run", tried: pidfd },
    Need { name: "memory files", needed_for: "afar run", tried: memory_files },
    Need { name: "userfaultfd", needed_for: "both traps", tried: userfault },
];

/// The capabilities that the bpf trap needs besides; [`bpf_trap`] also tests that its program
/// loads.
pub const BPF: [Need; 3] = [
    Need { name: "CAP_BPF", needed_for: BPF_TRAP, tried: bpf },
    Need { name: "CAP_PERFMON", needed_for: BPF_TRAP, tried: perfmon },
    Need { name: "CAP_SYS_NICE", needed_for: BPF_TRAP, tried: priority },
];
const BPF_TRAP: &str = "--trap bpf: delays from about 1 µs";

const DEVICE: &str = "/dev/userfaultfd";
/// Gives the caller's group access to userfaultfd, until the machine starts again.
pub(crate) const DEVICE_REMEDY: &str =
    "sudo chgrp $(id -g) /dev/userfaultfd && sudo chmod g+rw /dev/userfaultfd";

/// Checks whether the userfaultfd trap can be used here.
///
/// # Errors
/// The first thing that is missing.
pub fn userfaultfd_trap() -> Result<(), Lack> {
    ENGINE.iter().try_for_each(|need| (need.tried)())
}

/// Checks whether the bpf trap can be used here.
///
/// # Errors
/// The first thing that is missing.
pub fn bpf_trap() -> Result<(), Lack> {
    BPF.iter().chain(&ENGINE).try_for_each(|need| (need.tried)())?;
    probe().map_err(|error| Lack {
        found: sentence(&error),
        remedy: "Linux 6.1 is the oldest kernel on which the program has been seen to load; \
                 --trap userfaultfd does without it"
            .to_owned(),
    })
}

fn notifications() -> Result<(), Lack> {
    match feature::notifications() {
        Ok(()) => Ok(()),
        // Another supervisor has this process already. That is no lack of the machine, and is
        // reported when a program is to be run.
        Err(error) if error.errno() == Some(EBUSY) => Ok(()),
        Err(error) => Err(kernel(
            "no seccomp notifications",
            &error,
            "a kernel with CONFIG_SECCOMP_FILTER has them",
        )),
    }
}

fn tracing() -> Result<(), Lack> {
    feature::tracing().map_err(|error| {
        let remedy = "see kernel.yama.ptrace_scope, and the security profile of the container";
        kernel("this process may not follow its own children", &error, remedy)
    })
}

fn pidfd() -> Result<(), Lack> {
    let watched = sys::process::watch(std::process::id());
    watched
        .map(drop)
        .map_err(|error| kernel("no process descriptors", &error, "Linux 5.3 and later have them"))
}

fn memory_files() -> Result<(), Lack> {
    const SETTING: &str = "/proc/sys/vm/memfd_noexec";
    if std::fs::read_to_string(SETTING).is_ok_and(|text| text.trim() == "2") {
        return Err(Lack {
            found: format!("memory files may not be executed ({SETTING} is 2)"),
            remedy: "allow it with: sudo sysctl vm.memfd_noexec=1".to_owned(),
        });
    }
    MemoryFile::new("afar-doctor", 4096).map(drop).map_err(|error| {
        kernel("no memory files", &error, "a kernel with CONFIG_MEMFD_CREATE has them")
    })
}

fn userfault() -> Result<(), Lack> {
    if let Err(error) = feature::userfault() {
        if error.errno() == Some(ENOSYS) {
            let remedy = "a kernel with CONFIG_USERFAULTFD has it";
            return Err(kernel("no userfaultfd", &error, remedy));
        }
        let found = format!("no CAP_SYS_PTRACE, and no access to {DEVICE}: {error}");
        let remedy = if is_root() {
            contained("SYS_PTRACE")
        } else {
            format!("grant access with: {DEVICE_REMEDY}")
        };
        return Err(Lack { found, remedy });
    }
    feature::userfault_of_files().map_err(|error| {
        let remedy = "Linux 5.19 and later have them, with CONFIG_PTE_MARKER_UFFD_WP";
        kernel("userfaultfd without minor faults or write-protection of files", &error, remedy)
    })
}

fn bpf() -> Result<(), Lack> {
    feature::bpf().map_err(|error| capability("BPF", &error))
}

fn perfmon() -> Result<(), Lack> {
    let tried = feature::count_faults_of_all().and_then(|()| feature::bpf_tracing());
    tried.map_err(|error| capability("PERFMON", &error))
}

/// Tested in a thread of its own, so that no other thread gets the priority.
fn priority() -> Result<(), Lack> {
    let both = || sys::priority::make_urgent(0).and_then(|()| sys::priority::make_realtime(0, 1));
    let tried = std::thread::spawn(both).join();
    let tried = tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    tried.map_err(|error| capability("SYS_NICE", &error))
}

const EBUSY: i32 = 16;
const ENOSYS: i32 = 38;
const EPERM: i32 = 1;
const EACCES: i32 = 13;

// A lack of the kernel.
fn kernel(what: &str, error: &sys::Error, remedy: &str) -> Lack {
    Lack { found: format!("{what}: {error}"), remedy: remedy.to_owned() }
}

/// A lack of a capability; any other error is reported as a lack of the kernel.
fn capability(name: &str, error: &sys::Error) -> Lack {
    if !matches!(error.errno(), Some(EPERM | EACCES)) {
        return kernel(
            &format!("what CAP_{name} is for does not work"),
            error,
            "see what this kernel was built with",
        );
    }
    let remedy = if is_root() {
        contained(name)
    } else {
        "run afar as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_NICE and CAP_SYS_PTRACE".to_owned()
    };
    Lack { found: format!("no CAP_{name}: {error}"), remedy }
}

// The remedy for a capability that root lacks.
fn contained(capability: &str) -> String {
    format!(
        "root lacks it in a container, or where a security module takes it away; start the \
         container with --cap-add {capability}"
    )
}

fn is_root() -> bool {
    sys::process::effective_user() == 0
}

/// An error and its causes on one line, without repetitions.
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Debug for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(errno: i32) -> sys::Error {
        sys::Error::new("try it", std::io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_refusal_names_the_capability_and_another_failure_does_not_blame_it() {
        let lack = capability("BPF", &refusal(EPERM));
        assert!(lack.found.starts_with("no CAP_BPF: try it: "), "{lack}");
        let lack = capability("BPF", &refusal(22));
        assert!(!lack.found.starts_with("no CAP_BPF"), "{lack}");
    }

    #[test]
    fn root_is_not_told_to_be_root() {
        let lack = capability("BPF", &refusal(EPERM));
        assert_eq!(lack.remedy.contains("as root"), !is_root(), "{lack}");
    }
}
