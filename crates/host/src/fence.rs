//! Ways that were lost. Their devices are to be at rest before blocks are changed that they may
//! still change.
//!
//! ```text
//! way lost ─► listed ─► any way that is up, or its own when it is up again: reset it
//!                │                     │ at rest
//!                └── forgotten ◄───────┴──► lanes let the blocks go
//! ```
//!
//! Invariants:
//! - Only who has opened the same medium the same time is believed: a target that has started
//!   since, or another, does not know what the one before still does.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nvme::{Instance, Opening};

use super::ghosts::Origin;

/// What a device knows a way by that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Its controller, over NVMe.
    Controller(Instance),
    /// Its sessions, over iSCSI: those of this way begin anew when it is up again.
    Sessions(u16),
}

/// What became of a wish to end what was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// It does nothing any more.
    AtRest,
    /// It is not known yet.
    NotYet,
    /// It cannot be ended over this way.
    Never,
}

/// A way that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostWay {
    pub(super) of: Origin,
    pub(super) what: Lost,
    pub(super) opening: Option<Opening>,
    /// From then on it is at rest anyway.
    pub(super) until_ns: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct LostWays(Mutex<Vec<LostWay>>);

impl LostWays {
    fn all(&self) -> MutexGuard<'_, Vec<LostWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more is lost.
    pub(super) fn add(&self, way: LostWay) {
        self.all().push(way);
    }

    /// Those that one with this opening may be asked to end.
    pub(super) fn of(&self, opening: Option<Opening>, now_ns: u64) -> Vec<LostWay> {
        let mut all = self.all();
        all.retain(|way| way.until_ns > now_ns);
        all.iter().copied().filter(|way| way.opening == opening).collect()
    }

    /// One is at rest; whether that was not known.
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
