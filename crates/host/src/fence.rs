//! Lost paths. Their commands have to be at rest before blocks are changed that they may still
//! change.
//!
//! ```text
//! path lost ─► listed ─► any path that is up, or itself when it is up again: reset it
//!                 │                     │ at rest
//!                 └── forgotten ◄───────┴──► lanes release the blocks
//! ```
//!
//! Invariants:
//! - Only a path to the same opening of the medium can fence: a target that was restarted since, or
//!   another one, does not know which commands of the old one are still under way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nvme::{Instance, Opening};

use super::ghosts::Origin;

/// What identifies a lost path at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Its controller, over NVMe.
    Controller(Instance),
    /// Its sessions, over iSCSI, by number of the path: they are reinstated when it is up again.
    Sessions(u16),
}

/// The outcome of an attempt to end the commands of a lost path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// All its commands have ended.
    AtRest,
    /// They may still be under way; try again.
    NotYet,
    /// They cannot be ended over this path.
    Never,
}

/// A path that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostWay {
    pub(super) of: Origin,
    pub(super) what: Lost,
    pub(super) opening: Option<Opening>,
    /// When its commands are at rest anyway, by the monotonic clock.
    pub(super) until_ns: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct LostWays(Mutex<Vec<LostWay>>);

impl LostWays {
    // Locks the list of lost paths.
    fn all(&self) -> MutexGuard<'_, Vec<LostWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a lost path.
    pub(super) fn add(&self, way: LostWay) {
        self.all().push(way);
    }

    /// Lost paths that a path with this opening can fence.
    pub(super) fn of(&self, opening: Option<Opening>, now_ns: u64) -> Vec<LostWay> {
        let mut all = self.all();
        all.retain(|way| way.until_ns > now_ns);
        all.iter().copied().filter(|way| way.opening == opening).collect()
    }

    /// Removes a path that is at rest. Returns whether it was still listed.
    pub(super) fn forget(&self, of: Origin) -> bool {
        let mut all = self.all();
        let before = all.len();
        all.retain(|way| way.of != of);
        all.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_opened_the_medium_anew_is_not_asked() {
        let ways = LostWays::default();
        let what = Lost::Sessions(1);
        let way = LostWay { of: (1, 7), what, opening: Some([1; 16]), until_ns: 100 };
        ways.add(way);
        assert_eq!(ways.of(Some([1; 16]), 50), [way]);
        assert_eq!((ways.of(Some([2; 16]), 50), ways.of(None, 50)), (vec![], vec![]));
        assert_eq!(
            (ways.forget((1, 6)), ways.forget((1, 7)), ways.forget((1, 7))),
            (false, true, false)
        );
        ways.add(way);
        assert_eq!(ways.of(Some([1; 16]), 100), [], "its time is over");
    }
}
