//! Degradations that the authors publish: text of §3 and logs of their repository.

use super::place::Place;

pub(super) const SOURCE: &str = "Gao et al., OSDI 2016";

/// §3.2: what class A is under with 5 µs and 40 Gb/s, class B with 3 µs and 40 to 100 Gb/s.
pub(super) const CLASS_A: f64 = 0.05;
pub(super) const CLASS_B: f64 = 0.08;

/// Fig. 5: class B at 20 % and at 30 % local, with 5 µs and 40 Gb/s.
pub(super) const CLASS_B_LOCAL: [f64; 2] = [0.15, 0.07];

/// §5.1: software for each page that is swapped in, ns.
pub(super) const SWAP_NS: f64 = 2_460.0;
/// Table 5: least, mean, median, 99.5th percentile and most of a request to their RDMA device, ns.
pub(super) const RDMA_NS: [f64; 5] = [3_394.0, 3_492.0, 3_438.0, 4_549.0, 12_254.0];

/// A workload here; of the application it stands in for, degradations at 1, 5 and 10 µs, each with
/// 100, 40 and 10 Gb/s. They are from earlier runs than the figure.
pub(super) const LOGGED: [(&str, [[f64; 3]; 3]); 4] = [
    ("als", [[0.0278, 0.0381, 0.0731], [0.0448, 0.0549, 0.0909], [0.0788, 0.0679, 0.1113]]),
    ("sort", [[0.0094, 0.0194, 0.0815], [0.0434, 0.0237, 0.0953], [0.0561, 0.0710, 0.1196]]),
    ("wordcount", [[0.0427, 0.0426, 0.2635], [0.1592, 0.1573, 0.4252], [0.3875, 0.3796, 0.6896]]),
    ("memcached", [[0.0250, 0.0359, 0.1371], [0.1079, 0.1044, 0.2221], [0.2161, 0.2158, 0.3526]]),
];

/// The degradation that was logged of what a workload stands in for.
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
    fn logs_are_found_by_place() {
        let place = Place { rtt_us: 10, gbps: 100, local: 25 };
        assert_eq!(logged("memcached", place), Some(0.2161));
        assert_eq!(logged("memcached", Place { local: 20, ..place }), None);
        assert_eq!(logged("memcached", Place { rtt_us: 3, ..place }), None);
        assert_eq!(logged("sql", place), None);
    }
}
