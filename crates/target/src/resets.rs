//! Cross-Controller Reset (TP8028, Base 2.3 5.4.3): a host has one controller end another one.
//!
//! A host that has lost its path to a controller does not know which commands are still under way.
//! Over another path it names the controller, which ends as if its connection were gone; the
//! command is answered when nothing of the controller is under way any more. A reset that takes
//! longer than [`PATIENCE_NS`] is answered as in progress, and the host sends the command again.

use nvme::{Instance, Slot, Status};

use super::control::Control;

/// How long a command waits for a controller to end, at most a quarter of the keep-alive time: the
/// host may send no keep-alive to its own controller meanwhile.
const PATIENCE_NS: u64 = 500_000_000;

/// Commands of one admin queue that wait for other controllers.
#[derive(Debug, Default)]
pub(crate) struct Resets(Vec<Reset>);

#[derive(Debug)]
struct Reset {
    slot: Slot,
    of: Instance,
    until_ns: u64,
}

impl Resets {
    /// Begins a reset of controller `of`. Returns the admin connection to close, if there is one.
    ///
    /// # Errors
    /// The status with which the command ends.
    pub(crate) fn begin(
        &mut self,
        slot: Slot,
        (own, of): (u16, Instance),
        control: &mut Control,
        now_ns: u64,
    ) -> Result<Option<u32>, Status> {
        if self.0.len() >= usize::from(control.resets_max()) {
            return Err(Status::RESET_LIMIT);
        }
        let (connection, keep_alive_ms) = control.begin_reset(own, of)?;
        let patience_ns = match keep_alive_ms {
            0 => PATIENCE_NS,
            ms => PATIENCE_NS.min(u64::from(ms) * 1_000_000 / 4),
        };
        self.0.push(Reset { slot, of, until_ns: now_ns + patience_ns });
        Ok(connection)
    }

    /// Takes the next reset to answer, with its status: finished, or in progress after its time.
    pub(crate) fn next(&mut self, control: &Control, now_ns: u64) -> Option<(Slot, Status)> {
        let over = |one: &Reset| match control.is_at_rest(one.of) {
            true => Some(Status::SUCCESS),
            false => (one.until_ns <= now_ns).then_some(Status::RESET_IN_PROGRESS),
        };
        let (place, status) =
            self.0.iter().enumerate().find_map(|(place, one)| Some((place, over(one)?)))?;
        Some((self.0.swap_remove(place).slot, status))
    }

    /// When the first reset has waited long enough; `None` if none waits.
    pub(crate) fn until_ns(&self) -> Option<u64> {
        self.0.iter().map(|one| one.until_ns).min()
    }

    /// Drops all resets unanswered, and returns their slots.
    pub(crate) fn forget(&mut self) -> impl Iterator<Item = Slot> {
        self.0.drain(..).map(|one| one.slot)
    }
}
