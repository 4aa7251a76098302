//! Backends, which store the bytes of a namespace, and the execution of requests on them.
//!
//! ```text
//! Request ─► Backend::start ─┬─► Work::Done ────────────────────────────┐
//!                            └─► Work::Kernel ─► (Jobs asks the kernel) ─┴─► Backend::end
//! ```
//!
//! A backend does not wait: it returns the work left for a request (none, or a system call) and
//! the earliest time of its end, and [`Jobs`] executes that on the ring of its thread. So a backend
//! around another only changes what the inner one returns, and a request to a device in memory is
//! answered within the wake-up that brought it. [`pool`] is the memory of requests, [`Idle`] how a
//! thread waits for them.

pub mod pool;

mod device;
mod idle;
mod jobs;
pub mod kinds;
mod latched;
mod lease;
mod named;
mod open_error;
mod uri;

pub use sys::disk::{Claim, Opening};

pub use device::{Action, Backend, Call, Failure, Geometry, Operation, Request, Start, Work};
pub use idle::Idle;
pub use jobs::{Ended, Job, JobTimes, Jobs};
pub use kinds::fault::{FaultBackend, FaultRules, FaultRulesError};
pub use kinds::file::FileBackend;
pub use kinds::lease::{LeaseBackend, ViewBackend};
pub use kinds::memory::MemoryBackend;
pub use kinds::model::{ModelBackend, ModelConfig};
pub use kinds::null::NullBackend;
pub use kinds::trace::TraceBackend;
pub use kinds::volatile::VolatileBackend;
pub use latched::LatchedBackend;
pub use lease::Lease;
pub use named::BackendUri;
pub use open_error::OpenError;
pub use uri::UriError;
