//! Abort of a command of an I/O queue (Base 5.1.1): asked on the control thread, done where the
//! queue lives.
//!
//! What waits for memory, for its turn to be asked for data, or for what others write is ended.
//! What has been asked for data or is with a device is not.

use super::super::nvme_end::Role;
use super::super::site::{Abort, Site};
use super::{Connection, End};

impl Connection {
    /// Ends a command if this is its queue and nothing has begun; whether it has.
    pub(crate) fn abort(&mut self, abort: Abort, site: &mut Site<'_>) -> bool {
        match &mut self.end {
            End::Nvme(end) => end.abort(abort, &mut self.out, site),
            End::Iscsi(_) => false,
        }
    }

    /// A shard has looked for a command that is to be aborted, of this admin queue.
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
