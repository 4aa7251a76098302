//! Several processes under one budget give up what one would that had the pages of all.

use measure::{Fraction, Pages};
use paging::members::{Holding, Members};
use paging::probation::Room;
use paging::turns::Givers;
use paging::{Admission, PageIndex, PolicyKind, Residency, ResidencyConfig};
use proptest::prelude::*;

const SLOTS: usize = 3;
/// Pages of each process.
const PAGES: u32 = 16;
/// Frames of the budget: S3-FIFO remembers in each process what it would in one.
const FRAMES: u64 = 60;

fn config(policy: PolicyKind) -> ResidencyConfig {
    ResidencyConfig {
        policy,
        budget: Pages::new(FRAMES),
        headroom: Pages::ZERO,
        ready: Pages::new(FRAMES),
        probation: Fraction::from_percent(30),
        seed: 5,
    }
}

/// Processes under one budget.
struct Tree {
    members: Members,
    residencies: Givable,
}

struct Givable {
    all: Vec<Residency>,
    /// How many pages of each may be unmapped at once.
    room: [u64; SLOTS],
}

impl Givers for Givable {
    fn giver(&mut self, slot: usize) -> Option<(&mut Residency, u64)> {
        Some((&mut self.all[slot], self.room[slot]))
    }
}

impl Tree {
    fn new(policy: PolicyKind) -> Self {
        let share = config(policy).probation;
        let members = Members::new((SLOTS, 1), policy, share, 7);
        let under = |_| Residency::under(config(policy), members.common()[0].clone());
        let all = (0..SLOTS).map(under).collect();
        let mut tree = Self { members, residencies: Givable { all, room: [u64::MAX; SLOTS] } };
        (0..SLOTS).for_each(|slot| tree.tally(slot, false));
        tree
    }

    fn tally(&mut self, slot: usize, is_stuck: bool) {
        let residency = &mut self.residencies.all[slot];
        let resident = residency.resident().get();
        let holding = Holding {
            budget: 0,
            populated: vec![resident],
            resident: vec![resident],
            fronts: vec![residency.front(is_stuck)],
            dropping: 0,
            pages: resident,
            local_pages: resident,
        };
        self.members.settle(slot, Some(holding));
    }

    fn probe(&mut self) -> Vec<(usize, u32)> {
        let free = FRAMES - self.members.resident(0, 0);
        let room = Room { frames: FRAMES, free, ready: FRAMES };
        let given = self.members.probe((0, 0), &mut self.residencies, room);
        self.numbers(given)
    }

    fn leave(&mut self, most: u64, is_leaving: bool) -> Vec<(usize, u32)> {
        let given = self.members.leave((0, 0), &mut self.residencies, most, is_leaving);
        self.numbers(given)
    }

    fn numbers(&mut self, given: Vec<(usize, PageIndex)>) -> Vec<(usize, u32)> {
        (0..SLOTS).for_each(|slot| self.tally(slot, false));
        given.into_iter().map(|(slot, page)| (slot, page.get())).collect()
    }
}

/// One process that has the pages of all.
fn of_one(pages: &[PageIndex]) -> Vec<(usize, u32)> {
    pages.iter().map(|page| ((page.get() / PAGES) as usize, page.get() % PAGES)).collect()
}

fn one(slot: usize, page: u32) -> PageIndex {
    let slot = u32::try_from(slot).expect("slots are few");
    PageIndex::new(slot * PAGES + page)
}

