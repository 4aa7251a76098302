//! Residency against a model that knows every page, under every policy.

use std::collections::BTreeMap;

use measure::{Fraction, Pages};
use paging::{Admission, PageIndex, PageState, PolicyKind, Residency, ResidencyConfig, Victim};
use proptest::prelude::*;

/// Pages the tests play with; far fewer than a block, so both kinds of skipping are exercised by
/// [`AT`], which puts them across the edge of a block and of a chunk.
const PAGES: u32 = 24;
const AT: u32 = (1 << 15) - PAGES / 2;

fn page(n: u32) -> PageIndex {
    PageIndex::new(AT + n)
}

fn config(policy: PolicyKind, budget: u64) -> ResidencyConfig {
    ResidencyConfig {
        policy,
        budget: Pages::new(budget),
        headroom: Pages::ZERO,
        ready: Pages::ZERO,
        probation: None,
        seed: 3,
    }
}

/// A residency with half of its budget on probation, if the policy has any.
fn half_on_probation(policy: PolicyKind, budget: u64) -> Residency {
    let probation = Fraction::from_percent(50);
    Residency::new(ResidencyConfig { probation, ..config(policy, budget) })
}

fn filled(mut residency: Residency, count: u32) -> Residency {
    for n in 0..count {
        assert!(residency.admit(page(n), Admission::FirstTouch));
    }
    residency
}

fn evict(residency: &mut Residency, max: u64) -> Vec<Victim> {
    let mut victims = Vec::new();
    let count = residency.evict_batch(&mut victims, Pages::new(max));
    assert_eq!(count.get(), victims.len() as u64);
    victims
}

fn probe(residency: &mut Residency, max: u64) -> Vec<PageIndex> {
    let mut pages = Vec::new();
    let count = residency.probe_batch(&mut pages, Pages::new(max));
    assert_eq!(count.get(), pages.len() as u64);
    pages
}

#[test]
fn over_target_keeps_the_headroom_free() {
    let headroom = Pages::new(3);
    let residency = Residency::new(ResidencyConfig { headroom, ..config(PolicyKind::FIFO, 10) });
    let mut residency = filled(residency, 7);
    assert_eq!(residency.over_target(), Pages::ZERO);
    residency.admit(page(7), Admission::Fetch);
    assert_eq!(residency.over_target(), Pages::new(1));
    residency.set_budget(Pages::new(5));
    // At most half of the budget is kept free: 8 − (5 − 2).
    assert_eq!(residency.over_target(), Pages::new(5));
    residency.set_budget(Pages::new(1));
    assert_eq!((residency.headroom(), residency.over_target()), (Pages::ZERO, Pages::new(7)));
    residency.set_budget(Pages::ZERO);
    assert_eq!(residency.over_target(), Pages::new(8));
}

#[test]
fn fifo_evicts_in_order_without_probation() {
    let mut residency = filled(half_on_probation(PolicyKind::FIFO, 4), 4);
    assert_eq!(probe(&mut residency, 4), []);
    let victim = |n| Victim { page: page(n), mapped: true };
    assert_eq!(evict(&mut residency, 3), [victim(0), victim(1), victim(2)]);
    assert_eq!(evict(&mut residency, 3), [victim(3)]);
    assert_eq!((residency.resident(), residency.peak()), (Pages::ZERO, Pages::new(4)));
}

/// Pages 0 and 1 go on probation; 0 is touched and comes back, so 1 is given up first, and then
/// the oldest active pages.
#[test]
fn probation_spares_what_is_touched() {
    let mut residency = filled(half_on_probation(PolicyKind::LRU, 4), 4);
    assert_eq!(probe(&mut residency, 9), [page(0), page(1)]);
    assert_eq!(probe(&mut residency, 9), []);
    assert_eq!((residency.on_probation(), residency.resident()), (Pages::new(2), Pages::new(4)));
    assert!(residency.soft_fault(page(0)));
    assert!(!residency.soft_fault(page(0)));
    let order = [(1, false), (2, true), (3, true), (0, true)];
    let order = order.map(|(n, mapped)| Victim { page: page(n), mapped });
    assert_eq!(evict(&mut residency, 9), order);
    // The report of a touch that comes after the eviction changes nothing.
    assert!(!residency.soft_fault(page(1)));
    assert_eq!(residency.state(page(1)), PageState::Absent);
}

