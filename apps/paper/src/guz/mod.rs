//! Guz et al., "NVMe-over-Fabrics Performance Characterization and the Path to Low-Overhead Flash
//! Disaggregation", SYSTOR 2017.
//!
//! Their network is RDMA over 100 Gb/s Ethernet between machines with dozens of processors each;
//! ours is TCP over the loopback of one machine, on which host and target share the processors.

mod bars;
pub(super) mod fig2;
pub(super) mod fig3;
pub(super) mod fig5;
pub(super) mod fig6;
pub(super) mod fig7;
mod fig7_picture;
pub(super) mod fig8;
mod ordering;
mod paper;
mod stages;