#[derive(Clone, Debug)]
enum Step {
    Admit(usize, u32),
    Touch(usize, u32),
    Discard(usize, u32, u64),
    Pin(usize, u32),
    Unpin(usize, u32),
    Rename(usize, u32, u32),
    Probe,
    Unmapped(usize),
    Leave(u64),
    Left(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (slot, page, count) = (0..SLOTS, 0..PAGES, 1..6_u64);
    prop_oneof![
        12 => (slot.clone(), page.clone()).prop_map(|(s, n)| Step::Admit(s, n)),
        6 => (slot.clone(), page.clone()).prop_map(|(s, n)| Step::Touch(s, n)),
        1 => (slot.clone(), page.clone(), count.clone())
            .prop_map(|(s, n, count)| Step::Discard(s, n, count.min(u64::from(PAGES - n)))),
        1 => (slot.clone(), page.clone()).prop_map(|(s, n)| Step::Pin(s, n)),
        1 => (slot.clone(), page.clone()).prop_map(|(s, n)| Step::Unpin(s, n)),
        1 => (slot, page.clone(), page).prop_map(|(s, from, to)| Step::Rename(s, from, to)),
        3 => Just(Step::Probe),
        3 => (1..6_usize).prop_map(Step::Unmapped),
        3 => count.prop_map(Step::Leave),
        2 => (1..6_usize).prop_map(Step::Left),
    ]
}

/// Does the same to both; what they give up is the same.
struct Pair {
    tree: Tree,
    single: Residency,
    unmapping: Vec<(usize, u32)>,
    leaving: Vec<(usize, u32)>,
}

impl Pair {
    fn both(&mut self, slot: usize, page: u32, change: impl Fn(&mut Residency, PageIndex)) {
        change(&mut self.tree.residencies.all[slot], PageIndex::new(page));
        change(&mut self.single, one(slot, page));
        self.tree.tally(slot, false);
    }

    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let page = Pages::new(1);
        match *step {
            Step::Admit(slot, n) => self.both(slot, n, |residency, n| {
                residency.admit(n, Admission::Fetch);
            }),
            Step::Touch(slot, n) => self.both(slot, n, |residency, n| {
                residency.soft_fault(n);
            }),
            Step::Discard(slot, n, count) => {
                self.both(slot, n, |residency, n| residency.discard(n, Pages::new(count)));
            }
            Step::Pin(slot, n) => self.both(slot, n, |residency, n| residency.pin(n, page)),
            Step::Unpin(slot, n) => self.both(slot, n, |residency, n| residency.unpin(n, page)),
            Step::Rename(slot, from, to) => {
                let distance = i64::from(to) - i64::from(from);
                self.both(slot, from, |residency, from| {
                    let to = from.offset(distance).expect("a page");
                    residency.rename(from, to, page);
                });
            }
            Step::Probe => {
                let mut pages = Vec::new();
                self.single.probe_batch(&mut pages, Pages::new(u64::MAX));
                let given = self.tree.probe();
                prop_assert_eq!(&given, &of_one(&pages), "{:?}", self.single);
                self.unmapping.extend(given);
            }
            Step::Unmapped(count) => {
                let count = self.unmapping.len().min(count);
                for (slot, n) in self.unmapping.drain(..count).collect::<Vec<_>>() {
                    self.both(slot, n, |residency, n| residency.unmapped(n));
                }
            }
            Step::Leave(most) => {
                let mut pages = Vec::new();
                self.single.leave_batch(&mut pages, Pages::new(most));
                let given = self.tree.leave(most, true);
                prop_assert_eq!(&given, &of_one(&pages));
                self.leaving.extend(given);
            }
            Step::Left(count) => {
                let count = self.leaving.len().min(count);
                for (slot, n) in self.leaving.drain(..count).collect::<Vec<_>>() {
                    self.both(slot, n, |residency, n| {
                        residency.left(n);
                    });
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_leaves_is_what_would_leave_one_process(
        steps in prop::collection::vec(step(), 0..200),
    ) {
        for policy in PolicyKind::ALL.into_iter().filter(|&policy| policy != PolicyKind::RANDOM) {
            let single = Residency::new(config(policy));
            let tree = Tree::new(policy);
            let mut pair = Pair { tree, single, unmapping: Vec::new(), leaving: Vec::new() };
            for step in &steps {
                pair.apply(step)?;
                for (slot, n) in (0..SLOTS).flat_map(|slot| (0..PAGES).map(move |n| (slot, n))) {
                    let state = pair.tree.residencies.all[slot].state(PageIndex::new(n));
                    prop_assert_eq!(state, pair.single.state(one(slot, n)), "{} {}", slot, n);
                }
            }
        }
    }
}

fn filled(policy: PolicyKind, counts: [u32; SLOTS]) -> Tree {
    let mut tree = Tree::new(policy);
    for (slot, count) in counts.into_iter().enumerate() {
        for n in 0..count {
            tree.residencies.all[slot].admit(PageIndex::new(n), Admission::FirstTouch);
        }
        tree.tally(slot, false);
    }
    tree
}

/// One process has three quarters of the pages.
#[test]
fn random_takes_from_each_process_by_its_pages() {
    let mut tree = Tree::new(PolicyKind::RANDOM);
    let sizes = [3_000, 0, 1_000];
    for (slot, size) in sizes.into_iter().enumerate() {
        for n in 0..size {
            tree.residencies.all[slot].admit(PageIndex::new(n), Admission::FirstTouch);
        }
        tree.tally(slot, false);
    }
    let room = Room { frames: 4_000, free: 0, ready: 1_600 };
    let given = tree.members.probe((0, 0), &mut tree.residencies, room);
    let of_first = given.iter().filter(|&&(slot, _)| slot == 0).count();
    assert_eq!(given.len(), 1_600);
    // 1200 ± 3 standard deviations of draws that are not put back.
    assert!((1_160..1_240).contains(&of_first), "{of_first}");
    // What was drawn and touched meanwhile is still next.
    let (slot, page) = given[0];
    tree.residencies.all[slot].soft_fault(page);
    (0..SLOTS).for_each(|slot| tree.tally(slot, false));
    let again = tree.members.probe((0, 0), &mut tree.residencies, room);
    assert_eq!(again, [(slot, page)]);
}

/// A process whose pages cannot be unmapped is passed over.
#[test]
fn who_has_pages_that_cannot_be_unmapped_is_passed_over() {
    for policy in PolicyKind::ALL {
        let mut tree = filled(policy, [8, 8, 0]);
        tree.residencies.room[0] = 0;
        let room = Room { frames: 16, free: 0, ready: 8 };
        let given = tree.members.probe((0, 0), &mut tree.residencies, room);
        assert_eq!(given.len(), 8, "{policy}: {given:?}");
        assert!(given.iter().all(|&(slot, _)| slot == 1), "{policy}: {given:?}");
    }
}

/// The oldest page on probation is waited for while it is being unmapped, unless nothing else
/// leaves; one whose helper is stopped is not waited for, and does not keep others from probation.
#[test]
fn who_unmaps_is_waited_for_unless_nothing_leaves() {
    let mut tree = filled(PolicyKind::FIFO, [4, 4, 0]);
    let room = Room { frames: 8, free: 0, ready: 8 };
    assert_eq!(tree.members.probe((0, 0), &mut tree.residencies, room).len(), 4);
    tree.residencies.room[0] = 0;
    tree.tally(0, true);
    let second = tree.members.probe((0, 0), &mut tree.residencies, room);
    assert_eq!(second.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 1]);
    for &(_, page) in &second {
        tree.residencies.all[1].unmapped(page);
    }
    tree.residencies.room[0] = 9;
    (0..SLOTS).for_each(|slot| tree.tally(slot, false));
    assert_eq!(tree.leave(9, true), []);
    assert_eq!(tree.leave(1, false), [(1, 0)]);
    tree.residencies.room[0] = 0;
    tree.tally(0, true);
    assert_eq!(tree.leave(9, true), [(1, 1)]);
}

/// A child's pages are as old as those they are copies of: they go by turns.
#[test]
fn pages_of_a_child_are_as_old_as_those_of_its_parent() {
    for policy in [PolicyKind::FIFO, PolicyKind::CLOCK, PolicyKind::LRU] {
        let mut tree = filled(policy, [4, 0, 0]);
        tree.residencies.all[1] = tree.residencies.all[0].clone_beside();
        tree.residencies.all[2].admit(PageIndex::new(0), Admission::FirstTouch);
        (0..SLOTS).for_each(|slot| tree.tally(slot, false));
        let room = Room { frames: 9, free: 0, ready: 9 };
        let given = tree.members.probe((0, 0), &mut tree.residencies, room);
        let given: Vec<_> = given.into_iter().map(|(slot, page)| (slot, page.get())).collect();
        assert_eq!(given, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)], "{policy}");
    }
}

/// What a parent is about to unmap is not mapped in its child: it may leave, and holds nobody back.
#[test]
fn a_child_gives_up_what_its_parent_is_about_to_unmap() {
    let mut tree = filled(PolicyKind::FIFO, [4, 0, 0]);
    tree.tally(0, false);
    let room = Room { frames: 9, free: 0, ready: 2 };
    assert_eq!(tree.members.probe((0, 0), &mut tree.residencies, room).len(), 2);
    tree.residencies.all[1] = tree.residencies.all[0].clone_beside();
    (0..2).for_each(|page| tree.residencies.all[0].unmapped(PageIndex::new(page)));
    (0..SLOTS).for_each(|slot| tree.tally(slot, false));
    assert_eq!(tree.leave(9, false), [(0, 0), (1, 0), (0, 1), (1, 1)]);
}
