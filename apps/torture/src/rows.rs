//! The cases of both protocols.

use super::case::Row;
use super::{iscsi, nvme};

/// All cases, in order.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    nvme::rows().chain(iscsi::rows())
}
