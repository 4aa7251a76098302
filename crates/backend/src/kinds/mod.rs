//! The kinds of devices, a module each: the backend, and beside it how it is named.
//!
//! ```text
//! file:PATH                    a file or block device
//! memory:SIZE                  the target's own memory
//! null:[SIZE]                  nothing; 1 TiB if not said
//! model:DRIVE[*SHARE]:DEVICE   as fast as a drive: pm1725 or p3600, or a share of its throughput
//! fault:RULES:DEVICE           failures and delays by rules, see [`crate::FaultRules`]
//! lease:TERMS:memory:SIZE      memory of which each host has its own part: [`crate::Lease`]
//! volatile:SIZE:DEVICE         behind a write cache that is lost with the process
//! trace:PATH:DEVICE            what is asked of it, written to a file: see [`crate::TraceBackend`]
//! ```
//!
//! A `DEVICE` is any of these, up to eight around one another, and is what is left of the text
//! after the colon: a drive, rules and the path of a trace have no colon in them. In
//! `trace:/tmp/all.txt:fault:read=eio@0.01,any=5ms@once:model:pm1725*0.1:memory:8GiB`, requests are
//! traced as their sender sees them. A lease is of memory, and nothing stands around it.
//!
//! The device inside may end in `?block=512` or `?block=4096`, its block; `file` also takes
//! `size=SIZE`, which makes the file if it is not there, `readonly`, with which it is never written
//! and may be read by others at the same time, and `fill`, with which zeros are written to all its
//! holes before it is used, so that reads of them ask the medium.
//!
//! A new kind is its module and a row of `ALL`.

pub mod fault;
pub mod file;
pub mod lease;
pub mod memory;
pub mod model;
pub mod null;
pub mod trace;
pub mod volatile;

use crate::named::Kind;

/// Every kind, in the order they are listed to users.
pub(crate) static ALL: [&Kind; 8] = [
    &file::KIND,
    &memory::KIND,
    &null::KIND,
    &model::KIND,
    &fault::KIND,
    &volatile::KIND,
    &trace::KIND,
    &lease::KIND,
];
