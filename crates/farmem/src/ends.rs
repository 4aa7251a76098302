//! When faults end.
//!
//! The trap logs a fetch before the kernel maps its page, and writes the time of its end later,
//! beside the entry. Residency takes the entry at once; the duration is reported when it is known,
//! in the order of the log.

use std::collections::VecDeque;

use tables::{FaultEvent, FaultKind};

/// How long after its requested end a fetch's end is awaited: its thread may have stopped.
const MISSED_NS: u64 = 20_000_000;

/// Log entries whose end is not known yet, and those behind them.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    waiting: VecDeque<(FaultEvent, u64)>,
}

impl Ends {
    /// Queues an event whose index in the log is `place`.
    pub(crate) fn push(&mut self, event: FaultEvent, place: u64) {
        self.waiting.push_back((event, place));
    }

    /// The next event, once its end is known or will never be: then no time was measured. `end_of`
    /// says how long the fault of a thread took that was logged at a place, if it has ended.
    pub(crate) fn pop(
        &mut self,
        end_of: impl Fn(u64, u32) -> Option<u32>,
        now_ns: u64,
    ) -> Option<FaultEvent> {
        let &(event, place) = self.waiting.front()?;
        let is_open = event.kind == FaultKind::Fetch
            && event.measured_ns == 0
            && event.requested_ns > 0
            && now_ns < event.time_ns + u64::from(event.requested_ns) + MISSED_NS;
        let event = if is_open {
            FaultEvent { measured_ns: end_of(place, event.tid)?, ..event }
        } else {
            event
        };
        self.waiting.pop_front();
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use paging::PageIndex;

    use super::*;

    fn event(time_ns: u64, kind: FaultKind, measured_ns: u32) -> FaultEvent {
        FaultEvent {
            time_ns,
            address: 0,
            page: PageIndex::new(0),
            slot: 0,
            tid: 7,
            kind,
            write: false,
            wait_ns: 0,
            requested_ns: 5_000,
            measured_ns,
        }
    }

    #[test]
    fn what_was_achieved_is_when_the_fault_ended() {
        let mut ends = Ends::default();
        let none = |_, _| None;
        ends.push(event(100, FaultKind::Fetch, 0), 3);
        ends.push(event(200, FaultKind::Soft, 0), 4);
        assert_eq!(ends.pop(none, 6_000), None, "it has not ended");
        let ended = |place, tid| (place == 3 && tid == 7).then_some(6_100);
        let ended = ends.pop(ended, 6_200).unwrap();
        assert_eq!((ended.measured_ns, ended.requested_ns), (6_100, 5_000));
        assert_eq!(ends.pop(none, 6_200).map(|event| event.kind), Some(FaultKind::Soft));
        assert_eq!(ends.pop(none, 6_200), None);
    }

    #[test]
    fn an_end_that_nobody_sees_is_not_waited_for_for_ever() {
        let mut ends = Ends::default();
        let none = |_, _| None;
        ends.push(event(100, FaultKind::Fetch, 0), 3);
        assert_eq!(ends.pop(none, 100 + MISSED_NS), None);
        let missed = ends.pop(none, 5_100 + MISSED_NS).unwrap();
        assert_eq!(missed.measured_ns, 0, "no time was measured");
        ends.push(event(100, FaultKind::Fetch, 4_000), 4);
        assert_eq!(ends.pop(none, 0).map(|event| event.measured_ns), Some(4_000));
    }
}
