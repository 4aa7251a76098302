//! The interface of all policies.

use std::fmt;

use super::Stamps;
use crate::page::PageIndex;

/// An order in which local pages are given up.
///
/// A policy holds the pages it was given by [`insert`](Self::insert) until it returns them from
/// [`victim`](Self::victim) or is told to [`remove`](Self::remove) them. It knows nothing of
/// budgets: the caller decides when a page has to go.
///
/// # The caller
///
/// - inserts a page when it becomes local and removes it when it stops being a candidate for any
///   reason other than `victim` (freed, pinned);
/// - reports references by `touch`, if [`wants_references`](Self::wants_references) says they
///   matter: every access in a trace, or what soft faults reveal in a running program. A fault
///   that makes a page local is its insertion, not a touch;
/// - calls [`restore`](Self::restore), not `insert`, when a victim turns out to be referenced
///   before its frame was given up.
///
/// # The implementer
///
/// - returns every page it holds from `victim` eventually, exactly once per insertion, and never
///   a page it does not hold;
/// - treats the insertion of a page it holds as a touch, and a touch, removal or renaming of a
///   page it does not hold as nothing;
/// - takes amortised constant time per call, with no hashing and no allocation beyond growing
///   its tables to the highest page seen;
/// - is deterministic: the same calls after the same seed give the same victims.
pub trait Policy: fmt::Debug + Send {
    /// The name that users know the policy by, as in [`PolicyKind`](super::PolicyKind).
    fn name(&self) -> &'static str;

    /// Whether [`touch`](Self::touch) changes anything. If so, the caller of a running program
    /// has a share of its pages on probation.
    fn wants_references(&self) -> bool;

    /// `page` became local: first touch, fetch, or found by a scan.
    fn insert(&mut self, page: PageIndex);

    /// `page` became local, and references to it will be seen on probation alone.
    fn insert_unseen(&mut self, page: PageIndex) {
        self.insert(page);
    }

    /// `page` was referenced while local.
    fn touch(&mut self, page: PageIndex);

    /// `page` was returned by [`victim`](Self::victim), but was referenced before its frame was
    /// given up and stays local.
    fn restore(&mut self, page: PageIndex) {
        self.insert(page);
    }

    /// `page` is no longer a candidate, and whatever is remembered of it is to be forgotten.
    fn remove(&mut self, page: PageIndex);

    /// The content of `from` is now at `to`, which the policy does not hold; its age goes along.
    fn rename(&mut self, from: PageIndex, to: PageIndex);

    /// Removes and returns the next page to give up; `None` if no page is held.
    fn victim(&mut self) -> Option<PageIndex>;

    /// Draws the ages of pages from `stamps` from now on, so that they can be compared with those
    /// of other policies that do.
    fn follow(&mut self, stamps: &Stamps);

    /// How many pages each line has in which pages wait for their turn. Most policies have one.
    fn sizes(&self) -> [usize; 2] {
        [self.len(), 0]
    }

    /// The stamp of the first page of each line; `None` if the line is empty or pages have no age.
    fn heads(&mut self) -> [Option<u64>; 2];

    /// As [`victim`](Self::victim), among pages of one line with stamps up to `until`.
    fn victim_of(&mut self, line: usize, until: u64) -> Option<PageIndex>;

    /// How many pages are held.
    fn len(&self) -> usize;

    /// Whether no page is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `page` is held.
    fn contains(&self, page: PageIndex) -> bool;

    /// The number of frames the caller now has for pages of this policy. Only bounds what is
    /// remembered of pages already given up; evicting down to `capacity` is the caller's work.
    fn resize(&mut self, _capacity: usize) {}

    /// A copy with the same pages in the same order.
    fn boxed_clone(&self) -> Box<dyn Policy>;
}
