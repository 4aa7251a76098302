//! What every policy has to do, whatever its order: awkward values one by one, then anything.

use std::collections::BTreeSet;

use paging::{PageIndex, Policy, PolicyKind};
use proptest::prelude::*;

const SEED: u64 = 7;

fn pages(numbers: impl IntoIterator<Item = u32>) -> Vec<PageIndex> {
    numbers.into_iter().map(PageIndex::new).collect()
}

#[test]
fn policies_conform() {
    for kind in PolicyKind::ALL {
        empty_policy_has_nothing_to_give(kind);
        insertion_is_once_only(kind);
        removed_pages_are_not_victims(kind);
        resizing_loses_nothing(kind);
        renaming_keeps_the_place(kind);
        clones_go_the_same_way(kind);
        restored_pages_stay(kind);
        far_apart_pages_are_held(kind);
    }
}

fn empty_policy_has_nothing_to_give(kind: PolicyKind) {
    for capacity in [0, 1, usize::MAX] {
        let mut policy = kind.build(capacity, SEED);
        let page = PageIndex::new(3);
        policy.touch(page);
        policy.remove(page);
        policy.rename(page, PageIndex::new(4));
        assert_eq!((policy.len(), policy.is_empty()), (0, true), "{kind}");
        assert!(!policy.contains(page), "{kind}");
        assert_eq!(policy.victim(), None, "{kind}");
    }
}

fn insertion_is_once_only(kind: PolicyKind) {
    let mut policy = kind.build(1, SEED);
    let page = PageIndex::new(0);
    for _ in 0..5 {
        policy.insert(page);
        policy.insert(page);
        assert_eq!((policy.len(), policy.contains(page)), (1, true), "{kind}");
        assert_eq!(policy.victim(), Some(page), "{kind}");
        assert_eq!((policy.victim(), policy.contains(page)), (None, false), "{kind}");
    }
}

fn removed_pages_are_not_victims(kind: PolicyKind) {
    let mut policy = filled(kind, 6);
    for page in pages([0, 5, 2, 2, 9]) {
        policy.touch(page);
        policy.remove(page);
    }
    let mut left = drain(&mut *policy);
    left.sort();
    assert_eq!(left, pages([1, 3, 4]), "{kind}");
}

fn resizing_loses_nothing(kind: PolicyKind) {
    let mut policy = filled(kind, 20);
    for page in pages(0..10) {
        policy.touch(page);
        policy.touch(page);
    }
    for capacity in [5, 0, 1, 1_000_000] {
        policy.resize(capacity);
        assert_eq!(policy.len(), 20, "{kind}");
    }
    let mut all = drain(&mut *policy);
    all.sort();
    assert_eq!(all, pages(0..20), "{kind}");
}

fn renaming_keeps_the_place(kind: PolicyKind) {
    let mut policy = filled(kind, 8);
    policy.touch(PageIndex::new(2));
    let mut renamed = policy.boxed_clone();
    renamed.rename(PageIndex::new(2), PageIndex::new(102));
    renamed.rename(PageIndex::new(5), PageIndex::new(105));
    assert!(renamed.contains(PageIndex::new(102)) && !renamed.contains(PageIndex::new(2)));
    let expected = drain(&mut *policy);
    let moved = expected.iter().map(|page| match page.get() {
        n @ (2 | 5) => n + 100,
        n => n,
    });
    assert_eq!(drain(&mut *renamed), pages(moved), "{kind}");
}

fn clones_go_the_same_way(kind: PolicyKind) {
    let mut policy = filled(kind, 30);
    for page in pages([3, 4, 4, 29]) {
        policy.touch(page);
    }
    policy.victim();
    let mut clone = policy.boxed_clone();
    assert_eq!(drain(&mut *clone), drain(&mut *policy), "{kind}");
}

/// A restored page is held again, and is not the next to go where references matter.
fn restored_pages_stay(kind: PolicyKind) {
    let mut policy = filled(kind, 20);
    let victim = policy.victim().expect("twenty pages are held");
    policy.restore(victim);
    assert_eq!((policy.len(), policy.contains(victim)), (20, true), "{kind}");
    let is_next = kind.probation().is_none();
    assert_eq!(policy.victim() == Some(victim), is_next, "{kind}");
}

fn far_apart_pages_are_held(kind: PolicyKind) {
    let mut policy = kind.build(4, SEED);
    let far = [PageIndex::MAX, PageIndex::new(0), PageIndex::new(1 << 25)];
    for page in far {
        policy.insert(page);
    }
    let mut all = drain(&mut *policy);
    all.sort();
    assert_eq!(all, [far[1], far[2], far[0]], "{kind}");
}

fn filled(kind: PolicyKind, count: u32) -> Box<dyn Policy> {
    let mut policy = kind.build(count as usize, SEED);
    for page in pages(0..count) {
        policy.insert(page);
    }
    policy
}

fn drain(policy: &mut dyn Policy) -> Vec<PageIndex> {
    std::iter::from_fn(|| policy.victim()).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    Touch(u32),
    Restore,
    Remove(u32),
    Rename(u32, u32),
    Victim,
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..12_u32;
    prop_oneof![
        4 => page.clone().prop_map(Step::Insert),
        4 => page.clone().prop_map(Step::Touch),
        1 => Just(Step::Restore),
        1 => page.clone().prop_map(Step::Remove),
        1 => (page.clone(), page).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => Just(Step::Victim),
        1 => (0..12_usize).prop_map(Step::Resize),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is done to it, a policy holds what a set would, and a victim is one of it.
    #[test]
    fn policies_are_sets(steps in prop::collection::vec(step(), 0..60)) {
        for kind in PolicyKind::ALL {
            let mut policy = kind.build(4, SEED);
            let mut model = BTreeSet::new();
            let mut last_victim = None;
            for step in &steps {
                match *step {
                    Step::Insert(n) => {
                        policy.insert(PageIndex::new(n));
                        model.insert(n);
                    }
                    Step::Touch(n) => policy.touch(PageIndex::new(n)),
                    Step::Remove(n) => {
                        policy.remove(PageIndex::new(n));
                        model.remove(&n);
                    }
                    Step::Rename(from, to) if !model.contains(&to) => {
                        policy.rename(PageIndex::new(from), PageIndex::new(to));
                        if model.remove(&from) {
                            model.insert(to);
                        }
                    }
                    Step::Restore => {
                        if let Some(n) = last_victim.take().filter(|n| !model.contains(n)) {
                            policy.restore(PageIndex::new(n));
                            model.insert(n);
                        }
                    }
                    Step::Rename(..) => {}
                    Step::Victim => {
                        last_victim = policy.victim().map(PageIndex::get);
                        prop_assert_eq!(last_victim.is_none(), model.is_empty());
                        prop_assert!(last_victim.is_none_or(|n| model.remove(&n)), "{}", kind);
                    }
                    Step::Resize(capacity) => policy.resize(capacity),
                }
                prop_assert_eq!(policy.len(), model.len());
                for n in 0..12 {
                    prop_assert_eq!(policy.contains(PageIndex::new(n)), model.contains(&n));
                }
            }
            let mut rest: Vec<u32> = drain(&mut *policy).into_iter().map(PageIndex::get).collect();
            rest.sort_unstable();
            prop_assert!(rest.into_iter().eq(model), "{} gives up every page once", kind);
        }
    }
}
