//! What holds the bytes of a namespace, and what is done for whoever reads and writes them.
//!
//! ```text
//! Request ─► Backend::start ─┬─► Work::Done ────────────────────────────┐
//!                            └─► Work::Kernel ─► (Jobs asks the kernel) ─┴─► Backend::end
//! ```
//!
//! A backend does not wait: it says what is to be done, and [`Jobs`] does it. So one that stands
//! around another only changes what that one says. [`pool`] is the memory of requests, [`Idle`] how
//! a thread waits for them.

pub mod pool;

mod device;
mod fault;
mod file;
mod idle;
mod jobs;
mod memory;
mod model;
mod null;
mod trace;
mod uri;

pub use sys::disk::{Claim, Opening};

pub use device::{Action, Backend, Call, Failure, Geometry, Operation, Request, Start, Work};
pub use fault::{FaultBackend, FaultRules, FaultRulesError};
pub use file::{FileBackend, OpenError};
pub use idle::Idle;
pub use jobs::{Ended, Job, JobTimes, Jobs};
pub use memory::MemoryBackend;
pub use model::{ModelBackend, ModelConfig};
pub use null::NullBackend;

pub use trace::TraceBackend;
pub use uri::{BackendUri, UriError};
