//! Computes slowdowns from a profile.

use farmem::{BPF_BUDGET_MIN, batch};
use measure::{BitsPerSec, Bytes, Duration, LinkMode, LocalSize, Pages, ShareOf};
use paging::PolicyKind;
use paging::reuse::{Memory, Replayed, replay};
use planner::slowdown::{Demand, Estimate, Network};
use results::prediction::Facts;

use super::profile::{self, Profile};
use crate::software;

/// The points to predict.
pub(super) struct Grid {
    pub(super) local: Vec<LocalSize>,
    pub(super) of: ShareOf,
    pub(super) rtt: Vec<Duration>,
    pub(super) bandwidth: Vec<Option<BitsPerSec>>,
    /// The policy of the slowdowns.
    pub(super) policy: PolicyKind,
    pub(super) link: LinkMode,
}

/// A prediction for all points.
pub(super) struct Prediction {
    /// The memory that shares of local memory relate to.
    pub(super) of: ShareOf,
    pub(super) policy: PolicyKind,
    /// Policies whose fetches are reported.
    pub(super) policies: Vec<PolicyKind>,
    pub(super) sizes: Vec<Size>,
}

impl Prediction {
    /// Whether any size is a share.
    pub(super) fn has_share(&self) -> bool {
        self.sizes.iter().any(|size| matches!(size.local, LocalSize::Fraction(_)))
    }
}

/// The prediction for one amount of local memory.
pub(super) struct Size {
    pub(super) local: LocalSize,
    /// The replays, in the order of [`Prediction::policies`].
    pub(super) replayed: Vec<Replayed>,
    /// Not all touches that would be fetches were seen.
    pub(super) is_blind: bool,
    pub(super) points: Vec<Point>,
}

/// The prediction for one network.
pub(super) struct Point {
    pub(super) rtt: Duration,
    pub(super) bandwidth: Option<BitsPerSec>,
    pub(super) slowdown: Estimate,
}

/// Policies whose fetches are always reported.
const TOLD: [PolicyKind; 3] = [PolicyKind::LRU, PolicyKind::FIFO, PolicyKind::CLOCK];
/// Nine of ten samples of a normal distribution are within so many standard deviations.
const NINE_OF_TEN: f64 = 1.645;
/// The relative error of software costs.
const SOFTWARE_MARGIN: f64 = 0.5;
/// Sizes below so many times the blind share are marked as blind.
const BLIND: f64 = 1.5;
/// With this bandwidth a transfer takes no time.
const UNLIMITED: BitsPerSec = BitsPerSec::new(u64::MAX);

/// Predicts every point of `grid`.
pub(super) fn predict_all(profile: &Profile, grid: &Grid) -> Prediction {
    let mut policies = TOLD.to_vec();
    if !policies.contains(&grid.policy) {
        policies.push(grid.policy);
    }
    let chosen = policies.iter().position(|&policy| policy == grid.policy).unwrap_or(0);
    let size = |&local: &LocalSize| {
        let replayed: Vec<Replayed> =
            policies.iter().map(|&policy| replayed(profile, grid, policy, local)).collect();
        let points = grid
            .bandwidth
            .iter()
            .flat_map(|&bandwidth| grid.rtt.iter().map(move |&rtt| (rtt, bandwidth)));
        let slowed = &replayed[chosen];
        let points = points.map(|(rtt, bandwidth)| Point {
            rtt,
            bandwidth,
            slowdown: slowdown(&profile.facts, slowed, grid.link, (rtt, bandwidth)),
        });
        let points = points.collect();
        let is_blind = share(&profile.facts, grid, local) < profile.facts.blind_share * BLIND;
        Size { local, replayed, is_blind, points }
    };
    let sizes = grid.local.iter().map(size).collect();
    Prediction { of: grid.of, policy: grid.policy, sizes, policies }
}

/// The peak of memory in use, with all memory local.
pub(super) fn peak(facts: &Facts) -> Bytes {
    Bytes::new(facts.managed_peak_bytes)
}

