//! Aborts of commands of I/O queues (Base 5.1.1): every shard looks for the command.
//!
//! Invariants:
//! - An Abort is answered once, after the reports of all shards: a late report could otherwise be
//!   taken for one about the next Abort.

/// Aborts of an admin queue that may be outstanding (ACL).
const MOST: usize = 4;

/// See the module's description; `S` names an Abort for its answer.
#[derive(Debug)]
pub(crate) struct Aborts<S> {
    all: Vec<Abort<S>>,
    /// Aborts that have ever begun.
    count: u64,
}

#[derive(Debug)]
struct Abort<S> {
    serial: u64,
    slot: S,
    /// Shards that have not reported.
    left: u16,
    /// Whether a shard has ended the command.
    was: bool,
}

impl<S> Default for Aborts<S> {
    fn default() -> Self {
        Self { all: Vec::new(), count: 0 }
    }
}

impl<S> Aborts<S> {
    /// Begins an Abort on which `shards` shards report. Returns its number, or `None` if [`MOST`]
    /// are outstanding.
    pub(crate) fn begin(&mut self, slot: S, shards: u16) -> Option<u64> {
        if self.all.len() >= MOST {
            return None;
        }
        self.count += 1;
        self.all.push(Abort { serial: self.count, slot, left: shards, was: false });
        Some(self.count)
    }

    /// Records a shard's report on Abort `serial`: `was` says whether it ended the command. After
    /// the last report returns the Abort and whether any shard ended the command.
    pub(crate) fn looked(&mut self, serial: u64, was: bool) -> Option<(S, bool)> {
        let place = self.all.iter().position(|own| own.serial == serial)?;
        let own = &mut self.all[place];
        (own.left, own.was) = (own.left.saturating_sub(1), own.was || was);
        if own.left > 0 {
            return None;
        }
        let Abort { slot, was, .. } = self.all.swap_remove(place);
        Some((slot, was))
    }

    /// Drops all Aborts unanswered, and returns their slots.
    pub(crate) fn forget(&mut self) -> impl Iterator<Item = S> {
        self.all.drain(..).map(|own| own.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_is_answered_when_all_shards_have_looked() {
        let mut aborts = Aborts::default();
        let [first, second] = ["a", "b"].map(|name| aborts.begin(name, 3).expect("there is room"));
        assert_eq!(aborts.looked(first, true), None, "two have not looked");
        assert_eq!(aborts.looked(second, false), None);
        assert_eq!(aborts.looked(first, false), None);
        assert_eq!(aborts.looked(second, false), None);
        assert_eq!(aborts.looked(first, false), Some(("a", true)), "one has ended it");
        assert_eq!(aborts.looked(first, true), None, "it is answered");
        assert_eq!(aborts.looked(second, false), Some(("b", false)));
    }

    #[test]
    fn there_are_few_at_once_and_none_after_a_reset() {
        let mut aborts = Aborts::default();
        let serials: Vec<Option<u64>> = (0..=MOST).map(|name| aborts.begin(name, 1)).collect();
        assert_eq!(serials, [Some(1), Some(2), Some(3), Some(4), None]);
        assert_eq!(aborts.looked(2, true), Some((1, true)));
        assert_eq!(aborts.begin(9, 1), Some(5), "a number that no other has had");
        assert_eq!(aborts.forget().count(), MOST);
        assert_eq!(aborts.looked(5, true), None);
    }
}
