//! Far memory: `afar run`, `predict`, `ctl`, and the hidden `probe` and `keep`.
//!
//! ```text
//! flags ─► experiment ─► program, trap ─► calibrate ─► outputs ─► run under watch ─► summary
//! run --validate ─► native, real and emulated runs, as processes of their own
//! ctl ─► run_directory ─► control of a run          predict ─► a run under sampling ─► planner
//! ```

mod calibrate;
mod control;
mod ctl;
mod demand;
mod experiment;
mod far;
mod keep;
mod lack;
mod live;
mod mechanism;
mod predict;
mod probe;
mod program;
mod record;
mod remember;
mod run;
mod run_directory;
mod run_failed;
mod setting;
mod setup;
mod software;
mod summary;
mod trap;
mod tuning;
mod validate;
mod watch;

use farmem::TrapKind;

pub use ctl::flags::CtlFlags;
pub use ctl::{answers, ctl, state_of, states};
pub use keep::{KeepFlags, keep};
pub use lack::{BPF, ENGINE, Lack, Need, bpf_trap, sentence, userfaultfd_trap};
pub use predict::flags::PredictFlags;
pub use predict::predict;
pub use probe::flags::ProbeFlags;
pub use probe::probe;
pub use run::flags::RunFlags;
pub use run::run;
pub use run_directory::{Found, sockets};

/// The shortest fetch that a trap can do on this machine, in nanoseconds.
///
/// # Errors
/// A sentence, when it cannot be measured.
pub fn floor(trap: TrapKind) -> Result<u64, String> {
    calibrate::floor(trap).map_err(|error| sentence(&error))
}

/// The shortest fetch from a blade in afar's own memory, in nanoseconds.
///
/// # Errors
/// A sentence, when the userfaultfd trap does not work or cannot be measured.
pub fn far_floor() -> Result<u64, String> {
    calibrate::far_floor().map_err(|error| sentence(&error))
}
