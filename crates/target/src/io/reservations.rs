//! Commands of an I/O queue about reservations: done at once, or kept by another thread first.

use std::sync::Arc;

use nvme::{Queue, Slot, Status};

use super::{IoSession, Pending, Wire};
use crate::keeper::Kept;
use crate::site::{Order, Owner, Site, Tag};

impl IoSession {
    // Has another thread change reservations that are kept.
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

    /// A change of a command is kept, or has failed.
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
        // Once is enough, should it have to wait then.
        pending.plan.reserves = None;
        let fences = pending.plan.fences && result.is_ok();
        if fences && self.is_parked(slot) {
            return;
        }
        let status = result.err().unwrap_or(Status::SUCCESS);
        self.answer(slot, status, &mut Wire { queue, out }, site);
    }

    // Does a command about reservations; what a report says is then the command's data.
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
        // Once is enough, should it have to wait then.
        plan.reserves = None;
        Ok(())
    }
}
