//! Gives a forked child its own copy of the memory in place of its parent's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use paging::regions::Regions;
use paging::word::{State, Word};

use super::arena::Arena;
use super::protocol::command;
use super::supervisor::Supervisor;
use sys::maps;
use tables::SEGMENT;
use tables::index_in_leaf;

const MAP_SHARED: u64 = 1;
const MAP_FIXED: u64 = 0x10;
const SEND_RETRIES: u32 = 5000;

impl Supervisor<'_> {
    /// Copies the parent's state words to its child: local pages are unmapped but still local,
    /// pages on probation stay so. Returns how many have no room in the table.
    pub(crate) fn copy_words(&self, parent: &Arena, child: &Arena) -> u64 {
        let pages = &self.kernel.tables.pages;
        let managed = child.space.regions.all().into_iter().filter(|piece| !piece.traits.foreign);
        let mut unmanaged = 0;
        for piece in managed {
            unmanaged += pages.open(child.slot, piece.start, piece.end);
            // Looking up each word by itself would take most of the time.
            let mut leaf: (u64, &[AtomicU32]) = (u64::MAX, &[]);
            pages.each_word(parent.slot, piece.start, piece.end, |address, cell| {
                let word = Word(cell.load(Ordering::Acquire));
                let own = match word.state() {
                    State::Absent if word.tier() == 0 => return,
                    State::Foreign => return,
                    State::Absent | State::Remote => word.with_state(word.state()),
                    // Its contents have not arrived, and may never.
                    State::Fetching if self.is_far() => word.with_state(State::Remote),
                    State::Probation => word.unmapped(),
                    State::Local | State::Prefetched | State::Fetching => {
                        word.with_state(State::Local)
                    }
                };
                if leaf.0 != address / SEGMENT {
                    let words = pages.make_word(child.slot, address).ok();
                    let words = words.and_then(|_word| pages.leaf(child.slot, address));
                    leaf = (address / SEGMENT, words.unwrap_or_default());
                }
                match leaf.1.get(index_in_leaf(address)) {
                    Some(cell) => cell.store(own.0, Ordering::Release),
                    None => unmanaged += 1,
                }
            });
        }
        unmanaged
    }
}

/// Cuts mappings to their managed parts.
pub(crate) fn clip(mappings: &[maps::Mapping], regions: &Regions) -> Vec<maps::Mapping> {
    let mut clipped = Vec::new();
    for mapping in mappings {
        let pieces = regions.pieces(mapping.start, mapping.end);
        clipped.extend(
            pieces.iter().filter(|piece| !piece.traits.foreign).map(|piece| maps::Mapping {
                start: piece.start,
                end: piece.end,
                ..*mapping
            }),
        );
    }
    clipped
}

/// Sends a forked child the ranges to unmap and to map before it goes on.
///
/// # Errors
/// When the child is gone.
pub(crate) fn send_mappings(
    arena: &Arena,
    absent: &[(u64, u64)],
    mappings: &[maps::Mapping],
) -> Result<(), sys::Error> {
    for &(start, bytes) in absent {
        send_patiently(arena, command::UNMAP, &[start, bytes])?;
    }
    for mapping in mappings {
        let bytes = mapping.end - mapping.start;
        let operands = [mapping.start, bytes, mapping.protection, MAP_SHARED | MAP_FIXED];
        send_patiently(arena, command::MAP, &operands)?;
    }
    send_patiently(arena, command::DONE, &[])
}

// Sends a command, and waits while the queue is full: the child reads meanwhile.
fn send_patiently(arena: &Arena, operation: u64, operands: &[u64]) -> Result<(), sys::Error> {
    const FULL: i32 = 11;
    for _ in 0..SEND_RETRIES {
        match arena.send(operation, 0, operands) {
            Err(error) if error.errno() == Some(FULL) => {
                arena.helper.socket.wait_for_room(Duration::from_millis(1));
            }
            done => return done,
        }
    }
    arena.send(operation, 0, operands)
}
