//! Cases of hostile NVMe/TCP hosts.

mod admin;
mod connect;
mod data;
mod digest;
mod flow;
mod framing;
mod io;
mod peer;
mod property;
mod reserve;
mod sqe;

use super::case::Row;

/// The cases, in order.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    let groups = [
        framing::ROWS,
        connect::ROWS,
        property::ROWS,
        io::ROWS,
        admin::ROWS,
        reserve::ROWS,
        data::ROWS,
        digest::ROWS,
        flow::ROWS,
    ];
    super::case::in_order(&groups)
}
