//! Klimovic et al., "Flash Storage Disaggregation", EuroSys 2016.
//!
//! The paper's target has six processors and a network card, and each tenant is a machine of its
//! own. Here target and tenants share one machine, connected by a pair of virtual interfaces.

mod cable;
mod fig3;
mod fig4;
mod fig4_report;
mod fig4_scale;
mod paper;
mod rungs;
mod sharing;
mod tenants;

use crate::figure::{Figure, Run};

/// The figures of the paper, in order.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "klimovic-fig3",
        quick_s: 70,
        about: "Klimovic et al. 2016, Fig. 3: throughput over iSCSI as the target is tuned, \
                for 1, 3 and 6 tenants; in two networks of its own, so it needs root, iproute2 \
                and ethtool",
        run: Run::Watched(fig3::run),
    },
    Figure {
        name: "klimovic-fig4",
        quick_s: 120,
        about: "Klimovic et al. 2016, Fig. 4: latency of a key-value store (RocksDB) on a local \
                drive, over NVMe/TCP and over iSCSI, and against throughput; it needs root, \
                librocksdb7.8 and e2fsprogs, and has tgt as its control",
        run: Run::Watched(fig4::run),
    },
    Figure {
        name: "klimovic-sharing",
        quick_s: 50,
        about: "Klimovic et al. 2016, what is behind Fig. 7: 1, 2 and 3 tenants of one drive \
                whose writes come in bursts, and tenants that only read",
        run: Run::OnBed(sharing::DRIVE, sharing::run),
    },
];
