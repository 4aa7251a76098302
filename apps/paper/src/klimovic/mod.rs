//! Klimovic et al., "Flash Storage Disaggregation", EuroSys 2016.
//!
//! Their target has six processors and a network card, and each tenant is a machine of its own;
//! here target and tenants share one machine, and a pair of virtual interfaces is the wire.

mod cable;
pub(super) mod fig3;
mod paper;
mod rungs;
pub(super) mod sharing;
mod tenants;
