//! Numbers from the paper's text; none is read off a picture.

/// The citation, in front of a figure's number.
pub(super) const SOURCE: &str = "Klimovic et al., EuroSys 2016, Fig.";

/// Section 3.3: one tenant, one process of the target.
pub(super) const BASELINE_IOPS: f64 = 10_500.0;
/// Section 3.3: one tenant, six processes of the target.
pub(super) const MANY_WORKERS_IOPS: f64 = 46_500.0;
/// Section 3.3: throughput with six processes over that with one, for 1 and 6 tenants.
pub(super) const MANY_WORKERS: [f64; 2] = [4.5, 2.3];
/// Section 3.3: the gain by TSO and LRO, for 1 and 6 tenants.
pub(super) const OFFLOADS: [f64; 2] = [1.08, 1.22];
/// Section 3.3: the gain by jumbo frames, lowest and highest.
pub(super) const JUMBO: [f64; 2] = [1.03, 1.12];
/// Section 3.3: the gain by affinity of interrupts and processes, for 1, 3 and 6 tenants.
pub(super) const AFFINITY: [f64; 3] = [1.21, 1.06, 1.11];
/// Section 3.3: throughput of the tuned target over that of the untuned one, for 6 tenants.
pub(super) const TUNED: f64 = 1.5;

/// Section 4.2, Fig. 4: what iSCSI adds to the 95th percentile of unloaded reads of the store.
pub(super) const P95_ADDED_US: f64 = 260.0;
/// Section 4.2: the share of the store's throughput that is lost within a bound of the average
/// latency, with any number of tenants.
pub(super) const AVERAGE_LOST: f64 = 0.20;
/// Section 4.2, Fig. 5: the bound of a service's average latency.
pub(super) const AVERAGE_BOUND_US: f64 = 1_500.0;
/// Section 4.2: the bound of a service's tail latency, which is from 5 to 10 ms.
pub(super) const TAIL_BOUND_US: f64 = 5_000.0;
/// Section 4.2, Fig. 4: the share of throughput that one tenant loses within a bound of the 95th
/// percentile.
pub(super) const TAIL_LOST_ALONE: f64 = 0.10;
/// Section 4.2, Fig. 7: the same for 2 and 3 tenants.
pub(super) const TAIL_LOST: [f64; 2] = [0.25, 0.55];
