//! The paper's numbers, as printed in its text. Nothing is read off its pictures.

use super::super::way::PerWay;

/// The source, in front of the number of a figure.
pub(super) const SOURCE: &str = "Guz et al., SYSTOR 2017, Fig.";

/// Section 4.1: three drives of 750 000 reads a second, which local access saturates (Fig. 2).
pub(super) const LOCAL_READ_IOPS: f64 = 2_250_000.0;
/// Section 3: three drives of 120 000 writes a second.
pub(super) const LOCAL_WRITE_IOPS: f64 = 360_000.0;
/// Section 4.1, Fig. 2: `NVMf` is less than 1 % from local at every mix.
pub(super) const REMOTE_RATIO_MIN: f64 = 0.99;
/// Section 4.1, Fig. 2: iSCSI when all requests read, 1.4 million a second: 60 % of the drives.
pub(super) const ISCSI_READ_RATIO: f64 = 0.60;

/// Section 4.1, Fig. 3: what `NVMf` and iSCSI add at most to the host's processors in use, of all.
pub(super) const HOST_ADDED_NVMF: f64 = 0.043;
/// See [`HOST_ADDED_NVMF`].
pub(super) const HOST_ADDED_ISCSI: f64 = 0.30;
/// Section 4.1, Fig. 4a: the host's processors in use when all requests read, of all.
pub(super) const HOST_USE: PerWay<f64> = PerWay { local: 0.13, nvme: 0.17, iscsi: 0.43 };

/// Section 4.1, Fig. 5: the smallest share of the target's processors, all requests reading: what
/// `NVMf` and iSCSI reach of local.
pub(super) const FEWEST_PROCESSORS: f64 = 1.0 / 12.0;
pub(super) const FEWEST_REMOTE_RATIO: f64 = 0.90;
pub(super) const FEWEST_ISCSI_RATIO: f64 = 0.26;
/// Section 4.1, Fig. 4b: processors of the target at work, of 96.
pub(super) const BUSY_PROCESSORS: f64 = 24.0;

/// Section 4.2, Fig. 6: the average is within this of local at every load above the first.
pub(super) const AVERAGE_ABOVE_MAX: f64 = 0.035;
/// Section 4.2, Fig. 6: the first load, a share of the drives.
pub(super) const FIRST_LOAD: f64 = 0.02;
/// Section 4.2, Fig. 6: the 95th percentile of local and `NVMf` is below this over the whole range.
pub(super) const P95_BOUND_US: f64 = 2_000.0;
/// Section 4.2, Fig. 6: iSCSI keeps the same bound up to this load.
pub(super) const ISCSI_P95_LOAD: f64 = 0.17;
/// Section 4.2, Fig. 6: iSCSI's average at half the load, more than ten times local's.
pub(super) const ISCSI_HALF_US: f64 = 2_500.0;

/// Section 4.2, Fig. 7a: unloaded reads.
pub(super) const UNLOADED_MEAN_US: PerWay<f64> = PerWay { local: 83.5, nvme: 95.2, iscsi: 145.8 };
/// See [`UNLOADED_MEAN_US`].
pub(super) const UNLOADED_P95_US: PerWay<f64> = PerWay { local: 96.0, nvme: 110.0, iscsi: 197.0 };
/// What iSCSI adds to an unloaded read, by [`UNLOADED_MEAN_US`].
pub(super) const ISCSI_ADDED_US: f64 = UNLOADED_MEAN_US.iscsi - UNLOADED_MEAN_US.local;
/// Section 4.2, Fig. 8: what `NVMf` adds to an unloaded read.
pub(super) const ADDED_US: f64 = 11.7;
/// Section 4.2, Fig. 8: its parts: host 27 %, target 38 %, network and switch 2.43 µs, elsewhere
/// 13 %. They come to 11.56 µs.
pub(super) const ADDED_HOST_US: f64 = 0.27 * ADDED_US;
/// See [`ADDED_HOST_US`].
pub(super) const ADDED_TARGET_US: f64 = 0.38 * ADDED_US;
/// See [`ADDED_HOST_US`].
pub(super) const ADDED_NETWORK_US: f64 = 2.43;
/// See [`ADDED_HOST_US`].
pub(super) const ADDED_ELSEWHERE_US: f64 = 0.13 * ADDED_US;
