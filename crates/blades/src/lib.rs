//! Memory blades: what keeps pages that are far for real.
//!
//! ```text
//! farmem ─► Blade ─► MemoryBlade, in this process
//!                ─► a disk behind a network (the `memory` application)
//!                ─► BladeArray ─► several of them: stripes, copies
//! ```
//!
//! A blade knows places and bytes. Which page has which place, and whether what comes back is what
//! was sent, is `paging::blade`'s to know.

mod array;
mod blade;
mod memory;
mod together;

pub use array::{ArrayError, BladeArray};
pub use blade::{Answer, Blade, PAGE_BYTES, Wanted};
pub use memory::MemoryBlade;
pub use paging::blade::Token;
pub use together::{Kept, Together};
