//! Abort of a command of an I/O queue (Base 5.1.1): it arrives on the control thread and is done on
//! the shard of the queue.
//!
//! A command is ended while it waits for memory, for its R2T, or for others' writes; not once its
//! data was requested or a device has it.

use super::super::nvme_end::Role;
use super::super::site::{Abort, Site};
use super::{Connection, End};

impl Connection {
    /// Ends the command if this is its queue and it still waits. Returns whether it was ended.
    pub(crate) fn abort(&mut self, abort: Abort, site: &mut Site<'_>) -> bool {
        match &mut self.end {
            End::Nvme(end) => end.abort(abort, &mut self.out, site),
            End::Iscsi(_) => false,
        }
    }

    /// Records a shard's report on an Abort of this admin queue: `was` says whether it ended the
    /// command.
    pub(crate) fn aborted(&mut self, abort: Abort, was: bool) {
        let last = self.last_word();
        if let End::Nvme(end) = &mut self.end
            && let Role::Admin(admin) = &mut end.role
            && admin.controller == abort.controller
        {
            let ended = admin.aborted(abort.serial, was);
            end.answer_abort(ended, &mut self.out);
        }
        self.out.truncate(last);
    }
}
