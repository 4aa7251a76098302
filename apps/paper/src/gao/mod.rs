//! Gao et al., Network Requirements for Resource Disaggregation, OSDI 2016.

mod apps;
mod claims;
mod degradation;
mod fig6;
mod fig7;
mod fig7_case;
mod fig7_picture;
mod fig7_report;
mod fig8;
mod fig8_case;
mod fig8_picture;
mod fig8_report;
mod place;
mod published;
mod swap_cost;
mod table3;
mod table5;
mod table5_picture;
mod table5_report;
mod workloads;

use crate::figure::{Figure, Run};
use place::Section;

/// The figures of the paper, in order.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "gao-fig2",
        quick_s: 110,
        about: "Gao et al. 2016, Fig. 2: degradation of seven workloads by network, a quarter \
                of the memory local",
        run: Run::Alone(|options| degradation::run(options, Section::Fig2)),
    },
    Figure {
        name: "gao-fig3",
        quick_s: 110,
        about: "Gao et al. 2016, Fig. 3: degradation by bandwidth",
        run: Run::Alone(|options| degradation::run(options, Section::Fig3)),
    },
    Figure {
        name: "gao-fig4",
        quick_s: 110,
        about: "Gao et al. 2016, Fig. 4: degradation by latency",
        run: Run::Alone(|options| degradation::run(options, Section::Fig4)),
    },
    Figure {
        name: "gao-fig5",
        quick_s: 105,
        about: "Gao et al. 2016, Fig. 5: degradation by local memory",
        run: Run::Alone(|options| degradation::run(options, Section::Fig5)),
    },
    Figure {
        name: "gao-fig6",
        quick_s: 50,
        about: "Gao et al. 2016, Fig. 6(a): degradation against swap bandwidth",
        run: Run::Alone(fig6::run),
    },
    Figure {
        name: "gao-table3",
        quick_s: 105,
        about: "Gao et al. 2016, Table 3: local memory with which degradation is under 5 %",
        run: Run::Alone(table3::run),
    },
    Figure {
        name: "gao-table5",
        quick_s: 110,
        about: "Gao et al. 2016, §5.1 and Table 5: what a page over the network consists of, and \
                the ladder from one page at a time to asynchronous requests",
        run: Run::Alone(table5::run),
    },
    Figure {
        name: "gao-table5-swap-cost",
        quick_s: 9,
        about: "Gao et al. 2016, §5.1 and Table 5: what swapping a page in costs before any \
                network",
        run: Run::Alone(swap_cost::run),
    },
    Figure {
        name: "gao-fig7",
        quick_s: 25,
        about: "Gao et al. 2016, Fig. 7: slowdown of flows between blades by transport",
        run: Run::Alone(fig7::run),
    },
    Figure {
        name: "gao-fig8",
        quick_s: 135,
        about: "Gao et al. 2016, Fig. 8: programs under the completion times of their own \
                traffic, with and without queueing",
        run: Run::Alone(fig8::run),
    },
];
