//! Memory blades: stores of pages that are far.
//!
//! ```text
//! farmem ─► Blade ─► MemoryBlade, in this process
//!                ─► a disk behind a network (the `memory` application)
//!                ─► BladeArray ─► several of them: stripes, copies
//! ```
//!
//! A blade knows places and bytes. `paging::blade` knows which page has which place, and whether a
//! page that comes back is the one that was sent.

mod array;
mod blade;
mod memory;
mod together;

pub use array::{ArrayError, BladeArray};
pub use blade::{Answer, Blade, PAGE_BYTES, Page, Wanted};
pub use memory::MemoryBlade;
pub use paging::blade::Token;
pub use together::{Kept, Together};
