//! Buragohain et al., "DiME: A Performance Emulator for Disaggregated Memory Architectures", APSys
//! 2017.
//!
//! Latencies in the paper are one-way; a fault takes twice that plus the transfer of its page.
//! Faults do not wait for one another on the link (`--link per-fault`).

mod fig3;
mod fig4;
mod fig5;
mod grid;
mod paper;
mod servers;
mod table1;

use crate::figure::{Figure, Run};

/// The figures of the paper, in order.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "dime-fig3",
        quick_s: 60,
        about: "DiME (Buragohain et al. 2017), Fig. 3: delays that were asked for and delays \
                that were seen",
        run: Run::Alone(fig3::run),
    },
    Figure {
        name: "dime-table1",
        quick_s: 25,
        about: "DiME, Table 1: what a fault takes with and without afar",
        run: Run::Alone(table1::run),
    },
    Figure {
        name: "dime-fig4",
        quick_s: 110,
        about: "DiME, Fig. 4: Redis and memcached over latency, bandwidth and local memory, \
                and whether faults explain it",
        run: Run::Alone(fig4::run),
    },
    Figure {
        name: "dime-fig5",
        quick_s: 105,
        about: "DiME, Fig. 5: Redis beside memcached, with memory of its own and with memory \
                that both share; the latter needs root",
        run: Run::Alone(fig5::run),
    },
];