#[test]
fn probation_waits_for_pressure() {
    let mut residency = filled(half_on_probation(PolicyKind::CLOCK, 20), 9);
    assert_eq!(probe(&mut residency, 20), []);
    residency.admit(page(9), Admission::FirstTouch);
    assert_eq!(probe(&mut residency, 3).len(), 3);
    // No more than are active: five of ten.
    assert_eq!(probe(&mut residency, 20).len(), 2);
}

#[test]
fn probation_share_is_the_policys_own_unless_given() {
    for kind in PolicyKind::ALL {
        let mut residency = filled(Residency::new(config(kind, 20)), 20);
        let own = kind.probation().map_or(0, |own| own.initial);
        assert_eq!(probe(&mut residency, 20).len(), own as usize * 20 / 1000, "{kind}");
        let wants = kind.build(1, 0).wants_references();
        assert_eq!(wants, own > 0, "{kind}");
    }
}

/// What is ready to leave leaves in order, once it is unmapped; what is touched comes back.
#[test]
fn pages_leave_in_order_unless_they_are_touched() {
    for kind in PolicyKind::ALL {
        let ready = Pages::new(4);
        let config = ResidencyConfig { ready, ..config(kind, 12) };
        let mut residency = filled(Residency::new(config), 12);
        let probed = probe(&mut residency, 4);
        assert_eq!(probed.len(), 4, "{kind}");
        let mut leaving = Vec::new();
        let mut leave = |residency: &mut Residency, max: u64| {
            leaving.clear();
            residency.leave_batch(&mut leaving, Pages::new(max));
            leaving.clone()
        };
        assert_eq!(leave(&mut residency, 4), [], "none is unmapped");
        residency.unmapped(probed[1]);
        assert_eq!(leave(&mut residency, 4), [], "not before the first");
        residency.unmapped(probed[0]);
        assert_eq!(leave(&mut residency, 4), [probed[0], probed[1]]);
        assert_eq!(residency.state(probed[0]), PageState::Leaving);
        assert_eq!(residency.resident(), Pages::new(12), "it has its frame");
        assert_eq!(residency.on_probation(), Pages::new(4));
        assert!(residency.soft_fault(probed[0]));
        assert!(!residency.left(probed[0]), "it was touched");
        assert!(residency.left(probed[1]));
        assert_eq!(residency.resident(), Pages::new(11));
        assert_eq!(residency.state(probed[1]), PageState::Absent);
        if kind == PolicyKind::FIFO {
            assert_eq!(probe(&mut residency, 1), [probed[0]], "it is still the oldest");
        }
    }
}

/// 600 fetches, 500 of which follow a touch of a page on probation.
#[test]
fn the_share_on_probation_follows_what_it_costs() {
    let wanted = |often: bool| {
        let mut residency = Residency::new(config(PolicyKind::LRU, 1000));
        for n in 0..1000 {
            residency.admit(PageIndex::new(n), Admission::FirstTouch);
        }
        for n in 0..600 {
            let probed = probe(&mut residency, 10);
            if often {
                probed.iter().for_each(|&page| _ = residency.soft_fault(page));
            }
            evict(&mut residency, 1);
            residency.admit(PageIndex::new(1000 + n), Admission::Fetch);
        }
        let before = residency.on_probation().get();
        before + probe(&mut residency, 1000).len() as u64
    };
    assert_eq!((wanted(true), wanted(false)), (480, 520));
}

/// A second fault on a page is a reference, a prefetch of a local page is none.
#[test]
fn admission_of_a_resident_page_adds_no_frame() {
    let mut residency = filled(half_on_probation(PolicyKind::LRU, 4), 4);
    probe(&mut residency, 2);
    assert!(!residency.admit(page(0), Admission::Prefetch));
    assert_eq!(residency.state(page(0)), PageState::Probation);
    assert!(!residency.admit(page(0), Admission::Fetch));
    assert_eq!(residency.state(page(0)), PageState::Active);
    assert_eq!(residency.resident(), Pages::new(4));
    assert_eq!(residency.admitted(Admission::FirstTouch), 4);
    assert_eq!(residency.admitted(Admission::Fetch), 0);
}

