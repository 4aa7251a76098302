//! Targets, disks and all that happens between them, in simulated worlds.
//!
//! ```text
//! AFAR_SEEDS=10000 cargo test --release -p simworld     as many seeds of each
//! AFAR_SEED=77 cargo test -p simworld                   one again
//! ```

#![expect(clippy::print_stdout, reason = "what has met what must be seen")]

mod disks;
mod faults;
mod hosts;
mod house;
mod medium;
mod model;
mod peers;

use disks::{Kind, Meetings};
use faults::Fault;
use house::Speech;

/// Seeds of each kind, unless `AFAR_SEEDS` says how many.
const SEEDS: u64 = 100;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn seeds() -> std::ops::Range<u64> {
    match number("AFAR_SEED") {
        Some(one) => one..one + 1,
        None => 0..number("AFAR_SEEDS").unwrap_or(SEEDS),
    }
}

fn all(speech: Speech) {
    let mut meetings = Meetings::new();
    for seed in seeds() {
        let outcome = disks::run(seed, speech);
        assert!(outcome.commands >= disks::COMMANDS as u64 && outcome.overlapping >= 8);
        for (meeting, count) in outcome.meetings {
            *meetings.entry(meeting).or_default() += count;
        }
        if number("AFAR_SEED").is_some() {
            println!("seed {seed}: {:x}, {} ms", outcome.digest, outcome.took_ms);
        }
    }
    print(&meetings);
}

// How often each fault met a command of each kind.
fn print(meetings: &Meetings) {
    let kinds = [Kind::Read, Kind::Write, Kind::Forced, Kind::Flush, Kind::Zero, Kind::Discard];
    println!("{:8} {}", "", kinds.map(|kind| format!("{kind:?}")).join(" "));
    for fault in Fault::ALL {
        let counts = kinds.map(|kind| meetings.get(&(fault, kind)).copied().unwrap_or(0));
        println!("{:8} {}", format!("{fault:?}"), counts.map(|count| count.to_string()).join(" "));
    }
}

#[test]
fn disks_over_nvme() {
    all(Speech::Nvme);
}

#[test]
fn disks_over_iscsi() {
    all(Speech::Iscsi);
}

#[test]
fn disks_over_both() {
    all(Speech::Both);
}

#[test]
fn hosts_that_fence_one_another_off() {
    let (mut meetings, mut fences) = (hosts::Meetings::new(), 0);
    for seed in seeds() {
        let outcome = hosts::run(seed);
        assert!(outcome.commands >= 500 && outcome.overlapping >= 8, "seed {seed}");
        fences += outcome.fences;
        if number("AFAR_SEED").is_some() {
            println!("seed {seed}: {:x}", outcome.digest);
        }
        for (meeting, count) in outcome.meetings {
            *meetings.entry(meeting).or_default() += count;
        }
    }
    println!("{fences} fences");
    for fault in Fault::OF_HOSTS {
        let of = |kind| meetings.get(&(fault, kind)).copied().unwrap_or(0).to_string();
        let counts = hosts::Kind::ALL.map(of);
        println!("{:8} {}", format!("{fault:?}"), counts.join(" "));
    }
    assert!(fences > 0);
}

#[test]
fn a_seed_runs_again_as_it_ran() {
    for speech in [Speech::Nvme, Speech::Iscsi, Speech::Both] {
        let [once, again] = [1, 2].map(|_| disks::run(3, speech));
        assert_eq!((once.digest, once.took_ms), (again.digest, again.took_ms), "{speech:?}");
    }
}
