//! The supervisor's steps: it answers calls from the stock, and fills it up.

use sys::seccomp::Notification;

use super::{CALLS_MIN, LOW_BYTES, PIECE_MAX, STOCK_BYTES, into_stock};
use crate::RunError;
use crate::arena::Space;
use crate::pending::Pending;
use crate::request::MapRequest;
use crate::supervisor::Supervisor;

const READ_WRITE: u64 = 3;
const MAP_FIXED: u64 = 0x10;
const MAP_POPULATE: u64 = 0x8000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

impl Supervisor<'_> {
    /// Answers an `mmap` from the stock. Returns whether it could.
    ///
    /// # Errors
    /// When the kernel refuses the answer.
    pub(crate) fn answers_from_stock(
        &mut self,
        slot: usize,
        call: &Notification,
        bytes: u64,
    ) -> Result<bool, RunError> {
        let [address, _, protection, flags, ..] = call.args;
        let Some(arena) = self.people.arenas[slot].as_mut() else { return Ok(false) };
        let is_plain = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE) == 0;
        let is_for_it = address == 0
            && bytes <= PIECE_MAX
            && protection == READ_WRITE
            && is_plain
            && !arena.space.lock_all;
        if !is_for_it {
            return Ok(false);
        }
        let Space { regions, stock, .. } = &mut arena.space;
        let start = stock.take(regions, bytes);
        stock.calls = stock.calls.saturating_add(1);
        self.restock(slot);
        let Some(start) = start else { return Ok(false) };
        if self.next_used(slot, start, start + bytes).is_some() {
            // The program has written to memory that it was not given.
            self.empty(slot, start, bytes);
        }
        self.kernel.listener.answer(call.id, start.cast_signed())?;
        Ok(true)
    }

    // Has the helper map more if the stock is low.
    fn restock(&mut self, slot: usize) {
        let Some(arena) = self.people.arenas[slot].as_mut() else { return };
        let stock = &mut arena.space.stock;
        let is_low = stock.calls >= CALLS_MIN && stock.bytes() < LOW_BYTES;
        if !is_low || stock.is_coming || stock.is_refused {
            return;
        }
        // Stays set if the attempt fails, so that it is not repeated.
        stock.is_refused = true;
        if sys::process::limits_addresses(arena.tgid) {
            return;
        }
        let Some(start) = arena.space.regions.place(STOCK_BYTES) else { return };
        arena.space.regions.mark(start, start + STOCK_BYTES, into_stock);
        let request =
            MapRequest { protection: READ_WRITE, fixed: false, only_there: true, populates: false };
        let has_room = arena.open(&self.kernel.tables, start, STOCK_BYTES) == 0;
        let pending = Pending::Stock { start };
        if !has_room || arena.map(start, STOCK_BYTES, request, pending).is_err() {
            arena.call_off(&self.kernel.tables, start, STOCK_BYTES);
            return;
        }
        (arena.space.stock.is_coming, arena.space.stock.is_refused) = (true, false);
    }

    /// Takes memory that the helper has mapped into stock; `result` is negative if it could not.
    pub(crate) fn stocked(&mut self, slot: usize, start: u64, result: i64) {
        let Some(arena) = self.people.arenas[slot].as_mut() else { return };
        arena.space.stock.is_coming = false;
        if result < 0 {
            arena.space.stock.is_refused = true;
            arena.call_off(&self.kernel.tables, start, STOCK_BYTES);
            return;
        }
        arena.space.stock.pieces.push((start, start + STOCK_BYTES));
        self.watch(slot, start, STOCK_BYTES);
    }
}
