//! What a forked child unmaps and maps before its first instruction: its own copy of its parent's
//! memory, in place of its parent's.

use std::time::Duration;

use super::arena::{Arena, maps};
use super::protocol::command;
use super::regions::Regions;

const MAP_SHARED: u64 = 1;
const MAP_FIXED: u64 = 0x10;
const SEND_RETRIES: u32 = 5000;

/// The managed parts of mappings.
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

/// Has the child of a fork unmap and map what is its own, before it goes on.
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

// The child reads while we send, so a full queue empties soon.
fn send_patiently(arena: &Arena, operation: u64, operands: &[u64]) -> Result<(), sys::Error> {
    const FULL: i32 = 11;
    for _ in 0..SEND_RETRIES {
        match arena.send(operation, 0, operands) {
            Err(error) if error.errno() == Some(FULL) => {
                arena.socket.wait_for_room(Duration::from_millis(1));
            }
            done => return done,
        }
    }
    arena.send(operation, 0, operands)
}
