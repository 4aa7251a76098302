//! Reads of devices that answer at once, straight into the send buffer.

use std::sync::Arc;

use scsi::Plan;
use scsi::iscsi::{BHS_BYTES, DIGEST_BYTES, ScsiCommand, Task, trailer};

use super::super::immediate::append;
use super::super::site::Site;
use super::super::subsystem::Namespace;
use super::super::work::Finding;
use super::session::IscsiSession;
use super::work;

impl IscsiSession {
    // Whether all data of a read fits into one PDU.
    pub(super) fn takes_whole(&self, command: &ScsiCommand, plan: &Plan) -> bool {
        let parameters = self.session.parameters();
        let most = parameters.peer_data_bytes.min(parameters.max_burst_bytes);
        let fits = plan.length <= u64::from(most.min(command.expected_bytes));
        fits && command.reads && !command.writes
    }

    // Executes a read on a device that answers at once.
    pub(super) fn read_at_once(
        &mut self,
        task: Task,
        namespace: &Arc<Namespace>,
        plan: &Plan,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) {
        let bytes = usize::try_from(plan.length).unwrap_or(0);
        let number = self.session.connection_of(task).unwrap_or(0);
        let digests = self.session.digests(number);
        let before = out.len();
        let header_bytes = BHS_BYTES + if digests.header { DIGEST_BYTES } else { 0 };
        // The header is written once the read has succeeded.
        let from = before + header_bytes;
        out.resize(from, 0);
        let finding = append(namespace, &work::work_of(plan), out, site);
        if finding == Finding::Done {
            let mut header = Vec::with_capacity(header_bytes);
            let length = u32::try_from(bytes).unwrap_or(0);
            let about = Some(plan.about_bytes);
            self.session.data_header(task, length, about, &mut header);
            out[before..from].copy_from_slice(&header);
            let mut end = Vec::new();
            trailer(&out[from..], digests, &mut end);
            out.extend_from_slice(&end);
        } else {
            out.truncate(before);
            self.answer(task, &work::outcome_of(finding, 0), false, out);
        }
    }
}
