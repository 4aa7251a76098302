//! Targets, disks and all that happens between them, in simulated worlds.
//!
//! ```text
//! cargo test -p simworld                                    300 seeds of each
//! AFAR_SEED=77 cargo test -p simworld hosts                 one again
//! AFAR_SEED=77 AFAR_COMMANDS=9 AFAR_FAULTS=3,8 cargo …      a part of it, as printed when it fails
//! AFAR_SEEDS=500..1000 cargo test --release -p simworld     others (scripts/check-seeds: 10,000)
//! ```

#![expect(clippy::print_stdout, reason = "what has met what must be seen")]

mod asked;
mod disks;
mod faults;
mod hosts;
mod house;
mod medium;
mod model;
mod peers;
mod replay;
mod scope;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use faults::Fault;
use house::Speech;
use scope::{Scope, shrink};

/// Seeds of each kind, unless `AFAR_SEEDS` says which.
const SEEDS: u64 = 300;
/// Commands of a seed, and how many of them overlap, at least.
const COMMANDS_MIN: u64 = 500;
const OVERLAPPING_MIN: usize = 8;

/// What has come of a seed: how often faults met commands under way, and what says whether another
/// run was the same.
pub(crate) struct Outcome<K> {
    pub(crate) met: BTreeMap<(Fault, K), u64>,
    /// Commands that were done, by their kinds.
    pub(crate) done: BTreeMap<K, u64>,
    pub(crate) commands: u64,
    pub(crate) overlapping: usize,
    pub(crate) digest: u64,
}

fn seeds() -> Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("AFAR_SEED and AFAR_SEEDS are numbers");
    if let Ok(one) = std::env::var("AFAR_SEED") {
        return number(&one)..number(&one) + 1;
    }
    match std::env::var("AFAR_SEEDS") {
        Ok(range) => match range.split_once("..") {
            Some((first, last)) => number(first)..number(last),
            None => 0..number(&range),
        },
        Err(_) => 0..SEEDS,
    }
}

/// Says which seed it was in which somebody panicked.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("AFAR_SEED={} runs it again", self.0);
        }
    }
}

// Runs a seed. If it fails, as little of it as fails, too, is looked for; then it fails again.
fn one<K>(seed: u64, commands: u64, run: impl Fn(u64, &Scope) -> Outcome<K>) -> Outcome<K> {
    let (named, scope) = (Seed(seed), Scope::named());
    let ran = catch_unwind(AssertUnwindSafe(|| run(seed, &scope)));
    let outcome = ran.unwrap_or_else(|panic| {
        if scope.is_whole() {
            let left = shrink(&scope, commands, |scope| drop(run(seed, scope)));
            println!(
                "{}",
                left.map_or_else(|| "it has not failed again".to_owned(), |left| left.words(seed))
            );
        }
        resume_unwind(panic)
    });
    if scope.is_whole() {
        assert!(outcome.commands >= COMMANDS_MIN, "{} commands", outcome.commands);
        assert!(outcome.overlapping >= OVERLAPPING_MIN, "{} overlap", outcome.overlapping);
    }
    drop(named);
    outcome
}

// Runs all seeds, and prints how often each fault met a command of each kind.
fn all<K: Copy + Debug + Ord>(
    kinds: &[K],
    faults: &[Fault],
    commands: u64,
    run: impl Fn(u64, &Scope) -> Outcome<K>,
) {
    let mut met: BTreeMap<(Fault, K), u64> = BTreeMap::new();
    let mut done: BTreeMap<K, u64> = BTreeMap::new();
    for seed in seeds() {
        let outcome = one(seed, commands, &run);
        outcome.met.into_iter().for_each(|(pair, count)| *met.entry(pair).or_default() += count);
        outcome.done.into_iter().for_each(|(kind, count)| *done.entry(kind).or_default() += count);
    }
    // Worlds in which nothing is done prove nothing. One alone may be without some kind.
    let is_one = std::env::var_os("AFAR_SEED").is_some();
    let never: Vec<_> = kinds.iter().filter(|kind| !done.contains_key(kind)).collect();
    assert!(is_one || never.is_empty(), "never done: {never:?}");
    for fault in faults {
        for kind in kinds {
            let count = met.get(&(*fault, *kind)).copied().unwrap_or(0);
            println!("met {fault:?} {kind:?} {count}");
        }
    }
}

fn disks(speech: Speech) {
    let run = |seed, scope: &Scope| disks::run(seed, speech, scope);
    all(&disks::Kind::ALL, &Fault::ALL, disks::COMMANDS, run);
}

#[test]
fn disks_over_nvme() {
    disks(Speech::Nvme);
}

#[test]
fn disks_over_iscsi() {
    disks(Speech::Iscsi);
}

#[test]
fn disks_over_both() {
    disks(Speech::Both);
}

#[test]
fn hosts_that_fence_one_another_off() {
    all(&asked::Kind::ALL, &Fault::OF_HOSTS, hosts::COMMANDS, hosts::run);
}

#[test]
fn a_seed_runs_again_as_it_ran() {
    for speech in [Speech::Nvme, Speech::Iscsi, Speech::Both] {
        let [once, again] = [1, 2].map(|_| disks::run(3, speech, &Scope::default()).digest);
        assert_eq!(once, again, "{speech:?}");
    }
    for seed in [3, 4] {
        let [once, again] = [1, 2].map(|_| hosts::run(seed, &Scope::default()).digest);
        assert_eq!(once, again, "hosts, {seed}");
    }
}

// A device that does not flush is found out, and little is left of the seed that finds it out.
#[test]
fn a_failure_shrinks_to_what_it_needs() {
    let lying = Scope { lies: true, ..Scope::default() };
    let run = |seed, scope: &Scope| drop(disks::run(seed, Speech::Nvme, scope));
    let found = (0..100).find_map(|seed| {
        shrink(&lying, disks::COMMANDS, |scope| run(seed, scope)).map(|left| (seed, left))
    });
    let (seed, left) = found.expect("it is found out within 100 seeds");
    println!("{}", left.words(seed));
    let commands = left.scope.commands.unwrap_or(u64::MAX);
    assert!(commands < disks::COMMANDS / 2 && left.faults.len() <= 4, "{}", left.words(seed));
    assert!(left.faults.iter().any(|(_, fault)| matches!(fault, Fault::Kill | Fault::Drain)));
    // It is the device.
    run(seed, &Scope { lies: false, ..left.scope });
}
