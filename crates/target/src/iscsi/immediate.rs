//! Reading where the device answers at once, straight into what is sent.

use std::sync::Arc;

use scsi::iscsi::{BHS_BYTES, DIGEST_BYTES, ScsiCommand, Task, trailer};
use scsi::{Outcome, Plan};

use backend::{Failure, Work};

use super::super::counters::add;
use super::super::ledger::Answered;
use super::super::meter::Kind;
use super::super::site::Site;
use super::super::subsystem::Namespace;
use super::session::IscsiSession;
use super::work::{self, Act};

impl IscsiSession {
    // All of it in one PDU.
    pub(super) fn takes_whole(&self, command: &ScsiCommand, plan: &Plan) -> bool {
        let parameters = self.session.parameters();
        let most = parameters.peer_data_bytes.min(parameters.max_burst_bytes);
        let fits = plan.length <= u64::from(most.min(command.expected_bytes));
        fits && command.reads && !command.writes
    }

    // Where the device answers at once, straight into what is sent.
    pub(super) fn read_at_once(
        &mut self,
        task: Task,
        namespace: &Arc<Namespace>,
        plan: &Plan,
        out: &mut Vec<u8>,
        site: &mut Site<'_>,
    ) {
        let backend = &namespace.backend;
        let bytes = usize::try_from(plan.length).unwrap_or(0);
        let number = self.session.connection_of(task).unwrap_or(0);
        let digests = self.session.digests(number);
        let before = out.len();
        let header_bytes = BHS_BYTES + if digests.header { DIGEST_BYTES } else { 0 };
        // The header is written when it is known that the data is there.
        let from = before + header_bytes;
        let Act::Ask(request, _) = work::next(plan, 0, &mut [], &mut []) else { return };
        out.resize(from, 0);
        let start = backend.append(&request, out, site.now_ns);
        let result = match start.work {
            Work::Done(result) => backend.end(&request, result, site.now_ns),
            Work::Kernel(_) => Err(Failure::Medium),
        };
        let has_failed = result.is_err();
        match result {
            Ok(()) => {
                let mut header = Vec::with_capacity(header_bytes);
                let length = u32::try_from(bytes).unwrap_or(0);
                let about = Some(plan.about_bytes);
                self.session.data_header(task, length, about, &mut header);
                out[before..from].copy_from_slice(&header);
                let mut end = Vec::new();
                trailer(&out[from..], digests, &mut end);
                out.extend_from_slice(&end);
            }
            Err(failure) => {
                out.truncate(before);
                let sense = work::failed(failure, request.operation);
                self.answer(task, &Outcome::check(sense), false, out);
            }
        }
        let (taken_ns, was_begun) = (site.now_ns, false);
        let (namespace, kind) = (Arc::clone(namespace), Kind::Read);
        if has_failed {
            add(&site.books.counters.failures, 1);
        }
        let bytes = u32::try_from(plan.length).unwrap_or(0);
        site.answered(Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun });
    }
}
