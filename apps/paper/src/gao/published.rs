//! Numbers that the authors publish, in the text and in logs of their repository.

use super::place::Place;

pub(super) const SOURCE: &str = "Gao et al., OSDI 2016";

/// §3.2: most degradation of class A with 5 µs and 40 Gb/s,
pub(super) const CLASS_A: f64 = 0.05;
/// and of class B with 3 µs and 40 to 100 Gb/s.
pub(super) const CLASS_B: f64 = 0.08;

/// Fig. 5: degradation of class B at 20 % and at 30 % local, with 5 µs and 40 Gb/s.
pub(super) const CLASS_B_LOCAL: [f64; 2] = [0.15, 0.07];

/// §5.1: software time of swapping a page in, ns.
pub(super) const SWAP_NS: f64 = 2_460.0;
/// Table 5: least, mean, median, 99.5th percentile and most of a request to their RDMA device, ns.
pub(super) const RDMA_NS: [f64; 5] = [3_394.0, 3_492.0, 3_438.0, 4_549.0, 12_254.0];
/// §5.1: throughput of their device with a batch of requests at a time, with requests for
/// neighbours merged, and with requests that are answered one by one, in gigabytes per second.
pub(super) const LADDER: [f64; 3] = [0.8, 2.6, 3.3];
/// §5.1: a request to their device takes at most so many times what native applications of RDMA
/// report.
pub(super) const NATIVE_RATIO: f64 = 2.0;

/// The paper's completion times of a page in one network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Page {
    pub(super) rate: &'static str,
    pub(super) scale: &'static str,
    /// Mean completion times of 4 KiB under pFabric that the paper fed back to its eight
    /// applications (§4.4): the least and the most, in microseconds.
    pub(super) us: (f64, f64),
    /// Largest deviation from that range that still agrees, as a share.
    pub(super) near: f64,
}

/// Completion times from the authors' repository (rmem/fcts).
pub(super) const PAGES: [Page; 4] = [
    Page { rate: "40Gbps", scale: "datacenter", us: (2.864, 3.354), near: 0.08 },
    Page { rate: "40Gbps", scale: "rack", us: (1.390, 1.735), near: 0.08 },
    Page { rate: "100Gbps", scale: "datacenter", us: (2.268, 2.352), near: 0.03 },
    Page { rate: "100Gbps", scale: "rack", us: (0.814, 0.863), near: 0.08 },
];

impl Page {
    /// Whether a completion time agrees with those of the paper.
    pub(super) fn is_near(&self, us: f64) -> bool {
        let (low, high) = self.us;
        (low * (1.0 - self.near)..=high * (1.0 + self.near)).contains(&us)
    }
}

/// The paper's completion times of a page in a network; `None` if it has none.
pub(super) fn page(rate: &str, scale: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.rate == rate && page.scale == scale)
}

/// Workloads, and logged degradations of the applications that they stand in for, at 1, 5 and 10 µs
/// with 100, 40 and 10 Gb/s each. The logs are from earlier runs than the figure.
pub(super) const LOGGED: [(&str, [[f64; 3]; 3]); 4] = [
    ("als", [[0.0278, 0.0381, 0.0731], [0.0448, 0.0549, 0.0909], [0.0788, 0.0679, 0.1113]]),
    ("sort", [[0.0094, 0.0194, 0.0815], [0.0434, 0.0237, 0.0953], [0.0561, 0.0710, 0.1196]]),
    ("wordcount", [[0.0427, 0.0426, 0.2635], [0.1592, 0.1573, 0.4252], [0.3875, 0.3796, 0.6896]]),
    ("memcached", [[0.0250, 0.0359, 0.1371], [0.1079, 0.1044, 0.2221], [0.2161, 0.2158, 0.3526]]),
];

/// The logged degradation of the application that a workload stands in for; `None` if there is
/// none.
pub(super) fn logged(name: &str, place: Place) -> Option<f64> {
    let (_, rows) = LOGGED.iter().find(|(logged, _)| *logged == name)?;
    let row = [1, 5, 10].into_iter().position(|rtt_us| rtt_us == place.rtt_us)?;
    let column = [100, 40, 10].into_iter().position(|gbps| gbps == place.gbps)?;
    (place.local == 25).then_some(rows[row][column])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_agree_within_a_share_beyond_either_end() {
        let page = page("100Gbps", "datacenter").expect("it is published");
        assert!(page.is_near(2.268 * 0.98) && page.is_near(2.352 * 1.02));
        assert!(!page.is_near(2.268 * 0.96) && !page.is_near(2.352 * 1.04));
        let page = super::page("40Gbps", "rack").expect("it is published");
        assert!(page.is_near(1.39 * 0.93) && !page.is_near(1.735 * 1.09));
        assert!(super::page("10Gbps", "rack").is_none());
    }

    #[test]
    fn logs_are_found_by_place() {
        let place = Place { rtt_us: 10, gbps: 100, local: 25 };
        assert_eq!(logged("memcached", place), Some(0.2161));
        assert_eq!(logged("memcached", Place { local: 20, ..place }), None);
        assert_eq!(logged("memcached", Place { rtt_us: 3, ..place }), None);
        assert_eq!(logged("sql", place), None);
    }
}
