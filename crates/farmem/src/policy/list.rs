//! Doubly linked lists threaded through a table indexed by page.

use crate::page::{PageIndex, PageMap};

/// The link of a page that is in no list.
const UNLINKED: u32 = 0;
/// The link past either end of a list. Any other link is a page's number plus one.
const END: u32 = u32::MAX;

/// The links of every page. One table serves any number of [`List`]s as long as a page is in at
/// most one of them; which one is for the owner to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    nodes: PageMap<[u32; 2]>,
}

const PREVIOUS: usize = 0;
const NEXT: usize = 1;

impl Links {
    /// Whether `page` is in a list.
    pub(crate) fn is_linked(&self, page: PageIndex) -> bool {
        self.nodes.get(page)[PREVIOUS] != UNLINKED
    }
}

/// One list: both ends and a length.
#[derive(Clone, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    len: usize,
}

impl List {
    pub(crate) const fn new() -> Self {
        Self {
            first: END,
            last: END,
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Appends `page`, which is in no list.
    pub(crate) fn push_back(&mut self, links: &mut Links, page: PageIndex) {
        debug_assert!(!links.is_linked(page), "page {page} is already in a list");
        *links.nodes.slot(page) = [self.last, END];
        self.join(links, self.last, NEXT, link(page));
        self.last = link(page);
        self.len += 1;
    }

    /// Removes and returns the first page.
    pub(crate) fn pop_front(&mut self, links: &mut Links) -> Option<PageIndex> {
        let page = page(self.first)?;
        self.unlink(links, page);
        Some(page)
    }

    /// Removes `page`, which is in this list.
    pub(crate) fn unlink(&mut self, links: &mut Links, page: PageIndex) {
        debug_assert!(links.is_linked(page), "page {page} is in no list");
        let [previous, next] = std::mem::take(links.nodes.slot(page));
        self.join(links, previous, NEXT, next);
        self.join(links, next, PREVIOUS, previous);
        self.len -= 1;
    }

    /// Puts `new`, which is in no list, in the place of `old`, which is in this list.
    pub(crate) fn replace(&mut self, links: &mut Links, old: PageIndex, new: PageIndex) {
        debug_assert!(links.is_linked(old) && !links.is_linked(new));
        let [previous, next] = std::mem::take(links.nodes.slot(old));
        *links.nodes.slot(new) = [previous, next];
        self.join(links, previous, NEXT, link(new));
        self.join(links, next, PREVIOUS, link(new));
    }

    /// Points the `side` of the node at `at`, or the list's own end if there is none, to `to`.
    fn join(&mut self, links: &mut Links, at: u32, side: usize, to: u32) {
        match page(at) {
            Some(node) => links.nodes.slot(node)[side] = to,
            None if side == NEXT => self.first = to,
            None => self.last = to,
        }
    }
}

fn link(page: PageIndex) -> u32 {
    page.get() + 1
}

fn page(link: u32) -> Option<PageIndex> {
    debug_assert_ne!(link, UNLINKED, "a link inside a list leads nowhere");
    (link != END).then(|| PageIndex::new(link - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        Pop,
        Unlink(u32),
        Replace(u32, u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..9_u32).prop_map(Step::Push),
            Just(Step::Pop),
            (0..9_u32).prop_map(Step::Unlink),
            (0..9_u32, 0..9_u32).prop_map(|(old, new)| Step::Replace(old, new)),
        ]
    }

    proptest! {
        #[test]
        fn list_is_a_deque(steps in prop::collection::vec(step(), 0..60)) {
            let (mut links, mut list) = (Links::default(), List::new());
            let mut model = VecDeque::new();
            for step in steps {
                match step {
                    Step::Push(n) if !model.contains(&n) => {
                        list.push_back(&mut links, PageIndex::new(n));
                        model.push_back(n);
                    }
                    Step::Pop => {
                        let popped = list.pop_front(&mut links).map(PageIndex::get);
                        prop_assert_eq!(popped, model.pop_front());
                    }
                    Step::Unlink(n) if model.contains(&n) => {
                        list.unlink(&mut links, PageIndex::new(n));
                        model.retain(|&m| m != n);
                    }
                    Step::Replace(old, new) if model.contains(&old) && !model.contains(&new) => {
                        list.replace(&mut links, PageIndex::new(old), PageIndex::new(new));
                        model.iter_mut().filter(|m| **m == old).for_each(|m| *m = new);
                    }
                    _ => {}
                }
                prop_assert_eq!(list.len(), model.len());
                for n in 0..9 {
                    prop_assert_eq!(links.is_linked(PageIndex::new(n)), model.contains(&n));
                }
            }
        }
    }
}
