//! The layout of the tables that trap and supervisor share, as in `bpf/shared.h`.

use crate::lanes::LANE_WORDS;
use crate::link::{LINK_WORDS, PROFILE_ENTRIES};

/// Most processes that are managed at once.
pub const PROCS_MAX: usize = 4096;
/// Most tiers of far memory.
pub const TIERS_MAX: usize = 8;
/// Entries of the event log.
pub const EVENTS_MAX: usize = 1 << 16;
/// Memory below this address may be managed; above it the kernel places its own.
pub const ADDRESS_TOP: u64 = 0x7e80_0000_0000;
/// Unmanaged memory is sampled before so many bytes are unmapped in one piece; less may come and go
/// unseen between two samples.
pub const LOOK_FROM: u64 = 1 << 20;
/// Memory from this address on may be under management.
pub const ADDRESS_MIN: u64 = 0x1_0000;
/// Thread ids are below this.
pub(crate) const PIDS_MAX: usize = 1 << 22;

pub(crate) const CONTROL_BYTES: usize = 256;
pub(crate) const PROC_WORDS: usize = 8;
// Where the parts of `struct shared` begin, in words.
pub(crate) const PROCS_AT: usize = CONTROL_BYTES / 8;
pub(crate) const LANES_AT: usize = PROCS_AT + PROCS_MAX * PROC_WORDS;
pub(crate) const TAGS_AT: usize = LANES_AT + PROCS_MAX * TIERS_MAX * LANE_WORDS;
pub(crate) const ROOTS_AT: usize = TAGS_AT + EVENTS_MAX;
pub(crate) const SLOTS_AT: usize = ROOTS_AT + PROCS_MAX * ROOT_ENTRIES / 2;
pub(crate) const SHARED_WORDS: usize = SLOTS_AT + PIDS_MAX / 4;
pub(crate) const STOCK_HEAD_AT: usize = 10;
pub(crate) const STOCK_TAIL_AT: usize = 17;
pub(crate) const TIMING_WORDS: usize = 3;

// The tree of page states: see `page_table`.

/// Bytes of addresses that a leaf covers.
pub const SEGMENT: u64 = 1 << LOWER_SHIFT;
/// Entries of a node, words of a leaf.
pub(crate) const NODE_ENTRIES: usize = 512;
const _: () = assert!(paging::segments::PAGES as usize == NODE_ENTRIES);
pub(crate) const ROOT_ENTRIES: usize = 256;
pub(crate) const ROOT_SHIFT: u32 = 39;
pub(crate) const LOWER_SHIFT: u32 = 21;
pub(crate) const PAGE_SHIFT: u32 = 12;
pub(crate) const OWNER_SEGMENT_SHIFT: u32 = 16;
pub(crate) const OPEN: u32 = 0;
pub(crate) const CLOSED: u32 = 0xffff_fffe;
pub(crate) const CLAIMED: u32 = 0xffff_ffff;

/// Sizes that depend on the machine.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Nodes and leaves of the page-state tables, at most 2¹⁸.
    pub nodes: u32,
}

impl Sizes {
    /// Enough leaves for all memory of the machine, `bytes`, in segments half full, and nodes,
    /// leaves and rings for [`PROCS_MAX`] processes; 2¹⁸ at most.
    pub fn for_memory(bytes: u64) -> Self {
        let segments = (bytes >> LOWER_SHIFT).max(512) * 2;
        let nodes = (segments + 4 * PROCS_MAX as u64).min(1 << 18);
        Self { nodes: u32::try_from(nodes).unwrap_or(1 << 18) }
    }

    /// Entries of the stock: at least twice the nodes, so that one is not used again at once.
    pub const fn stock(self) -> u32 {
        self.nodes.next_power_of_two() * 2
    }
}

/// The name of each table in the BPF object, and its size in bytes.
pub(crate) fn layout(sizes: Sizes) -> [(&'static str, usize); 7] {
    let nodes = sizes.nodes as usize;
    [
        ("afar_shared", SHARED_WORDS * 8),
        ("afar_links", TIERS_MAX * LINK_WORDS * 8),
        ("afar_profile", TIERS_MAX * PROFILE_ENTRIES * 4),
        ("afar_timings", EVENTS_MAX * TIMING_WORDS * 8),
        ("afar_nodes", nodes * NODE_ENTRIES * 4),
        ("afar_stock", sizes.stock() as usize * 8),
        ("afar_owners", nodes * 8),
    ]
}
