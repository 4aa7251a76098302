//! What commands of an I/O queue wait for: memory, data of other commands, and others' writes.

use nvme::{Queue, Slot, Status};

use super::super::site::Site;
use super::super::stripes::Range;
use super::{IoSession, Wire};

impl IoSession {
    /// How many bytes of data have come, if any are owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        self.solicited.owed()
    }

    pub(crate) fn is_starving(&self) -> bool {
        !self.starving.is_empty() || !self.parked.is_empty()
    }

    /// Tries again what waits for memory or others; how many jobs that has begun.
    pub(crate) fn feed(
        &mut self,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let mut wire = Wire { queue, out };
        let mut jobs = 0;
        for slot in std::mem::take(&mut self.parked) {
            jobs += self.start(slot, &mut wire, site);
        }
        for _ in 0..self.starving.len() {
            let Some(slot) = self.starving.pop_front() else { break };
            let waiting = self.starving.len();
            jobs += self.begin(slot, &mut wire, site);
            if self.starving.len() > waiting {
                // It keeps its turn.
                self.starving.rotate_right(1);
                break;
            }
        }
        jobs
    }

    /// Ends a command that waits, if its host gives it up before anything has begun; whether it
    /// has.
    pub(crate) fn abort(
        &mut self,
        cid: u16,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> bool {
        let Some(slot) = queue.find(cid) else { return false };
        let queues = [&mut self.starving, &mut self.unasked];
        let mut waits = queues.into_iter().any(|waiting| {
            let place = waiting.iter().position(|one| *one == slot);
            place.is_some_and(|place| waiting.remove(place).is_some())
        });
        if let Some(place) = self.parked.iter().position(|one| *one == slot) {
            self.parked.remove(place);
            waits = true;
        }
        if waits {
            let status = Status::ABORTED_BY_REQUEST.do_not_retry();
            self.answer(slot, status, &mut Wire { queue, out }, site);
        }
        waits
    }

    // Data has come: the host may be asked for more.
    pub(super) fn ask_on(&mut self, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let mut jobs = 0;
        for _ in 0..self.unasked.len() {
            let Some(slot) = self.unasked.pop_front() else { break };
            let waiting = self.unasked.len();
            jobs += self.begin(slot, wire, site);
            if self.unasked.len() > waiting {
                // It keeps its turn.
                self.unasked.rotate_right(1);
                break;
            }
        }
        jobs
    }

    // Whether it has to wait until another is done with what it writes.
    pub(super) fn is_parked(&mut self, slot: Slot) -> bool {
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(pending)) = place else { return false };
        let Some(hold) = pending.plan.hold() else { return false };
        pending.range = pending.namespace.stripes.take_or_wait(hold, pending.range);
        let waits = matches!(pending.range, Range::Waits(_));
        if waits {
            self.parked.push(slot);
        }
        waits
    }
}
