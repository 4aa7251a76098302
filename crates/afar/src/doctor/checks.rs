//! One function for each thing that afar uses.

use std::path::Path;

use farmem::runtime::{TrapKind, probe, swap};
use measure::Duration;
use sys::group::{Hierarchy, Version};
use sys::memory::MemoryFile;

use super::{Check, State};
use crate::attach::FUSE_REMEDY;
use crate::calibrate;
use crate::trap::{USERFAULTFD_REMEDY, userfaultfd};

/// Oldest kernels with what the traps use: bpf_loop (5.17); asynchronous write-protection of
/// shared memory and PAGEMAP_SCAN, which tell dirty pages from clean ones (6.7).
const KERNEL_MIN: (u32, u32) = (5, 17);
const SWAP_ENGINE: &str = "--engine swap";
const KERNEL_SCAN: (u32, u32) = (6, 7);

/// Checks everything; whether `afar run` works at all comes with it.
pub(super) fn all() -> (Vec<Check>, bool) {
    let traps = [bpf(), userfault()];
    let usable = traps.iter().any(|check| check.state == State::Ok);
    let mut checks = vec![kernel(), processors()];
    checks.extend(traps);
    checks.extend([
        notifications(),
        memory_file(),
        page_map_scan(),
        priority(),
        zram(),
        control_groups(),
        swap_engine(),
        request_ring(),
        fuse(),
    ]);
    (checks, usable)
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), needed_for: None, remedy: None }
    }

    fn no(name: &'static str, found: impl Into<String>) -> Self {
        Self { state: State::No, ..Self::ok(name, found) }
    }

    fn needed_for(self, what: &'static str) -> Self {
        Self { needed_for: Some(what), ..self }
    }

    fn fix(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

fn kernel() -> Check {
    let release = release();
    let name = "kernel";
    let (major, minor) = KERNEL_MIN;
    if version(&release) < KERNEL_MIN {
        return Check::no(name, format!("{release}; {major}.{minor} is the oldest that works"))
            .needed_for("everything");
    }
    Check::ok(name, release)
}

fn request_ring() -> Check {
    let name = "io_uring";
    match sys::ring::Ring::new(8) {
        Ok(_) => Check::ok(name, "available"),
        Err(error) => Check::no(name, error.to_string())
            .needed_for("afar serve and afar bench")
            .fix("needs Linux 6.1 and: sysctl kernel.io_uring_disabled=0"),
    }
}

fn fuse() -> Check {
    let name = "fuse";
    match sys::mount::open_fuse() {
        Ok(_) => Check::ok(name, "available"),
        Err(error) => {
            let is_absent = error.source.kind() == std::io::ErrorKind::NotFound;
            let fix = if is_absent { "sudo modprobe fuse" } else { FUSE_REMEDY };
            Check::no(name, error.to_string()).needed_for("afar attach").fix(fix)
        }
    }
}

fn processors() -> Check {
    let name = "processors";
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if count > 1 {
        return Check::ok(name, count.to_string());
    }
    Check::no(name, "1: afar and the program take turns").needed_for("undisturbed measurements")
}

fn bpf() -> Check {
    let name = "trap bpf";
    match probe() {
        Ok(()) => floor(name, TrapKind::Bpf),
        Err(error) => Check::no(name, sentence(&error))
            .needed_for("delays from about 1 µs; the userfaultfd trap does with more")
            .fix("run afar as root: sudo afar run ..."),
    }
}

fn userfault() -> Check {
    let name = "trap userfaultfd";
    match userfaultfd() {
        Ok(()) => floor(name, TrapKind::Userfault),
        Err(error) => Check::no(name, format!("open /dev/userfaultfd: {error}"))
            .needed_for("running without root")
            .fix(format!("sudo {USERFAULTFD_REMEDY}")),
    }
}

/// Runs a program under the trap, which shows that all of the engine works, and how fast.
fn floor(name: &'static str, trap: TrapKind) -> Check {
    match calibrate::floor(trap) {
        Ok(ns) => Check::ok(name, format!("shortest delay {}", Duration::from_ns(ns))),
        Err(error) => Check::no(name, sentence(&error)).needed_for("afar run"),
    }
}

fn notifications() -> Check {
    let name = "seccomp notifications";
    let actions = read("/proc/sys/kernel/seccomp/actions_avail");
    if actions.split(' ').any(|action| action == "user_notif") {
        return Check::ok(name, "available");
    }
    Check::no(name, "the kernel has none").needed_for("afar run")
}

fn memory_file() -> Check {
    let name = "memory files";
    let noexec = "/proc/sys/vm/memfd_noexec";
    if read(noexec) == "2" {
        return Check::no(name, "may not be executed")
            .needed_for("loading afar's part into the program")
            .fix("sudo sysctl vm.memfd_noexec=1");
    }
    match MemoryFile::new("afar-doctor", 4096) {
        Ok(_) => Check::ok(name, "may be executed"),
        Err(error) => Check::no(name, error.to_string()).needed_for("afar run"),
    }
}

fn page_map_scan() -> Check {
    let name = "page map scan";
    let release = release();
    if version(&release) >= KERNEL_SCAN {
        return Check::ok(name, "available");
    }
    Check::no(name, format!("needs a kernel from 6.7, this is {release}"))
        .needed_for("telling dirty pages from clean ones")
}

/// Tried in a thread of its own, so that nothing else gets the priority.
fn priority() -> Check {
    let name = "priority";
    let both = || sys::process::make_urgent(0).and_then(|()| sys::process::make_realtime(0, 1));
    let tried = std::thread::spawn(both).join();
    match tried {
        Ok(Ok(())) => Check::ok(name, "available"),
        Ok(Err(error)) => Check::no(name, error.to_string())
            .needed_for("budgets that are held on a busy machine")
            .fix("run afar as root: sudo afar run ..."),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn zram() -> Check {
    let name = "zram";
    let module = format!("/lib/modules/{}/kernel/drivers/block/zram", release());
    if Path::new("/sys/class/zram-control").exists() {
        return Check::ok(name, "available");
    }
    let check = Check::no(name, "not loaded").needed_for(SWAP_ENGINE);
    if Path::new(&module).exists() {
        check.fix("sudo modprobe zram")
    } else {
        Check { found: "not in this kernel".to_owned(), ..check }
    }
}

fn control_groups() -> Check {
    let name = "control groups";
    match Hierarchy::find() {
        Some(Hierarchy { version: Version::One, .. }) => {
            Check::ok(name, "version 1 with memory limits")
        }
        Some(Hierarchy { version: Version::Two, .. }) => {
            Check::ok(name, "version 2 with memory limits")
        }
        None => Check::no(name, "no memory limits").needed_for(SWAP_ENGINE),
    }
}

/// Everything it needs; what it changes on the host is tried by a run only.
fn swap_engine() -> Check {
    let name = "engine swap";
    match swap::probe() {
        Ok(()) => Check::ok(name, "can be used"),
        Err(error) => Check::no(name, sentence(&error))
            .needed_for("static programs, and one budget for a whole tree of any programs"),
    }
}

fn release() -> String {
    read("/proc/sys/kernel/osrelease")
}

fn read(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim_end().to_owned()
}

/// Major and minor number of a kernel release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|character: char| !character.is_ascii_digit())
        .map(|digits| digits.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// An error and its causes on one line, without what a cause repeats.
fn sentence(error: &dyn std::error::Error) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_orders_releases() {
        let cases = [
            ("6.18.44-fc-v669", (6, 18)),
            ("5.15.0-91-generic", (5, 15)),
            ("6.7-rc1", (6, 7)),
            ("", (0, 0)),
        ];
        for (release, numbers) in cases {
            assert_eq!(version(release), numbers, "{release}");
        }
        assert!(version("5.9") < KERNEL_MIN, "9 is less than 17");
    }
}
