//! Blocks that are being changed, and changes that wait for them.
//!
//! Invariants:
//! - Changes that overlap are done one at a time, in the order in which they came.
//! - Blocks of a change that has ended stay taken while it has ghosts: lost copies that may still
//!   be executed.

use std::collections::{BTreeMap, VecDeque};

use super::ghosts::{Ghost, Origin};

/// The first byte, and the one behind the last.
pub(super) type Span = [u64; 2];

/// The beginning of a change, and its number: changes are counted as they come.
type Key = (u64, u64);

struct Change<P> {
    end: u64,
    /// How many earlier overlapping changes are not over.
    before: u32,
    /// The change itself while it waits.
    change: Option<P>,
}

/// See the module's description.
pub(super) struct Hazards<P> {
    /// Changes that are not over: they wait, are being done, or have ghosts.
    changes: BTreeMap<Key, Change<P>>,
    count: u64,
    /// The longest change so far: how far before a span an overlapping change may begin.
    longest: u64,
    /// Ghosts of changes that have ended.
    ghosts: BTreeMap<Key, Vec<Ghost>>,
    free: VecDeque<P>,
}

impl<P> Hazards<P> {
    pub(super) const fn new() -> Self {
        Self {
            changes: BTreeMap::new(),
            count: 0,
            longest: 0,
            ghosts: BTreeMap::new(),
            free: VecDeque::new(),
        }
    }

    // Changes that overlap a span, each with its number.
    fn overlapping(&mut self, [start, end]: Span) -> impl Iterator<Item = (u64, &mut Change<P>)> {
        let near = (start.saturating_sub(self.longest), 0)..(end, 0);
        let near = self.changes.range_mut(near);
        let overlapping = near.filter(move |(_, change)| change.end > start);
        overlapping.map(|((_, number), change)| (*number, change))
    }

    /// Takes a span for a change. Returns the change if it may be done now; otherwise it waits
    /// here.
    pub(super) fn take(&mut self, span: Span, change: P, now_ns: u64) -> Option<P> {
        self.forget(now_ns);
        let [start, end] = span;
        let before = u32::try_from(self.overlapping(span).count()).unwrap_or(u32::MAX);
        self.count += 1;
        self.longest = self.longest.max(end - start);
        let (waits, done) = if before > 0 { (Some(change), None) } else { (None, Some(change)) };
        self.changes.insert((start, self.count), Change { end, before, change: waits });
        done
    }

    /// Releases the span of a change that has ended; with ghosts its blocks stay taken.
    pub(super) fn release(&mut self, [start, _]: Span, ghosts: Vec<Ghost>) {
        // Of changes that begin at the same byte, the first is the one that was done.
        let mut there = self.changes.range((start, 0)..);
        let Some((&key, _)) = there.next().filter(|((at, _), _)| *at == start) else { return };
        if ghosts.is_empty() {
            self.end(key);
        } else {
            self.ghosts.insert(key, ghosts);
        }
    }

    /// Removes the ghosts of a controller that is at rest.
    pub(super) fn rest(&mut self, of: Origin) {
        self.lay(|ghost| ghost.of == of);
    }

    // Removes ghosts that are gone, and ends changes without further ghosts.
    fn lay(&mut self, is_gone: impl Fn(&Ghost) -> bool) {
        for ghosts in self.ghosts.values_mut() {
            ghosts.retain(|ghost| !is_gone(ghost));
        }
        let over = self.ghosts.extract_if(.., |_, ghosts| ghosts.is_empty());
        let over: Vec<Key> = over.map(|(key, _)| key).collect();
        over.into_iter().for_each(|key| self.end(key));
    }

    // Ends a change: later changes that waited only for it become free.
    fn end(&mut self, key: Key) {
        let Some(Change { end, .. }) = self.changes.remove(&key) else { return };
        let mut free = Vec::new();
        for (number, after) in self.overlapping([key.0, end]) {
            if number > key.1 {
                after.before -= 1;
                if after.before == 0 {
                    free.extend(after.change.take().map(|change| (number, change)));
                }
            }
        }
        free.sort_by_key(|(number, _)| *number);
        self.free.extend(free.into_iter().map(|(_, change)| change));
    }

    // Removes ghosts whose time has passed.
    fn forget(&mut self, now_ns: u64) {
        if self.deadline_ns().is_some_and(|at| at <= now_ns) {
            self.lay(|ghost| ghost.until_ns <= now_ns);
        }
    }

