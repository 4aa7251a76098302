//! Guz et al., "NVMe-over-Fabrics Performance Characterization and the Path to Low-Overhead Flash
//! Disaggregation", SYSTOR 2017.
//!
//! Their network is RDMA over 100 Gb/s Ethernet between machines with dozens of processors each;
//! ours is TCP over the loopback of one machine, on which host and target share the processors.

mod bars;
mod fig2;
mod fig3;
mod fig5;
mod fig6;
mod fig7;
mod fig7_picture;
mod fig8;
mod ordering;
mod paper;
mod stages;

use crate::bed::PM1725;
use crate::figure::{Figure, Run};

/// The figures of the paper, in order.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "guz-fig2",
        quick_s: 55,
        about: "Guz et al. 2017, Fig. 2: most throughput at every mix of reads and writes",
        run: Run::OnBed(PM1725, fig2::run),
    },
    Figure {
        name: "guz-fig3",
        quick_s: 45,
        about: "Guz et al. 2017, Fig. 3: processors of the host in use at every mix of reads \
                and writes",
        run: Run::OnBed(PM1725, fig3::run),
    },
    Figure {
        name: "guz-fig5",
        quick_s: 35,
        about: "Guz et al. 2017, Fig. 5: throughput and processor time with fewer processors \
                at the target",
        run: Run::OnBed(PM1725, fig5::run),
    },
    Figure {
        name: "guz-fig6",
        quick_s: 70,
        about: "Guz et al. 2017, Fig. 6: latency against load",
        run: Run::OnAnyBed(PM1725, fig6::run),
    },
    Figure {
        name: "guz-fig7",
        quick_s: 30,
        about: "Guz et al. 2017, Fig. 7: distributions of latency under three loads",
        run: Run::OnBed(PM1725, fig7::run),
    },
    Figure {
        name: "guz-fig8",
        quick_s: 10,
        about: "Guz et al. 2017, Fig. 8: what an unloaded read consists of",
        run: Run::OnBed(PM1725, fig8::run),
    },
];
