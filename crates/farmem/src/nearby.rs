//! Where a helper works: beside its program, or on the same processor.
//!
//! A page that is unmapped must leave the TLB of every processor that the program runs on. For
//! clean pages the kernel does that once for a whole command; for dirty ones once for each range
//! (`zap_pte_range`, before others may see the page), and where it is done from another processor
//! it takes an interrupt: in a virtual machine 8.5 µs where it arrives and 17 where it comes from.
//! From the program's own processor it takes none, but the program stands still meanwhile. So a
//! command with several dirty ranges is done on the processor that rang last for the program, and
//! any other command beside the program.

use super::arena::Arena;
use tables::Tables;

/// From so many interrupts on, a command is cheaper on the program's processor.
const INTERRUPTS_MANY: usize = 4;

/// Moves the helper of `arena` to where its next command, with `ranges` dirty ranges, is cheapest.
pub(super) fn place(arena: &mut Arena, tables: &Tables, ranges: usize) {
    let Some(processors) = arena.helper.processors else {
        return;
    };
    let wanted = match tables.proc(arena.slot).processor() {
        Some(number) if ranges >= INTERRUPTS_MANY => Some(number),
        _ => None,
    };
    if wanted == arena.helper.kept_on {
        return;
    }
    let chosen = wanted.map_or(Some(processors), |number| processors.only(number));
    // A helper that has ended cannot be moved.
    if chosen.is_some_and(|chosen| chosen.give(arena.helper.thread).is_ok()) {
        arena.helper.kept_on = wanted;
    }
}
