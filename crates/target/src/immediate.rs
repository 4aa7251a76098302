//! Reads of devices that answer at once, straight into the send buffer.

use std::sync::Arc;

use nvme::{Queue, Slot, Status, data_digest};

use backend::{Failure, Operation, Work as Done};

use super::counters::add;
use super::ledger::Answered;
use super::plan::status_of;
use super::site::Site;
use super::subsystem::Namespace;
use super::work::{Finding, Work};

/// The queue and the send buffer that a command writes to.
pub(crate) struct Wire<'a> {
    pub(super) queue: &'a mut Queue,
    pub(super) out: &'a mut Vec<u8>,
}

/// Reads from the device into `out` and counts the command. Returns the outcome; on a failure
/// nothing is appended.
pub(super) fn append(
    namespace: &Arc<Namespace>,
    work: &Work,
    out: &mut Vec<u8>,
    site: &mut Site<'_>,
) -> Finding {
    let before = out.len();
    let request = work.request(Operation::Read);
    let backend = &namespace.backend;
    let start = backend.append(&request, out, site.now_ns);
    let result = match start.work {
        Done::Done(result) => result,
        Done::Kernel(_) => Err(Failure::Medium),
    };
    let result = backend.end(&request, result, site.now_ns);
    let has_failed = result.is_err();
    if has_failed {
        out.truncate(before);
        add(&site.books.counters.failures, 1);
    }
    let (kind, bytes) = work.counted();
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let (namespace, taken_ns, was_begun) = (Arc::clone(namespace), site.now_ns, false);
    site.answered(Answered { namespace, kind, bytes, has_failed, taken_ns, was_begun });
    result.map_or_else(|failure| Finding::Failed(failure, request.operation), |()| Finding::Done)
}

/// Executes an NVMe/TCP Read on a device that answers at once.
pub(super) fn read_at_once(
    slot: Slot,
    namespace: &Arc<Namespace>,
    work: &Work,
    wire: &mut Wire<'_>,
    site: &mut Site<'_>,
) {
    let before = wire.out.len();
    let bytes = u32::try_from(work.length).unwrap_or(u32::MAX);
    wire.queue.data_header(slot, 0, bytes, true, wire.out);
    let from = wire.out.len();
    let finding = append(namespace, work, wire.out, site);
    if finding == Finding::Done {
        if wire.queue.digests().data {
            let digest = data_digest(&wire.out[from..]);
            wire.out.extend_from_slice(&digest);
        }
        wire.queue.complete(slot, Status::SUCCESS, 0, wire.out);
    } else {
        wire.out.truncate(before);
        wire.queue.complete(slot, status_of(finding), 0, wire.out);
    }
}
