//! Whatever happens, no page is lost or stale, the budget holds, and every fault is resolved.
//!
//! A machine carries out what the engine says and checks every byte, so to speak, that a program
//! would see.

use std::collections::BTreeMap;

use measure::{BitsPerSec, Duration, Fraction, Instant, LinkConfig, LinkMode, Pages};
use paging::engine::{References, ResolveKind, WriteBack};
use paging::trace::{self, Access};
use paging::{
    Action, Engine, EngineConfig, Event, PageIndex, PolicyKind, Prefetch, ResidencyConfig,
};
use proptest::prelude::*;

fn page(n: u32) -> PageIndex {
    PageIndex::new(n)
}

fn accesses(pages: u32) -> impl Strategy<Value = Vec<Access>> {
    let access = (0..pages, any::<bool>());
    prop::collection::vec(access.prop_map(|(n, write)| Access { page: page(n), write }), 0..120)
}

/// Settings that differ in all that could lose a page.
fn settings() -> impl Strategy<Value = EngineConfig> {
    let modes = vec![LinkMode::HalfDuplex, LinkMode::PerFault, LinkMode::FullDuplex];
    let prefetches = vec![Prefetch::None, Prefetch::NextN(2), Prefetch::Stride(3)];
    let local = (prop::sample::select(PolicyKind::ALL.to_vec()), 1..9_u64, 0..3_u64);
    let references = prop::sample::select(vec![References::Exact, References::SoftFaults]);
    let write_back = prop::sample::select(vec![WriteBack::Charged, WriteBack::Ignored]);
    let (mode, prefetch) = (prop::sample::select(modes), prop::sample::select(prefetches));
    (local, mode, references, write_back, prefetch).prop_map(
        |((policy, budget, headroom), mode, references, write_back, prefetch)| EngineConfig {
            residency: ResidencyConfig {
                policy,
                budget: Pages::new(budget),
                headroom: Pages::new(headroom),
                ready: Pages::ZERO,
                probation: Fraction::from_percent(40),
                seed: 5,
            },
            link: LinkConfig {
                mode,
                rtt: Duration::from_us(5),
                bandwidth: Some(BitsPerSec::from_gbps(40)),
                profile: None,
            },
            references,
            write_back,
            prefetch,
            prefetch_in_flight_max: 64,
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Access(Access),
    Discard(u32, u32),
    Rename(u32, u32, u32),
}

fn steps(pages: u32) -> impl Strategy<Value = Vec<Step>> {
    let access = (0..pages, any::<bool>());
    let access = access.prop_map(|(n, write)| Step::Access(Access { page: page(n), write }));
    let discard = (0..pages, 0..5_u32).prop_map(|(n, count)| Step::Discard(n, count));
    let rename = (0..pages, 0..pages, 0..5_u32);
    let rename =
        rename.prop_map(|(from, to, count)| Step::Rename(from, to, count.min(from.abs_diff(to))));
    let step = prop_oneof![20 => access, 1 => discard, 1 => rename];
    prop::collection::vec(step, 0..120)
}

/// What a program, its memory and far memory look like to one another when an engine's actions
/// are carried out. Every page holds the number of the last write to it; zero to begin with.
#[derive(Default)]
struct Machine {
    // What the program wrote last.
    truth: BTreeMap<PageIndex, u64>,
    // What is in frames, and whether it is mapped.
    local: BTreeMap<PageIndex, (u64, bool)>,
    far: BTreeMap<PageIndex, u64>,
    // What arrives when.
    arriving: BTreeMap<PageIndex, Instant>,
    writes: u64,
}

impl Machine {
    fn perform(&mut self, action: Action) {
        match action {
            Action::Resolve { page, ready_at, kind } => match kind {
                ResolveKind::FirstTouch => {
                    assert_eq!(self.local.insert(page, (0, true)), None);
                }
                ResolveKind::Fetch | ResolveKind::Prefetch => {
                    assert!(!self.local.contains_key(&page), "fetched a local page");
                    self.arriving.insert(page, ready_at);
                }
                ResolveKind::Soft => {
                    let (_, mapped) = self.local.get_mut(&page).expect("a soft fault is local");
                    assert!(!*mapped);
                    *mapped = true;
                }
                ResolveKind::Joined => {}
            },
            Action::Evict { page, dirty, .. } => {
                let arrived = self.arriving.remove(&page).map(|_| (self.far_copy(page), true));
                let (content, _) = self.local.remove(&page).or(arrived).expect("it was local");
                if dirty {
                    self.far.insert(page, content);
                } else {
                    assert_eq!(content, self.far_copy(page), "a clean page equals its copy");
                }
            }
            Action::Probe { page } => {
                self.arrive(Instant::MAX, page);
                let (_, mapped) = self.local.get_mut(&page).expect("only local pages are probed");
                assert!(*mapped);
                *mapped = false;
            }
        }
    }

    fn far_copy(&self, page: PageIndex) -> u64 {
        self.far.get(&page).copied().unwrap_or(0)
    }

    fn arrive(&mut self, now: Instant, page: PageIndex) {
        if self.arriving.get(&page).is_some_and(|&ready_at| ready_at <= now) {
            self.arriving.remove(&page);
            self.local.insert(page, (self.far_copy(page), true));
        }
    }

    fn is_mapped(&mut self, page: PageIndex, now: Instant) -> bool {
        self.arrive(now, page);
        self.local.get(&page).is_some_and(|(_, mapped)| *mapped)
    }

    fn discard(&mut self, page: PageIndex) {
        self.truth.remove(&page);
        self.local.remove(&page);
        self.far.remove(&page);
        self.arriving.remove(&page);
    }

    /// Moves a page; if it is on its way, that is abandoned, and it stays far.
    fn rename(&mut self, now: Instant, from: PageIndex, to: PageIndex) {
        self.arrive(now, from);
        self.arriving.remove(&from);
        self.discard(to);
        self.truth.remove(&from).map(|content| self.truth.insert(to, content));
        self.local.remove(&from).map(|frame| self.local.insert(to, frame));
        self.far.remove(&from).map(|content| self.far.insert(to, content));
    }

    /// Reads and perhaps writes a page that is mapped.
    fn access(&mut self, page: PageIndex, write: bool) {
        let (content, _) = self.local.get_mut(&page).expect("the page is mapped");
        assert_eq!(*content, self.truth.get(&page).copied().unwrap_or(0), "page {page}");
        if write {
            self.writes += 1;
            *content = self.writes;
            self.truth.insert(page, self.writes);
        }
    }
}

/// Faults `access` in and returns when that is done.
fn fault_in(engine: &mut Engine, machine: &mut Machine, access: Access, at: Instant) -> Instant {
    let Access { page, write } = access;
    engine.handle(Event::Fault { page, write, at }, at);
    let mut done = None;
    loop {
        while let Some(action) = engine.poll_action() {
            machine.perform(action);
            if let Action::Resolve { page: resolved, ready_at, kind } = action {
                let ours = resolved == page && kind != ResolveKind::Prefetch;
                done = if ours { Some(ready_at) } else { done };
            }
        }
        if let Some(ready_at) = done {
            assert!(ready_at >= at);
            return ready_at;
        }
        let tick = engine.poll_timeout().expect("a fault that is not resolved waits for a time");
        engine.handle(Event::Tick, tick);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_page_is_lost_or_stale(
        config in settings(),
        steps in steps(14),
        think_ns in 0..4000_u64,
    ) {
        let budget = config.residency.budget;
        let mut engine = Engine::new(config);
        let mut machine = Machine::default();
        let mut now = Instant::ZERO;
        let mut faults = 0;
        for step in steps {
            now = now + Duration::from_ns(think_ns);
            match step {
                Step::Access(access) => {
                    let mapped = machine.is_mapped(access.page, now);
                    prop_assert_eq!(engine.reference(access.page, access.write, now), mapped);
                    if !mapped {
                        faults += 1;
                        now = fault_in(&mut engine, &mut machine, access, now);
                        prop_assert!(machine.is_mapped(access.page, now));
                    }
                    machine.access(access.page, access.write);
                }
                Step::Discard(n, count) => {
                    let pages = Pages::new(u64::from(count));
                    engine.handle(Event::Discard { first: page(n), count: pages }, now);
                    (n..n + count).for_each(|n| machine.discard(page(n)));
                }
                Step::Rename(from, to, count) => {
                    let (from, to) = (page(from), page(to));
                    let pages = Pages::new(u64::from(count));
                    engine.handle(Event::Rename { from, to, count: pages }, now);
                    for n in 0..count {
                        machine.rename(now, page(from.get() + n), page(to.get() + n));
                    }
                }
            }
            while let Some(action) = engine.poll_action() {
                machine.perform(action);
            }
            prop_assert!(engine.frames_in_use() <= budget, "the budget is a promise");
        }
        let counters = engine.counters();
        let kinds = counters.first_touch_count
            + counters.fetch_count
            + counters.soft_count
            + counters.joined_count;
        prop_assert_eq!(kinds, faults);
        prop_assert_eq!(counters.overcommit_count, 0);
        prop_assert!(counters.prefetch_used_count <= counters.prefetch_count);
    }

    /// With every reference known and nothing fetched ahead, the engine faults exactly where the
    /// policy alone does, whatever the link and the write-backs do.
    #[test]
    fn engine_faults_where_the_policy_does(config in settings(), accesses in accesses(14)) {
        let mut config = config;
        config.references = References::Exact;
        config.prefetch = Prefetch::None;
        config.residency.headroom = Pages::ZERO;
        let ResidencyConfig { policy, budget, seed, .. } = config.residency;
        let capacity = usize::try_from(budget.get()).expect("budgets are small here");
        let pages = accesses.iter().map(|access| access.page);
        let expected = trace::fault_count(policy, capacity, seed, pages);
        let outcome = trace::run(config, Duration::from_ns(100), [accesses]);
        prop_assert_eq!(outcome.fault_count(), expected);
    }

    /// Threads may collide in every way there is; each access is done in the end.
    #[test]
    fn threads_always_finish(
        config in settings(),
        threads in prop::collection::vec(accesses(8), 1..5),
        think_ns in 0..4000_u64,
    ) {
        let total: usize = threads.iter().map(Vec::len).sum();
        let outcome = trace::run(config, Duration::from_ns(think_ns), threads);
        prop_assert_eq!(outcome.access_count, total as u64);
    }
}
