//! Buragohain et al., "DiME: A Performance Emulator for Disaggregated Memory Architectures", APSys
//! 2017.
//!
//! Their latency is that of one way; a fault takes twice that, and its page's transfer. Each fault
//! waits by itself (`--link per-fault`).

pub(super) mod fig3;
pub(super) mod fig4;
pub(super) mod fig5;
mod paper;
mod servers;
pub(super) mod table1;
