//! When faults end.
//!
//! The trap logs a fetch before the kernel maps its page, and times its end afterwards, beside the
//! entry. Residency has the entry at once; how long the fetch took is told when it is known, in the
//! order of the log.

use std::collections::VecDeque;

use super::shared::{FaultEvent, FaultKind, Tables};

/// How long after its requested end a fetch's end is waited for: a thread may be stopped meanwhile,
/// or ended.
const MISSED_NS: u64 = 20_000_000;

/// Entries of the log whose end is not known, and those that came after them.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    waiting: VecDeque<(FaultEvent, u64)>,
}

impl Ends {
    /// Takes an event, logged at `place` since the start.
    pub(crate) fn push(&mut self, event: FaultEvent, place: u64) {
        self.waiting.push_back((event, place));
    }

    /// The next event, if its end is known, or is not to be known: then no time was measured.
    pub(crate) fn pop(&mut self, tables: &Tables, now_ns: u64) -> Option<FaultEvent> {
        let &(event, place) = self.waiting.front()?;
        let is_open = event.kind == FaultKind::Fetch
            && event.measured_ns == 0
            && event.requested_ns > 0
            && now_ns < event.time_ns + u64::from(event.requested_ns) + MISSED_NS;
        let event = if is_open {
            FaultEvent { measured_ns: tables.end_of(place, event.tid)?, ..event }
        } else {
            event
        };
        self.waiting.pop_front();
        Some(event)
    }
}
