//! Reading over NVMe/TCP where the device answers at once, straight into what is sent.

use std::sync::Arc;

use nvme::{Queue, Slot, Status, data_digest};

use backend::{Failure, Work};

use super::counters::add;
use super::ledger::Answered;
use super::plan::{Plan, counted, failed};
use super::site::Site;
use super::subsystem::Namespace;

/// What can be written to while a command is done.
pub(crate) struct Wire<'a> {
    pub(super) queue: &'a mut Queue,
    pub(super) out: &'a mut Vec<u8>,
}

/// Reads where the device answers at once.
pub(super) fn read_at_once(
    slot: Slot,
    namespace: Arc<Namespace>,
    plan: &Plan,
    wire: &mut Wire<'_>,
    site: &mut Site<'_>,
) {
    let backend = &namespace.backend;
    let before = wire.out.len();
    wire.queue.data_header(slot, 0, plan.bytes, true, wire.out);
    let from = wire.out.len();
    let request = plan.request(plan.first);
    let start = backend.append(&request, wire.out, site.now_ns);
    let result = match start.work {
        Work::Done(result) => result,
        Work::Kernel(_) => Err(Failure::Medium),
    };
    let result = backend.end(&request, result, site.now_ns);
    let has_failed = result.is_err();
    match result {
        Ok(()) => {
            if wire.queue.digests().data {
                let digest = data_digest(&wire.out[from..]);
                wire.out.extend_from_slice(&digest);
            }
            wire.queue.complete(slot, Status::SUCCESS, 0, wire.out);
        }
        Err(failure) => {
            wire.out.truncate(before);
            add(&site.books.counters.failures, 1);
            wire.queue.complete(slot, failed(failure, request.operation), 0, wire.out);
        }
    }
    let (kind, bytes) = counted(plan);
    let (taken_ns, was_begun) = (site.now_ns, false);
    site.answered(Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun });
}
