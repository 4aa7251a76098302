//! Which pages are local: residency, policies, prefetching, and miss curves.
//!
//! ```text
//! fault ─► residency ─► policy ─► link ─► resolve
//! ```
//!
//! `segments` numbers the pages of a process, `members` sums up the processes of a budget, `turns`
//! says which of them gives up the next page, `margin` how many frames to keep free, `todo` what is
//! still to be copied for a child, `blade` which pages are at which place of a blade, `leavers`
//! which of those on their way there give their frames up next, `order` in which order they were
//! fetched, `patience` how long to poll for faults on them; `word` is the state of a page, which
//! the kernel side has, too.
//!
//! All of that is pure: it reads no clock, performs no I/O and needs no privileges, so a trace runs
//! through the same code as a program does. What knows the kernel is crate `farmem`.

pub mod blade;
pub mod common;
pub mod local;
pub mod page;

pub mod policy;
pub mod probation;
pub mod residency;

pub mod prefetch;
pub mod regions;

pub mod margin;
pub mod members;
pub mod segments;
pub mod todo;
pub mod turns;
pub mod word;

pub mod frames;
pub mod leavers;
pub mod order;
pub mod outgoing;
pub mod patience;
pub mod print;
pub mod reuse;
pub mod write_back;

pub use order::FetchOrder;
pub use page::PageIndex;
pub use policy::{Policy, PolicyKind};
pub use prefetch::{Prefetch, Prefetcher};
pub use residency::{Admission, PageState, Residency, ResidencyConfig, Victim};
