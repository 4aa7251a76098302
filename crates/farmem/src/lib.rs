//! Far memory for an unmodified program.
//!
//! ```text
//! fault ─► residency ─► policy ─► link ─► resolve
//! ```
//!
//! The engine is pure: it reads no clock, performs no I/O and needs no privileges, so a trace
//! runs through the same code as a program does.

pub mod page;

pub mod policy;
pub mod residency;

pub mod prefetch;

pub mod engine;
pub mod trace;

pub use engine::{Action, Engine, EngineConfig, Event};
pub mod runtime;

pub use page::PageIndex;
pub use policy::{Policy, PolicyKind};
pub use prefetch::{Prefetch, Prefetcher};
pub use residency::{Admission, PageState, Residency, ResidencyConfig, Victim};
