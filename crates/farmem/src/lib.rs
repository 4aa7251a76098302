//! Far memory for an unmodified program.
//!
//! ```text
//! fault ─► residency ─► policy ─► link ─► resolve
//! ```
//!
//! All of that is pure: it reads no clock, performs no I/O and needs no privileges, so a trace runs
//! through the same code as a program does. Only [`runtime`] knows the kernel.

pub mod page;

pub mod policy;
pub mod residency;

pub mod prefetch;

mod kind;

pub mod engine;
pub mod reuse;
pub mod trace;

pub mod runtime;

pub use engine::{Action, Engine, EngineConfig, Event};
pub use kind::{EngineKind, ParseEngineError};
pub use page::PageIndex;
pub use policy::{Policy, PolicyKind};
pub use prefetch::{Prefetch, Prefetcher};
pub use residency::{Admission, PageState, Residency, ResidencyConfig, Victim};