    /// Takes the next change that has waited and may be done now.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<P> {
        self.forget(now_ns);
        self.free.pop_front()
    }

    /// When the next ghost's time passes; `None` without ghosts.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        self.ghosts.values().flatten().map(|ghost| ghost.until_ns).min()
    }

    /// Takes all waiting changes, to fail them.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = P> {
        let waiting = std::mem::take(&mut self.changes).into_values();
        self.ghosts.clear();
        self.free.drain(..).chain(waiting.filter_map(|change| change.change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn overlap([start, end]: Span, [other_start, other_end]: Span) -> bool {
        start < other_end && other_start < end
    }

    #[test]
    fn changes_that_overlap_are_done_one_after_another() {
        let mut hazards = Hazards::new();
        assert_eq!(hazards.take([0, 10], 'a', 0), Some('a'));
        assert_eq!(hazards.take([10, 20], 'b', 0), Some('b'), "they only touch");
        assert_eq!(hazards.take([5, 25], 'c', 0), None);
        assert_eq!(hazards.take([20, 30], 'd', 0), None, "it came after one that waits");
        assert_eq!(hazards.take([30, 40], 'e', 0), Some('e'));
        assert_eq!(hazards.next(0), None);
        hazards.release([0, 10], Vec::new());
        assert_eq!(hazards.next(0), None, "one more is there");
        hazards.release([10, 20], Vec::new());
        assert_eq!(hazards.next(0), Some('c'));
        assert_eq!(hazards.next(0), None);
        hazards.release([5, 25], Vec::new());
        assert_eq!((hazards.next(0), hazards.next(0)), (Some('d'), None));
    }

    #[test]
    fn blocks_may_stay_taken_until_a_time() {
        let mut hazards = Hazards::new();
        assert_eq!(hazards.take([0, 10], 'a', 0), Some('a'));
        hazards.release([0, 10], vec![Ghost { of: (0, 1), until_ns: 100 }]);
        assert_eq!(hazards.take([9, 11], 'b', 50), None);
        assert_eq!(hazards.deadline_ns(), Some(100));
        assert_eq!(hazards.next(99), None);
        assert_eq!(hazards.next(100), Some('b'));
        assert_eq!(hazards.take([0, 9], 'c', 101), Some('c'));
    }

    #[test]
    fn blocks_stay_taken_until_every_controller_is_at_rest() {
        let mut hazards = Hazards::new();
        let ghosts = [(0, 1), (1, 4)].map(|of| Ghost { of, until_ns: 100 });
        assert_eq!(hazards.take([0, 10], 'a', 0), Some('a'));
        assert_eq!(hazards.take([20, 30], 'b', 0), Some('b'));
        hazards.release([0, 10], ghosts.to_vec());
        hazards.release([20, 30], ghosts[..1].to_vec());
        assert_eq!([hazards.take([9, 11], 'c', 1), hazards.take([29, 31], 'd', 1)], [None, None]);
        hazards.rest((0, 1));
        assert_eq!((hazards.next(2), hazards.next(2)), (Some('d'), None));
        hazards.rest((1, 3));
        assert_eq!(hazards.next(3), None, "another than that");
        hazards.rest((1, 4));
        assert_eq!((hazards.next(4), hazards.deadline_ns()), (Some('c'), None));
    }

    #[test]
    fn many_that_are_over_make_room_for_one() {
        let mut hazards = Hazards::new();
        for at in 0..100 {
            assert_eq!(hazards.take([at, at + 1], at, 0), Some(at));
            hazards.release([at, at + 1], vec![Ghost { of: (0, 1), until_ns: 5 }]);
        }
        assert_eq!(hazards.take([0, 100], 100, 4), None);
        assert_eq!(hazards.next(5), Some(100));
        hazards.release([0, 100], Vec::new());
        assert_eq!(hazards.take([50, 51], 101, 5), Some(101));
        assert_eq!(hazards.take([50, 51], 102, 5), None);
        assert_eq!(hazards.give_up().collect::<Vec<_>>(), [102]);
    }

    // Against the plain rule: at any time no two that are done overlap, all are done in the end,
    // and of two that overlap the first that came is the first that is done.
    #[test]
    fn any_order_of_ends_keeps_the_rule() {
        let mut draw = workload::Draw::new(7);
        for _ in 0..200 {
            let mut hazards = Hazards::new();
            let [mut doing, mut done] = [const { Vec::<(Span, u64)>::new() }; 2];
            let mut came = 0;
            for _ in 0..300 {
                if came < 100 && draw.below(2) == 0 {
                    let start = draw.below(40);
                    let span = [start, start + 1 + draw.below(8)];
                    doing.extend(hazards.take(span, (span, came), 0));
                    came += 1;
                } else if !doing.is_empty() {
                    let index = usize::try_from(draw.below(doing.len() as u64)).expect("small");
                    let ended = doing.swap_remove(index);
                    hazards.release(ended.0, Vec::new());
                    done.push(ended);
                    while let Some(next) = hazards.next(0) {
                        doing.push(next);
                    }
                }
                for (index, (span, _)) in doing.iter().enumerate() {
                    assert!(!doing[..index].iter().any(|(other, _)| overlap(*span, *other)));
                }
            }
            while let Some(ended) = doing.pop() {
                hazards.release(ended.0, Vec::new());
                done.push(ended);
                while let Some(next) = hazards.next(0) {
                    doing.push(next);
                }
            }
            assert_eq!(done.len() as u64, came);
            for (index, (span, number)) in done.iter().enumerate() {
                let after = done[index..].iter().filter(|(other, _)| overlap(*span, *other));
                assert!(after.clone().all(|(_, other)| other >= number), "{number}");
            }
        }
    }
}
