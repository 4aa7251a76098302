//! `process_madvise` on oneself: several ranges emptied by one call (Linux 6.13).
//!
//! To the kernel managed memory is shared, so it would only unmap the pages, and the next touch
//! would find the old contents. As with `madvise`, the contents go first.

use paging::regions::PAGE;
use sys::seccomp::Notification;

use super::RunError;
use super::arena::Arena;
use super::supervisor::Supervisor;
use sys::hint;

const EINVAL: i64 = 22;
/// As many ranges as the kernel takes at once (`UIO_MAXIOV`).
const RANGES_MAX: u64 = 1024;
const RANGE_BYTES: usize = 16;

impl Supervisor<'_> {
    /// Acts on `process_madvise`: empties the managed parts of ranges of the caller's own memory.
    pub(crate) fn process_madvise(
        &mut self,
        slot: usize,
        tgid: u32,
        call: &Notification,
    ) -> Result<(), RunError> {
        let [descriptor, vector, count, advice, flags, _] = call.args;
        let own = subject(call.tid, descriptor & 0xffff_ffff) == Some(tgid);
        let arena = self.people.arenas[slot].as_ref();
        let ranges = arena.and_then(|arena| ranges(arena, call.tid, vector, count));
        let ranges = ranges.filter(|_| own && flags == 0);
        let (Some(ranges), true) = (ranges, sys::process::may_advise_itself()) else {
            // The call is for another process, or the kernel refuses it.
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let mut done = 0;
        let mut managed = true;
        for (start, bytes) in ranges {
            let length = bytes.next_multiple_of(PAGE);
            let Some(arena) = self.people.arenas[slot].as_ref() else {
                return Ok(());
            };
            if !start.is_multiple_of(PAGE) {
                break;
            }
            let end = start.saturating_add(length);
            let pieces = arena.space.regions.pieces(start, end);
            let own = || pieces.iter().filter(|piece| !piece.traits.foreign);
            managed &= arena.space.regions.covers(start, end) && own().count() == pieces.len();
            if advice != hint::DONTNEED_LOCKED && arena.pins_any(start, length) {
                break;
            }
            for piece in own() {
                self.empty(slot, piece.start, piece.bytes());
            }
            done += bytes;
        }
        if !managed {
            // The kernel does the rest, and unmaps managed pages once more.
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        Ok(self
            .kernel
            .listener
            .answer(call.id, if done > 0 { done.cast_signed() } else { -EINVAL })?)
    }
}

// The process of a pidfd of thread `tid`; `None` if it is none.
fn subject(tid: u32, descriptor: u64) -> Option<u32> {
    let info = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{descriptor}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

fn ranges(arena: &Arena, tid: u32, vector: u64, count: u64) -> Option<Vec<(u64, u64)>> {
    let count = usize::try_from(count).ok().filter(|&count| count as u64 <= RANGES_MAX)?;
    let mut bytes = vec![0; count * RANGE_BYTES];
    arena.read(&mut bytes, vector, tid).ok()?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b));
    Some(bytes.chunks_exact(RANGE_BYTES).map(|r| (word(&r[..8]), word(&r[8..]))).collect())
}
