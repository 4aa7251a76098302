//! Where the fields of structures are, each stated once: what writes a structure and what reads it
//! both ask here. A field has the name that the standard gives it.

pub(crate) mod connect;
pub(crate) mod entry;
pub(crate) mod identify;
pub(crate) mod log;
mod part;
pub(crate) mod pdu;
pub(crate) mod registers;
pub(crate) mod reservation;