#[test]
fn pinned_pages_stay_under_every_policy() {
    for kind in PolicyKind::ALL {
        let mut residency = filled(half_on_probation(kind, 8), 8);
        probe(&mut residency, 8);
        residency.pin(page(0), Pages::new(100));
        assert_eq!(evict(&mut residency, 100), [], "{kind}");
        assert_eq!(probe(&mut residency, 100), [], "{kind}");
        assert_eq!((residency.pinned(), residency.resident()), (Pages::new(8), Pages::new(8)));
        // Pages that come into the range later are pinned as well.
        residency.admit(page(8), Admission::FirstTouch);
        assert_eq!(residency.state(page(8)), PageState::Pinned, "{kind}");
        residency.unpin(page(0), Pages::new(100));
        assert_eq!(evict(&mut residency, 100).len(), 9, "{kind}");
    }
}

#[test]
fn pins_end_with_the_memory_they_are_on() {
    let mut residency = filled(Residency::new(config(PolicyKind::FIFO, 8)), 4);
    residency.pin(page(0), Pages::new(4));
    residency.discard(page(1), Pages::new(2));
    assert_eq!((residency.pinned(), residency.resident()), (Pages::new(2), Pages::new(2)));
    residency.admit(page(1), Admission::FirstTouch);
    assert_eq!(residency.state(page(1)), PageState::Active);
    residency.admit(page(3), Admission::FirstTouch);
    assert_eq!(residency.state(page(3)), PageState::Pinned);
}

/// Discarding all there can be takes as long as what is there: this test would not end within
/// minutes if it visited every page.
#[test]
fn discard_of_a_huge_sparse_range_visits_what_is_resident() {
    let mut residency = Residency::new(config(PolicyKind::LRU, 100));
    for n in 0..1000_u32 {
        for spread in [0, 1, 1 << 24, 1 << 25] {
            residency.admit(PageIndex::new(spread), Admission::FirstTouch);
        }
        assert_eq!(residency.resident(), Pages::new(4), "round {n}");
        residency.discard(PageIndex::new(0), Pages::new(u64::MAX));
        assert_eq!(residency.resident(), Pages::ZERO);
    }
}

#[test]
fn rename_takes_age_probation_and_pins_along() {
    let mut residency = filled(half_on_probation(PolicyKind::LRU, 6), 6);
    assert_eq!(probe(&mut residency, 2), [page(0), page(1)]);
    residency.pin(page(2), Pages::new(1));
    residency.rename(page(0), page(10), Pages::new(4));
    for n in 0..4 {
        assert_eq!(residency.state(page(n)), PageState::Absent);
    }
    assert_eq!(residency.state(page(12)), PageState::Pinned);
    let order = [(10, false), (11, false), (13, true), (4, true), (5, true)];
    let order = order.map(|(n, mapped)| Victim { page: page(n), mapped });
    assert_eq!(evict(&mut residency, 9), order);
    residency.discard(page(12), Pages::new(1));
    residency.admit(page(2), Admission::FirstTouch);
    assert_eq!(residency.state(page(2)), PageState::Active);
}

#[test]
fn fork_copies_everything_but_the_pins() {
    for kind in PolicyKind::ALL {
        let mut parent = filled(half_on_probation(kind, 8), 8);
        probe(&mut parent, 3);
        parent.pin(page(7), Pages::new(1));
        let mut child = parent.clone_for_fork();
        assert_eq!(child.pinned(), Pages::ZERO, "{kind}");
        assert_eq!((child.resident(), child.peak()), (Pages::new(8), Pages::new(8)), "{kind}");
        assert_eq!(child.on_probation(), parent.on_probation(), "{kind}");
        // What the child does is its own affair.
        child.discard(page(0), Pages::new(4));
        assert_eq!((parent.resident(), parent.pinned()), (Pages::new(8), Pages::new(1)), "{kind}");
        assert_eq!(evict(&mut child, 9).len(), 4, "{kind}");
    }
}

