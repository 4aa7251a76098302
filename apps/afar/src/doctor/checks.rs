//! Checks of what afar uses of this machine, a function for each.

use std::path::Path;

use farmem::TrapKind;
use measure::Duration;
use sys::group::{Hierarchy, Version};
use sys::pagemap::PageMap;
use sys::userfault::{FEATURES_WRITES, Userfault};

use disk::FUSE_REMEDY;
use memory::{BPF, ENGINE, Lack, Need, bpf_trap, sentence, userfaultfd_trap};
use results::doctor::{Check, State};

/// The oldest kernel on which all traps have been seen to work.
const KERNEL_MIN: (u32, u32) = (6, 1);
const SWAP_ENGINE: &str = "--engine swap";

/// Makes all checks; returns, too, whether `afar run` works: with one trap or the other.
pub(super) fn all() -> (Vec<Check>, bool) {
    let traps = [
        trap("trap bpf", TrapKind::Bpf, bpf_trap),
        trap("trap userfaultfd", TrapKind::Userfault, userfaultfd_trap),
    ];
    let usable = traps.iter().any(|check| check.state == State::Ok);
    let mut checks = vec![kernel(), processors()];
    checks.extend(ENGINE.iter().chain(&BPF).map(need));
    checks.extend(traps);
    checks.extend([
        write_tracking(),
        page_map_scan(),
        zram(),
        control_groups(),
        swap_engine(),
        request_ring(),
        far(),
        fuse(),
    ]);
    (checks, usable)
}

// A failed check, by what is lacking.
fn lacks(name: &str, lack: Lack) -> Check {
    Check::no(name, lack.found).fix(lack.remedy)
}

fn kernel() -> Check {
    let release = release();
    let name = "kernel";
    let (major, minor) = KERNEL_MIN;
    if version(&release) < KERNEL_MIN {
        return Check::no(
            name,
            format!("{release}; {major}.{minor} is the oldest that is known to work"),
        )
        .needed_for("afar run");
    }
    Check::ok(name, release)
}

// Checks io_uring.
fn request_ring() -> Check {
    let name = "io_uring";
    match sys::ring::Ring::new(8) {
        Ok(_) => Check::ok(name, "available"),
        Err(error) => Check::no(name, error.to_string())
            .needed_for("afar serve and afar bench")
            .fix("needs Linux 6.1 and: sysctl kernel.io_uring_disabled=0"),
    }
}

// Checks /dev/fuse.
fn fuse() -> Check {
    let name = "fuse";
    match sys::fuse::FuseDevice::open() {
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

// Tries something that the engine or a trap needs.
fn need(need: &Need) -> Check {
    match (need.tried)() {
        Ok(()) => Check::ok(need.name, "works"),
        Err(lack) => lacks(need.name, lack).needed_for(need.needed_for),
    }
}

/// Runs a program under a trap: checks the whole engine, and measures the shortest delay.
fn trap(name: &str, kind: TrapKind, loads: fn() -> Result<(), Lack>) -> Check {
    if let Err(lack) = loads() {
        return lacks(name, lack).needed_for("afar run, unless the other trap works");
    }
    match memory::floor(kind) {
        Ok(ns) => Check::ok(name, format!("shortest delay {}", Duration::from_ns(ns))),
        Err(error) => Check::no(name, error).needed_for("afar run"),
    }
}

/// Runs a program with pages on a blade in this process; measures the shortest fetch. A blade
/// behind a network needs io_uring, too.
fn far() -> Check {
    let name = "far memory";
    let needed_for = "afar run --far";
    if let Err(lack) = userfaultfd_trap() {
        return lacks(name, lack).needed_for(needed_for);
    }
    match (memory::far_floor(), request_ring()) {
        (Err(error), _) => Check::no(name, error).needed_for(needed_for),
        (Ok(_), Check { state: State::No, found, .. }) => {
            Check::no(name, format!("memory: alone, without io_uring: {found}"))
                .needed_for("afar run --far nvme+tcp://...")
        }
        (Ok(ns), _) => Check::ok(name, format!("shortest fetch {}", Duration::from_ns(ns))),
    }
}

/// Checks write tracking (userfaultfd), without which every page counts as dirty.
fn write_tracking() -> Check {
    let name = "write tracking";
    match Userfault::open(FEATURES_WRITES) {
        Ok(_) => Check::ok(name, "works"),
        Err(error) => Check::no(name, error.to_string())
            .needed_for("telling dirty pages from clean ones; without it all count as dirty")
            .fix("Linux 6.7 and later have it"),
    }
}

/// Checks scans of the page map, without which it is read entry by entry, more slowly.
fn page_map_scan() -> Check {
    let name = "page map scan";
    match PageMap::open(std::process::id()).and_then(|map| map.scans()) {
        Ok(()) => Check::ok(name, "works"),
        Err(error) => Check::no(name, error.to_string())
            .needed_for("finding soon what was mapped unseen; without it, that takes longer")
            .fix("Linux 6.7 and later have it"),
    }
}

// Checks whether zram is loaded, or can be.
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

// Checks control groups with memory limits.
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

/// Checks what the swap engine needs, without changing the host as a run does.
fn swap_engine() -> Check {
    let name = "engine swap";
    match swap::probe() {
        Ok(()) => Check::ok(name, "can be used"),
        Err(error) => Check::no(name, sentence(&error))
            .needed_for("shared memory, and one budget for whatever the kernel can swap"),
    }
}

// The kernel's release.
fn release() -> String {
    read("/proc/sys/kernel/osrelease")
}

// The text of a file; "" if it cannot be read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_orders_releases() {
        let cases = [
            ("6.18.44-fc-v669", (6, 18)),
            ("5.15.0-91-generic", (5, 15)),
            ("6.1.0-50-amd64", KERNEL_MIN),
            ("", (0, 0)),
        ];
        for (release, numbers) in cases {
            assert_eq!(version(release), numbers, "{release}");
        }
        assert!(version("5.19") < KERNEL_MIN && version("6.10") > KERNEL_MIN);
    }
}
