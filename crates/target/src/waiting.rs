//! Commands of a queue or a session that wait, and for what.

use std::collections::VecDeque;

use super::solicited::Solicited;

/// See the module's description; `C` names a command.
pub(crate) struct Waiting<C> {
    /// For memory.
    pub(crate) starving: VecDeque<C>,
    /// For others to be done with what they write.
    pub(crate) parked: Vec<C>,
    /// Writes whose data is not asked for before other data has come.
    pub(crate) unasked: VecDeque<C>,
    /// What was asked for.
    pub(crate) solicited: Solicited,
}

impl<C> Default for Waiting<C> {
    fn default() -> Self {
        let (starving, parked, unasked) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Self { starving, parked, unasked, solicited: Solicited::default() }
    }
}

impl<C: Copy + PartialEq> Waiting<C> {
    /// Whether any waits for what others give back.
    pub(crate) fn is_starving(&self) -> bool {
        !self.starving.is_empty() || !self.parked.is_empty()
    }

    /// How many bytes of data have come, if any are owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        self.solicited.owed()
    }

    /// A command waits for nothing any more; whether it did.
    pub(crate) fn forget(&mut self, command: C) -> bool {
        let count = |all: &Self| all.starving.len() + all.parked.len() + all.unasked.len();
        let before = count(self);
        self.parked.retain(|one| *one != command);
        self.starving.retain(|one| *one != command);
        self.unasked.retain(|one| *one != command);
        count(self) < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_over_waits_for_nothing() {
        let mut waiting = Waiting::default();
        waiting.starving.extend([1, 2, 3]);
        waiting.parked.extend([4, 5]);
        waiting.unasked.extend([6]);
        for command in [2, 4, 6] {
            assert!(waiting.forget(command), "{command} did wait");
            assert!(!waiting.forget(command), "{command} is not listed any more");
        }
        assert_eq!(waiting.starving, [1, 3]);
        assert_eq!(waiting.parked, [5]);
        assert!(waiting.unasked.is_empty() && waiting.is_starving());
        assert!([1, 3, 5].map(|one| waiting.forget(one)) == [true; 3] && !waiting.is_starving());
    }
}
