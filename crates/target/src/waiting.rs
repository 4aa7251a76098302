//! Waiting commands of a queue or a session.

use std::collections::VecDeque;

use super::solicited::Solicited;

/// See the module's description; `C` names a command.
pub(crate) struct Waiting<C> {
    /// Commands that wait for memory.
    pub(crate) starving: VecDeque<C>,
    /// Commands that wait for a range that others hold.
    pub(crate) parked: Vec<C>,
    /// Writes whose data is not requested before other data has come.
    pub(crate) unasked: VecDeque<C>,
    /// The data that was requested.
    pub(crate) solicited: Solicited,
}

impl<C> Default for Waiting<C> {
    fn default() -> Self {
        let (starving, parked, unasked) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Self { starving, parked, unasked, solicited: Solicited::default() }
    }
}

impl<C: Copy + PartialEq> Waiting<C> {
    /// Whether any command waits for memory or for a range.
    pub(crate) fn is_starving(&self) -> bool {
        !self.starving.is_empty() || !self.parked.is_empty()
    }

    /// How many bytes of data have come since the connection began; `None` if no data is owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        self.solicited.owed()
    }

    /// Removes a command from all lists. Returns whether it was waiting.
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
