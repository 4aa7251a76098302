//! The places of fields in structures, for encoding and decoding. Names are those of the standards.

pub(crate) mod connect;
pub(crate) mod entry;
pub(crate) mod identify;
pub(crate) mod log;
mod part;
pub(crate) mod pdu;
pub(crate) mod registers;
pub(crate) mod reservation;
