//! The places of fields in structures, for encoding and decoding. Names are those of the standards.

pub(crate) mod cdb;
pub(crate) mod inquiry;
pub(crate) mod mode;
pub(crate) mod report;
pub(crate) mod reservation;
pub(crate) mod sense;
