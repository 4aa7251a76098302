//! What a trap in the kernel and its supervisor share: words in memory that both map.
//!
//! ```text
//! shared: log of faults, processes, threads ── page_table: a word for each page
//!   └─ lanes: free frames of a budget         link: how a transfer's time follows from its bytes
//! asks: pages that faults spin for
//! ```
//!
//! Each table is laid out twice: here, and in a C header of the BPF programs (`farmem/bpf`). A test
//! beside each compares the two. There are no locks: every word is atomic, and says who writes it.
//! A trap without a kernel side has the same tables, in ordinary memory.

mod asks;
mod lanes;
mod layout;
mod link;
mod page_table;
mod shared;

pub use asks::{Ask, Asks};
pub use lanes::{Lane, Lanes};
pub use layout::{
    ADDRESS_MIN, ADDRESS_TOP, EVENTS_MAX, LOOK_FROM, PROCS_MAX, SEGMENT, Sizes, TIERS_MAX,
};
pub use link::{LINK_WORDS, LinkTable, PROFILE_ENTRIES, delays};
pub use page_table::{NoWord, PageTable, index_in_leaf};
pub use shared::{FaultEvent, FaultKind, Tables, enrol_address};