#[test]
fn pages_that_leave_a_parent_do_not_leave_its_child_and_can_be_given_up_there() {
    let mut parent = filled(half_on_probation(PolicyKind::CLOCK, 8), 8);
    let probed = probe(&mut parent, 3);
    probed.iter().for_each(|&page| parent.unmapped(page));
    let mut leaving = Vec::new();
    assert_eq!(parent.leave_batch(&mut leaving, Pages::new(2)), Pages::new(2));
    let mut child = parent.clone_for_fork();
    assert_eq!(child.on_probation(), parent.on_probation());
    for &page in &leaving {
        assert_eq!(parent.state(page), PageState::Leaving);
        assert_eq!(child.state(page), PageState::Probation);
    }
    assert_eq!(evict(&mut child, 9).len(), 8, "all can be given up");
}

#[test]
fn what_moves_while_it_is_unmapped_can_leave_where_it_is_now() {
    let mut residency = filled(half_on_probation(PolicyKind::CLOCK, 8), 8);
    let probed = probe(&mut residency, 3);
    let moved: Vec<_> = probed.iter().map(|page| PageIndex::new(page.get() + 100)).collect();
    residency.rename(page(0), page(100), Pages::new(8));
    // That they are unmapped where they were comes too late.
    probed.iter().for_each(|&page| residency.unmapped(page));
    let mut leaving = Vec::new();
    assert_eq!(residency.leave_batch(&mut leaving, Pages::new(8)), Pages::new(3));
    assert_eq!(leaving, moved);
}

#[derive(Clone, Debug)]
enum Step {
    Admit(u32, Admission),
    SoftFault(u32),
    Discard(u32, u64),
    Pin(u32, u64),
    Unpin(u32, u64),
    Rename(u32, u32, u64),
    Evict(u64),
    Probe(u64),
    SetBudget(u64),
    Fork,
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..PAGES;
    let how = prop_oneof![
        Just(Admission::FirstTouch),
        Just(Admission::Fetch),
        Just(Admission::Prefetch),
        Just(Admission::Found),
    ];
    let count = 0..9_u64;
    prop_oneof![
        8 => (n.clone(), how).prop_map(|(n, how)| Step::Admit(n, how)),
        3 => n.clone().prop_map(Step::SoftFault),
        1 => (n.clone(), count.clone()).prop_map(|(n, count)| Step::Discard(n, count)),
        1 => (n.clone(), count.clone()).prop_map(|(n, count)| Step::Pin(n, count)),
        1 => (n.clone(), count.clone()).prop_map(|(n, count)| Step::Unpin(n, count)),
        1 => (n.clone(), n, count.clone()).prop_map(|(from, to, count)| {
            let apart = u64::from(from.abs_diff(to));
            Step::Rename(from, to, count.min(apart))
        }),
        3 => count.clone().prop_map(Step::Evict),
        3 => count.prop_map(Step::Probe),
        1 => (0..20_u64).prop_map(Step::SetBudget),
        1 => Just(Step::Fork),
    ]
}

/// States and pins of all pages, one by one.
#[derive(Clone, Default)]
struct Model {
    states: BTreeMap<u32, PageState>,
    pins: BTreeMap<u32, ()>,
}

impl Model {
    fn state(&self, n: u32) -> PageState {
        self.states.get(&n).copied().unwrap_or(PageState::Absent)
    }

    fn count(&self, state: PageState) -> Pages {
        Pages::new(self.states.values().filter(|&&other| other == state).count() as u64)
    }

    fn admit(&mut self, n: u32, how: Admission) {
        match self.state(n) {
            PageState::Absent if self.pins.contains_key(&n) => {
                self.states.insert(n, PageState::Pinned);
            }
            PageState::Absent => {
                self.states.insert(n, PageState::Active);
            }
            _ if how != Admission::Prefetch => self.soft_fault(n),
            _ => {}
        }
    }

