//! Ghosts: lost copies of changes that a controller may still execute.
//!
//! A change whose connection was lost has been sent again; its first copy may still arrive at the
//! controller that it was sent to: a *ghost*. It is gone once that controller is known to be at
//! rest (it was reset, or its session was reinstated), or after the time in which the controller
//! ends the association by itself.
//!
//! Invariants:
//! - A controller that was found at rest executes nothing any more: if a lane learns of the loss
//!   only later, its changes are no ghosts either.

/// A controller, or the iSCSI sessions of a path: the path's number and its generation.
pub(super) type Origin = (usize, u64);

/// A lost copy of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ghost {
    pub(super) of: Origin,
    /// When the ghost is gone in any case, by the monotonic clock.
    pub(super) until_ns: u64,
}

/// Controllers that were found at rest, and until when that matters.
#[derive(Debug, Default)]
pub(super) struct AtRest(Vec<Ghost>);

impl AtRest {
    /// Adds a controller that was found at rest; it would be at rest after `until_ns` anyway.
    pub(super) fn add(&mut self, of: Origin, until_ns: u64, now_ns: u64) {
        self.0.retain(|one| one.until_ns > now_ns);
        self.0.push(Ghost { of, until_ns });
    }

    /// Whether the lost copy may still be executed.
    pub(super) fn haunts(&self, ghost: &Ghost, now_ns: u64) -> bool {
        ghost.until_ns > now_ns && !self.0.iter().any(|one| one.of == ghost.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_at_rest_haunts_nobody() {
        let mut at_rest = AtRest::default();
        let [one, other] = [(0, 1), (0, 2)].map(|of| Ghost { of, until_ns: 100 });
        at_rest.add(one.of, 100, 10);
        assert_eq!([one, other].map(|of| at_rest.haunts(&of, 50)), [false, true]);
        assert!(!at_rest.haunts(&other, 100), "its time is over");
        at_rest.add(other.of, 300, 200);
        assert_eq!(at_rest.0.len(), 1, "the first is not worth knowing any more");
    }
}
