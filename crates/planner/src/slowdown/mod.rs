//! The slowdown of a program with part of its memory behind a network.
//!
//! ```text
//! what it fetches, alone ─► Demand ─┐
//! round trip, bandwidth ─► Network ─┴► two terms, waiting for the link ─► Estimate
//! slowdowns that were measured ─► Fit: the two terms ─► another network's, with an interval
//!                              └► SwapLine, the control: bandwidth of the swap device alone
//! ```
//!
//! The two terms are time waited for round trips and time waited for bytes: batches · rtt + pages ·
//! P/B (Gao et al. 2016, whose emulator waits once for each batch and for every page).

mod fit;
mod model;

pub use fit::{Fit, FitError, Measured, SwapLine};
pub use model::{Demand, Estimate, Network};
