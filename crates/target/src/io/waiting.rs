//! What commands of an I/O queue wait for: memory, data of other commands, and others' writes.

use nvme::{Queue, Slot};

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