    fn soft_fault(&mut self, n: u32) {
        if self.state(n) == PageState::Probation {
            self.states.insert(n, PageState::Active);
        }
    }

    fn discard(&mut self, n: u32) {
        self.states.remove(&n);
        self.pins.remove(&n);
    }

    fn pin(&mut self, n: u32) {
        self.pins.insert(n, ());
        self.states.entry(n).and_modify(|state| *state = PageState::Pinned);
    }

    fn unpin(&mut self, n: u32) {
        if self.pins.remove(&n).is_some() {
            self.states.entry(n).and_modify(|state| *state = PageState::Active);
        }
    }

    fn rename(&mut self, from: u32, to: u32) {
        self.discard(to);
        if let Some(state) = self.states.remove(&from) {
            self.states.insert(to, state);
        }
        if self.pins.remove(&from).is_some() {
            self.pins.insert(to, ());
        }
    }
}

fn apply(step: &Step, residency: &mut Residency, model: &mut Model) -> Result<(), TestCaseError> {
    let span = |n: u32, count: u64| n..n + u32::try_from(count).expect("counts are small");
    match *step {
        Step::Admit(n, how) => {
            let new = residency.admit(page(n), how);
            prop_assert_eq!(new, model.state(n) == PageState::Absent);
            model.admit(n, how);
        }
        Step::SoftFault(n) => {
            let spared = residency.soft_fault(page(n));
            prop_assert_eq!(spared, model.state(n) == PageState::Probation);
            model.soft_fault(n);
        }
        Step::Discard(n, count) => {
            residency.discard(page(n), Pages::new(count));
            span(n, count).for_each(|n| model.discard(n));
        }
        Step::Pin(n, count) => {
            residency.pin(page(n), Pages::new(count));
            span(n, count).for_each(|n| model.pin(n));
        }
        Step::Unpin(n, count) => {
            residency.unpin(page(n), Pages::new(count));
            span(n, count).for_each(|n| model.unpin(n));
        }
        Step::Rename(from, to, count) => {
            residency.rename(page(from), page(to), Pages::new(count));
            span(from, count).for_each(|n| model.rename(n, n + to - from));
        }
        Step::Evict(max) => {
            for Victim { page, mapped } in evict(residency, max) {
                let state = model.states.remove(&(page.get() - AT));
                let expected = if mapped { PageState::Active } else { PageState::Probation };
                prop_assert_eq!(state, Some(expected));
            }
        }
        Step::Probe(max) => {
            for page in probe(residency, max) {
                let state = model.states.insert(page.get() - AT, PageState::Probation);
                prop_assert_eq!(state, Some(PageState::Active));
            }
        }
        Step::SetBudget(budget) => residency.set_budget(Pages::new(budget)),
        Step::Fork => {
            *residency = residency.clone_for_fork();
            (0..2 * PAGES).for_each(|n| model.unpin(n));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn residency_agrees_with_the_model(steps in prop::collection::vec(step(), 0..80)) {
        for kind in PolicyKind::ALL {
            let (mut residency, mut model) = (half_on_probation(kind, 12), Model::default());
            for step in &steps {
                apply(step, &mut residency, &mut model)?;
                for n in 0..2 * PAGES {
                    prop_assert_eq!(residency.state(page(n)), model.state(n), "{} {}", kind, n);
                }
                prop_assert_eq!(residency.resident(), Pages::new(model.states.len() as u64));
                prop_assert_eq!(residency.pinned(), model.count(PageState::Pinned));
                prop_assert_eq!(residency.on_probation(), model.count(PageState::Probation));
                prop_assert!(residency.peak() >= residency.resident());
            }
            // Every page that is not pinned is a victim in the end, and none that is.
            let left = evict(&mut residency, u64::MAX).len() as u64;
            let pinned = model.count(PageState::Pinned);
            prop_assert_eq!(Pages::new(left + pinned.get()), Pages::new(model.states.len() as u64));
            prop_assert_eq!(residency.resident(), pinned);
        }
    }
}
