//! Where the fields of structures are, each stated once: what writes a structure and what reads it
//! both ask here. A field has the name that the standard gives it.

pub(crate) mod cdb;
pub(crate) mod inquiry;
pub(crate) mod mode;
pub(crate) mod report;
pub(crate) mod reservation;
pub(crate) mod sense;
