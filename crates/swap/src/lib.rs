//! The swap engine: the kernel's own swapping, with a delay on the swap device.
//!
//! ```text
//! keeper: zram, swapon, group ─► program in it ─► kernel swaps ─► request ─► delay ─► report
//! ```
//!
//! Gao et al. 2016, section 3.1, without their kernel module. It manages whatever the kernel can
//! swap: of statically linked programs, of all descendants, of shared memory. In return all of them
//! share one budget, the kernel chooses what leaves, and the delay is added to the time of the
//! kernel's own swap path. Of the arena engine it uses the link, the flags, the observer and the
//! record, and nothing that manages memory.

mod budget;
mod config;
mod error;
mod journal;
mod keeper;
mod leftover;
mod probe;
mod report;
mod supervisor;
mod tables;

pub use config::{SWAP_BUDGET_MIN, SwapConfig};
pub use error::{Obstacle, SwapError};
pub use keeper::keep;
pub use leftover::{Leftover, is_known, leftovers};
pub use probe::{page_cluster, probe};
pub use supervisor::SwapSupervisor;
