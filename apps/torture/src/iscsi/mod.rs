//! Cases of hostile iSCSI initiators.

mod bhs;
mod chap;
mod data;
mod entry;
mod flow;
mod full;
mod keys;
mod login;
mod manage;
mod peer;
mod scsi;

use super::case::Row;

/// The cases, in order.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    let groups = [
        login::ROWS,
        keys::ROWS,
        chap::ROWS,
        full::ROWS,
        data::ROWS,
        manage::ROWS,
        scsi::ROWS,
        flow::ROWS,
    ];
    super::case::in_order(&groups)
}
