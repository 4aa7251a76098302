//! Controllers that their hosts have others end.

use nvme::{Instance, Status};

use super::Control;

impl Control {
    /// Controllers that may be reset at once by way of each.
    pub(crate) const fn resets_max(&self) -> u8 {
        self.limits.resets
    }

    /// Ends another controller at the wish of controller `own`: its admin connection, if it is
    /// there and not ending, and the keep-alive time of `own` in milliseconds.
    ///
    /// # Errors
    /// The status with which the command ends: the controller is no other of the same host, or has
    /// a number that only another target gives.
    pub(crate) fn begin_reset(
        &mut self,
        own: u16,
        of: Instance,
    ) -> Result<(Option<u32>, u32), Status> {
        const INVALID: Status = Status::INVALID_CONTROLLER.do_not_retry();
        let [first, last] = self.limits.controller_ids;
        let asking = self.associations.get(&own).ok_or(INVALID)?;
        let keep_alive_ms = asking.controller.keep_alive_ms();
        let owner = asking.owner().filter(|_| (first..=last).contains(&of.controller));
        let owner = owner.ok_or(INVALID)?;
        let there = self.associations.get_mut(&of.controller);
        let Some(one) = there.filter(|one| one.controller.instance() == of) else {
            return Ok((None, keep_alive_ms));
        };
        if !one.owner().is_some_and(|of| of.is(&owner)) {
            return Err(INVALID);
        }
        let was_ending = std::mem::replace(&mut one.is_ending, true);
        Ok(((!was_ending).then_some(one.connection), keep_alive_ms))
    }

    /// Whether nothing of an instance of a controller is under way any more.
    pub(crate) fn is_at_rest(&self, of: Instance) -> bool {
        let there = self.associations.get(&of.controller);
        let is_there =
            there.is_some_and(|one| one.controller.instance() == of || !one.leaving.is_empty());
        !is_there && !self.remains.has(of.controller)
    }
}
