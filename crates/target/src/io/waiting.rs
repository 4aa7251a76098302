//! How commands of an I/O queue wait for memory, for their R2T, and for others' writes.

use nvme::{Queue, Slot, Status};

use super::super::site::Site;
use super::{IoSession, Wire};

impl IoSession {
    /// How many bytes of data have come since the connection began; `None` if no data is owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        self.waiting.owed()
    }

    /// Whether a command waits for memory or for others' writes.
    pub(crate) fn is_starving(&self) -> bool {
        self.waiting.is_starving()
    }

    /// Tries again commands that wait for memory or for others. Returns how many jobs have begun.
    pub(crate) fn feed(
        &mut self,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> u32 {
        let mut wire = Wire { queue, out };
        let mut jobs = 0;
        for slot in std::mem::take(&mut self.waiting.parked) {
            jobs += self.start(slot, &mut wire, site);
        }
        for _ in 0..self.waiting.starving.len() {
            let Some(slot) = self.waiting.starving.pop_front() else { break };
            let waiting = self.waiting.starving.len();
            jobs += self.begin(slot, &mut wire, site);
            if self.waiting.starving.len() > waiting {
                // It keeps its turn.
                self.waiting.starving.rotate_right(1);
                break;
            }
        }
        jobs
    }

    /// Aborts the command with this CID if it still waits. Returns whether it was aborted.
    pub(crate) fn abort(
        &mut self,
        cid: u16,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) -> bool {
        let Some(slot) = queue.find(cid) else { return false };
        let waits = self.waiting.forget(slot);
        if waits {
            let status = Status::ABORTED_BY_REQUEST.do_not_retry();
            self.answer(slot, status, &mut Wire { queue, out }, site);
        }
        waits
    }

    // Requests the data of further commands as far as the host's window allows. Returns how many
    // jobs have begun.
    pub(super) fn ask_on(&mut self, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let mut jobs = 0;
        for _ in 0..self.waiting.unasked.len() {
            let Some(slot) = self.waiting.unasked.pop_front() else { break };
            let waiting = self.waiting.unasked.len();
            jobs += self.begin(slot, wire, site);
            if self.waiting.unasked.len() > waiting {
                // It keeps its turn.
                self.waiting.unasked.rotate_right(1);
                break;
            }
        }
        jobs
    }

    // Takes the command's range. Returns whether the command has to wait for others' writes.
    pub(super) fn is_parked(&mut self, slot: Slot) -> bool {
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(pending)) = place else { return false };
        let hold = pending.plan.hold(pending.execution.work());
        let waits = !pending.execution.takes(hold);
        if waits {
            self.waiting.parked.push(slot);
        }
        waits
    }
}
