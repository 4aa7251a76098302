//! What the text of section 3.3 prints; nothing is read off the picture.

/// In front of the number of a figure.
pub(super) const SOURCE: &str = "Klimovic et al., EuroSys 2016, Fig.";

/// Section 3.3: one tenant, one process of the target.
pub(super) const BASELINE_IOPS: f64 = 10_500.0;
/// Section 3.3: one tenant, six processes of the target.
pub(super) const MANY_WORKERS_IOPS: f64 = 46_500.0;
/// Section 3.3: what six processes are over one, for 1 and 6 tenants.
pub(super) const MANY_WORKERS: [f64; 2] = [4.5, 2.3];
/// Section 3.3: what TSO and LRO add, for 1 and 6 tenants.
pub(super) const OFFLOADS: [f64; 2] = [1.08, 1.22];
/// Section 3.3: what jumbo frames add, least and most.
pub(super) const JUMBO: [f64; 2] = [1.03, 1.12];
/// Section 3.3: what affinity of interrupts and processes adds, for 1, 3 and 6 tenants.
pub(super) const AFFINITY: [f64; 3] = [1.21, 1.06, 1.11];
/// Section 3.3: the tuned target over the one that it is out of the box, for 6 tenants.
pub(super) const TUNED: f64 = 1.5;

/// Section 4.2, Fig. 4: what iSCSI adds to the 95th percentile of an unloaded read of the store.
pub(super) const P95_ADDED_US: f64 = 260.0;
/// Section 4.2: share of the store's throughput that is lost on average, however many share.
pub(super) const AVERAGE_LOST: f64 = 0.20;
/// Section 4.2, Fig. 5: what the average latency of a service may be.
pub(super) const AVERAGE_BOUND_US: f64 = 1_500.0;
/// Section 4.2: what services ask of their latency, from 5 to 10 ms.
pub(super) const TAIL_BOUND_US: f64 = 5_000.0;
/// Section 4.2, Fig. 4: and at the tail, the 95th percentile, of a store that shares with nobody.
pub(super) const TAIL_LOST_ALONE: f64 = 0.10;
/// Section 4.2, Fig. 7: and at the tail, where 2 and 3 share.
pub(super) const TAIL_LOST: [f64; 2] = [0.25, 0.55];
