//! Memory whose frames the kernel keeps: buffers that are registered with a ring of io_uring, and
//! rings of buffers. The kernel reads and writes them without looking their pages up again, so they
//! must not leave for a blade. They are locked, as by `mlock`, until they are freed.

use paging::regions::PAGE;
use sys::seccomp::Notification;

use crate::RunError;
use crate::arena::Arena;
use crate::supervisor::Supervisor;

/// Operations of io_uring_register(2), without the flag that says how the ring is named.
const OPERATION: u64 = 0x7fff_ffff;
const BUFFERS: u64 = 0;
const BUFFERS2: u64 = 15;
const BUFFERS_UPDATE: u64 = 16;
const BUFFER_RING: u64 = 22;
/// Bytes of the largest structure that such an operation reads; of an entry of a list of buffers.
const OPERAND_BYTES: usize = 40;
const VECTOR_BYTES: usize = 16;
/// Bytes of an entry of a ring of buffers.
const ENTRY_BYTES: u64 = 16;
/// More buffers than the kernel takes at a time.
const BUFFERS_MAX: usize = 1 << 14;

impl Supervisor<'_> {
    /// Acts on `io_uring_register`: brings and locks the memory whose frames the kernel will keep.
    pub(crate) fn keeps_frames(
        &mut self,
        slot: usize,
        call: &Notification,
    ) -> Result<(), RunError> {
        if self.is_far() {
            let Some(mut ranges) = self.kept(slot, call) else {
                self.forking.postponed.push(*call);
                return Ok(());
            };
            // The program may name anything: the kernel refuses what is not memory of its own.
            let arena = self.people.arenas[slot].as_ref();
            ranges.retain(|&(start, bytes)| {
                let end = start.saturating_add(bytes);
                let covers = |arena: &Arena| arena.space.regions.covers(start / PAGE * PAGE, end);
                bytes > 0 && arena.is_some_and(covers)
            });
            let all_here = ranges.iter().map(|&(start, bytes)| self.is_here(slot, start, bytes));
            if !all_here.fold(true, |all, one| all & one) {
                self.forking.postponed.push(*call);
                return Ok(());
            }
            if let Some(arena) = self.people.arenas[slot].as_mut() {
                ranges.into_iter().for_each(|(start, bytes)| arena.pin(start, bytes));
            }
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    // The ranges (start, bytes) that a call registers, which the kernel may refuse. `None` if the
    // memory that lists them is still on its way.
    fn kept(&mut self, slot: usize, call: &Notification) -> Option<Vec<(u64, u64)>> {
        let [_, operation, operand, count, ..] = call.args;
        let operation = operation & OPERATION;
        if operation == BUFFERS {
            return self.buffers(slot, call.tid, operand, count);
        }
        if ![BUFFERS2, BUFFERS_UPDATE, BUFFER_RING].contains(&operation) {
            return Some(Vec::new());
        }
        let bytes = self.operands(slot, call.tid, operand, OPERAND_BYTES)?;
        let word = |at: usize| bytes.get(at..at + 8).map_or(0, word);
        let half = |at: usize| word(at) & 0xffff_ffff;
        match operation {
            // Number, flags, reserved, list.
            BUFFERS2 => self.buffers(slot, call.tid, word(16), half(0)),
            // First, reserved, list, tags, number.
            BUFFERS_UPDATE => self.buffers(slot, call.tid, word(8), half(24)),
            _ => Some(vec![(word(0), half(8) * ENTRY_BYTES)]),
        }
    }

    // The buffers that `count` `iovec`s at `list` describe; `None` as for `kept`.
    fn buffers(&mut self, slot: usize, tid: u32, list: u64, count: u64) -> Option<Vec<(u64, u64)>> {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(BUFFERS_MAX);
        let bytes = self.operands(slot, tid, list, count * VECTOR_BYTES)?;
        let all = bytes.chunks_exact(VECTOR_BYTES);
        Some(all.map(|one| (word(&one[..8]), word(&one[8..]))).collect())
    }

    // The program's memory at an address: empty if it is not mapped, `None` if it is on its way.
    fn operands(&mut self, slot: usize, tid: u32, address: u64, bytes: usize) -> Option<Vec<u8>> {
        if !self.is_here(slot, address, bytes as u64) {
            return None;
        }
        let mut read = vec![0; bytes];
        let arena = self.people.arenas[slot].as_ref();
        let is_read = arena.is_some_and(|arena| arena.read(&mut read, address, tid).is_ok());
        Some(if is_read { read } else { Vec::new() })
    }
}

// The little-endian number in `bytes`.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
