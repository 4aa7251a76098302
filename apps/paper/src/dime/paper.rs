//! Numbers from the paper's text and the authors' repository.

pub(super) const SOURCE: &str = "Buragohain et al. 2017";

/// §3.1: mean error of their busy-wait, ns.
pub(super) const ERROR_NS: f64 = 68.0;

/// Table 1, ns: without and with DiME.
pub(super) const PROTECTED_NS: [f64; 2] = [160.0, 241.0];
pub(super) const DEMAND_NS: [f64; 2] = [704.0, 780.0];
/// §3.1: what DiME adds to a fault on average, ns.
pub(super) const ADDED_NS: f64 = 78.0;

/// §3.2: requests to Redis a second at 1 µs and 10 Gb/s, with 20 % and with 40 % local.
pub(super) const REDIS_1US_10G: [f64; 2] = [20_000.0, 25_000.0];

/// Fig. 4 in the authors' repository, Redis at 10 Gb/s: percent of local memory, and requests per
/// second at [`THESIS_ONE_WAY_US`].
pub(super) const THESIS_10G: [(u32, [f64; 4]); 3] = [
    (20, [12_050.0, 8_450.0, 6_400.0, 5_150.0]),
    (40, [14_200.0, 10_300.0, 7_900.0, 6_450.0]),
    (60, [16_450.0, 12_250.0, 9_650.0, 7_850.0]),
];
pub(super) const THESIS_ONE_WAY_US: [f64; 4] = [2.5, 5.0, 7.5, 10.0];

/// §3.3: the loss of Redis beside memcached, as a share, under DiME and with shared memory.
pub(super) const BESIDE: [f64; 2] = [0.10, 0.50];

/// Fig. 5 in the authors' repository: percent of local memory; below, Redis requests per second
/// with each.
pub(super) const FIG5_LOCAL: [f64; 2] = [10.0, 60.0];
pub(super) const FIG5_DIME: [f64; 2] = [5_200.0, 9_050.0];
pub(super) const FIG5_SWAP: [f64; 2] = [3_850.0, 7_000.0];
pub(super) const FIG5_SWAP_BESIDE: [f64; 2] = [1_850.0, 3_600.0];
