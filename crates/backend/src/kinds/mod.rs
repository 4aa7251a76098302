//! The kinds of devices. Each module has a backend and the parser of its name.
//!
//! ```text
//! file:PATH                    a file or block device
//! memory:SIZE                  the target's own memory
//! null:[SIZE]                  stores nothing; 1 TiB by default
//! model:DRIVE[*SHARE]:DEVICE   as fast as a drive: pm1725 or p3600, or a share of its throughput
//! fault:RULES:DEVICE           failures and delays by rules, see [`crate::FaultRules`]
//! lease:TERMS:memory:SIZE      memory in which each host has its own disk: [`crate::Lease`]
//! volatile:SIZE:DEVICE         behind a write cache that is lost with the process
//! trace:PATH:DEVICE            writes its requests to a file: see [`crate::TraceBackend`]
//! ```
//!
//! A `DEVICE` is any of these, up to eight around one another, and is the rest of the text after
//! the colon: a drive, rules and the path of a trace have no colon in them. In
//! `trace:/tmp/all.txt:fault:read=eio@0.01,any=5ms@once:model:pm1725*0.1:memory:8GiB`, requests are
//! traced as their sender sees them. Only memory can be leased, and no device stands around a
//! lease.
//!
//! The device inside may end in `?block=512` or `?block=4096`, its block size; `file` also takes
//! `size=SIZE`, which creates a missing file; `readonly`, which never writes the file and lets
//! others read it at the same time; and `fill`, which first writes zeros to all holes of the file,
//! so that reads of them reach the medium.
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
