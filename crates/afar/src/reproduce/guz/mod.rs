//! Guz et al., "NVMe-over-Fabrics Performance Characterization and the Path to Low-Overhead Flash
//! Disaggregation", SYSTOR 2017.
//!
//! Their network is RDMA over 100 Gb/s Ethernet between machines with dozens of processors each;
//! ours is TCP over the loopback of one machine, on which host and target share the processors.

pub(super) mod fig2;
pub(super) mod fig5;
pub(super) mod fig6;
pub(super) mod fig7;
mod fig7_picture;
mod paper;
mod stages;

use chart::{Anchor, Svg};

/// The key of a picture: names in their colours, from left to right.
fn key(svg: &mut Svg, at: (f64, f64), names: &[(&str, &str)]) {
    let mut right = at.0;
    for (name, colour) in names {
        svg.bar((right, at.1 - 9.0), (right + 10.0, at.1 + 1.0), colour);
        svg.text((right + 15.0, at.1), name, Anchor::Start);
        let width = u32::try_from(name.chars().count()).unwrap_or(0);
        right += 34.0 + f64::from(width) * 6.8;
    }
}
