//! Reservation commands of an I/O queue: done at once, or by the keeper thread if the change has to
//! be stored.

use std::sync::Arc;

use nvme::{Queue, Slot, Status};

use super::{IoSession, Pending, Wire};
use crate::keeper::Kept;
use crate::site::{Order, Owner, Site, Tag};

impl IoSession {
    // Has the keeper thread make and store the change. Returns 1, the job that this counts as.
    pub(super) fn keep(&mut self, slot: Slot, site: &mut Site<'_>) -> u32 {
        let place = self.pending.get(usize::from(slot.number()));
        let Some(Some(Pending { execution, plan, .. })) = place else { return 0 };
        let Some(io) = plan.reserves else { return 0 };
        let data = execution.own().to_vec();
        let (namespace, host_id) = (Arc::clone(&execution.namespace), self.host.id);
        let change = move || Kept::Nvme(namespace.reserved.handle(host_id, io, &data).map(|_| ()));
        let tag = Tag { connection: site.who.connection, owner: Owner::Slot(slot) };
        site.wishes.orders.push(Order::Keep(tag, Box::new(change)));
        1
    }

    /// Ends a command whose change was stored or has failed; Preempt and Abort first waits for
    /// writes.
    pub(crate) fn kept(
        &mut self,
        slot: Slot,
        result: Result<(), Status>,
        queue: &mut Queue,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) {
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(pending)) = place else { return };
        // The change is made once, even if the command waits for writes and starts again.
        pending.plan.reserves = None;
        let fences = pending.plan.fences && result.is_ok();
        if fences && self.is_parked(slot) {
            return;
        }
        let status = result.err().unwrap_or(Status::SUCCESS);
        self.answer(slot, status, &mut Wire { queue, out }, site);
    }

    // Executes a reservation command; a report becomes the command's data.
    pub(super) fn reserve(&mut self, slot: Slot) -> Result<(), Status> {
        let place = self.pending.get_mut(usize::from(slot.number()));
        let Some(Some(Pending { execution, plan, .. })) = place else { return Ok(()) };
        let Some(io) = plan.reserves else { return Ok(()) };
        let reserved = &execution.namespace.reserved;
        if let Some(report) = reserved.handle(self.host.id, io, execution.own())? {
            let own = execution.own_mut();
            let (said, rest) = own.split_at_mut(report.len().min(own.len()));
            said.copy_from_slice(&report[..said.len()]);
            rest.fill(0);
        }
        // The change is made once, even if the command waits for writes and starts again.
        plan.reserves = None;
        Ok(())
    }
}