// Replays the profile with one policy and size of local memory.
fn replayed(profile: &Profile, grid: &Grid, policy: PolicyKind, local: LocalSize) -> Replayed {
    let is_bpf = profile.facts.trap == "bpf";
    let memory = Memory {
        policy,
        local,
        // As in a sweep: the most memory in use is that of all processes.
        shared: local.is_share() && grid.of == ShareOf::Peak,
        of: grid.of.bytes(Some(peak(&profile.facts))),
        least: if is_bpf { BPF_BUDGET_MIN } else { Pages::new(1) },
        batch,
        processors: profile::processors(&profile.facts),
        seed: 1,
    };
    replay(&profile.touches, profile.facts.first_touch_count, &memory)
}

/// `local` as a share of the peak.
fn share(facts: &Facts, grid: &Grid, local: LocalSize) -> f64 {
    let peak = peak(facts);
    let bytes = local.of(grid.of.bytes(Some(peak)).unwrap_or(peak));
    bytes.get() as f64 / peak.get().max(1) as f64
}

/// The slowdown of the program, with bounds.
fn slowdown(
    facts: &Facts,
    replayed: &Replayed,
    link: LinkMode,
    network: (Duration, Option<BitsPerSec>),
) -> Estimate {
    let if_alone = |alone| slowdown_of(facts, alone, replayed, link, network);
    // The less watching cost, the more of the time is the program's own.
    let [longest, shortest] =
        [1.0 - SOFTWARE_MARGIN, 1.0 + SOFTWARE_MARGIN].map(|times| profile::alone_if(facts, times));
    Estimate {
        low: if_alone(longest).low,
        value: if_alone(profile::alone(facts)).value,
        high: if_alone(shortest).high,
    }
}

/// As [`slowdown`], for a program that takes `alone` with all memory local.
fn slowdown_of(
    facts: &Facts,
    alone: Duration,
    replayed: &Replayed,
    link: LinkMode,
    (rtt, bandwidth): (Duration, Option<BitsPerSec>),
) -> Estimate {
    let in_order = replayed.in_order / replayed.fetches.max(1.0);
    let unmapping_ns = replayed.softs
        * profile::soft_ns(facts, replayed.fetches + replayed.softs, in_order)
        + replayed.batches * facts.software.batch_ns as f64;
    if replayed.fetches <= 0.0 {
        let slowdown = 1.0 + unmapping_ns / alone.as_ns_f64().max(1.0);
        return Estimate { low: 1.0, value: slowdown, high: slowdown };
    }
    let fetches = replayed.fetches;
    let margin = (NINE_OF_TEN * replayed.fetches_deviation / fetches).min(1.0);
    let work_ns = alone.as_ns_f64() / replayed.in_turn.max(1.0);
    let software_ns =
        software::fetch_ns(&facts.software, work_ns, in_order) + unmapping_ns / fetches;
    let bandwidth = bandwidth.unwrap_or(UNLIMITED);
    // Pages whose transfers others wait for: with a link of its own a fetch waits only for itself.
    // Write-backs delay fetches where they share the link; else they are the bound if there are
    // more of them, because a frame is free only when its page has been written.
    let pages = match link {
        LinkMode::HalfDuplex => fetches + replayed.contested,
        LinkMode::FullDuplex => fetches.max(replayed.contested),
        LinkMode::PerFault => 0.0,
    };
    let mut network = Network::exact(rtt, bandwidth);
    if link == LinkMode::PerFault {
        network.rtt_ps = Estimate::exact(network.rtt_ps.value + network.page_ps());
    }
    let at = |threads: u32| {
        let demand = Demand {
            alone,
            batches: Estimate::within(fetches, margin),
            pages: Estimate::within(pages, margin),
            software_ps: Estimate::within(software_ns * 1e3, SOFTWARE_MARGIN),
            threads,
        };
        demand.slowdown(&network)
    };
    between(at, fetches / replayed.in_turn.max(1.0))
}

/// Interpolates `at` for a fractional number of threads.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few threads")]
fn between(at: impl Fn(u32) -> Estimate, threads: f64) -> Estimate {
    let threads = threads.max(1.0);
    let (few, more) = (at(threads.floor() as u32), at(threads.ceil() as u32));
    let part = threads.fract();
    let mix = |of: fn(&Estimate) -> f64| of(&few) * (1.0 - part) + of(&more) * part;
    Estimate { low: mix(|one| one.low), value: mix(|one| one.value), high: mix(|one| one.high) }
}
