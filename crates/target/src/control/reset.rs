//! Cross-controller reset: a host has one of its controllers end another one.

use nvme::{Instance, Status};

use super::Control;

impl Control {
    /// How many resets of other controllers each controller takes at a time.
    pub(crate) const fn resets_max(&self) -> u8 {
        self.limits.resets
    }

    /// Marks controller `of` as ending, at the request of the host of controller `own`. Returns the
    /// admin connection to close (`None` if `of` is gone or ending already) and the keep-alive time
    /// of `own` in milliseconds.
    ///
    /// # Errors
    /// Invalid Controller, if `of` belongs to another host or its number is one that another
    /// target assigns.
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

    /// Whether an instance of a controller has ended with all its queues.
    pub(crate) fn is_at_rest(&self, of: Instance) -> bool {
        let there = self.associations.get(&of.controller);
        let is_there =
            there.is_some_and(|one| one.controller.instance() == of || !one.leaving.is_empty());
        !is_there && !self.remains.has(of.controller)
    }
}
