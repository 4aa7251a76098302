//! iSCSI: the same namespaces as logical units (RFC 7143; SAM-5, SPC-4, SBC-3).
//!
//! ```text
//! gate      who may log in, and to which shard a connection belongs, on the control thread
//! end       one connection: its login, and then its part of a session
//! sessions  the sessions of a shard, and what waits for commands to end
//! session   one session and its connections; waiting: commands that wait for memory or others
//! command   its commands from their arrival to their answer; pending: one that is under way
//! immediate reads of devices that answer at once
//! work      what a command has a device do, step by step
//! manage    task management, aborts and logout; ending: which commands, and what follows
//! unit      a namespace as a logical unit; port: a target port and its access state
//! ```
//!
//! A session lives on one shard with all its connections: their commands share one numbering, which
//! then needs no lock. A login is received on the control thread, which decides to what shard the
//! session belongs. It ends on that shard once the session that it replaces has ended.
//!
//! Logical unit N is namespace N + 1. All shards share its state (`scsi::LogicalUnit`), behind a
//! lock. A command that reads or writes takes the lock only when the logical unit has changed since
//! its session last looked (`reserved` counts changes). A shard aborts commands of other shards by
//! mail, and waits for their answers.

mod access;
mod command;
mod end;
mod ending;
mod gate;
mod immediate;
mod manage;
mod pending;
mod port;
mod session;
mod sessions;
mod unit;
mod waiting;
mod work;

pub use access::IscsiAccess;

pub(crate) use end::IscsiEnd;
pub(crate) use ending::{Left, Scope, Then};
pub(crate) use gate::Gate;
pub(crate) use manage::quell_others;
pub(crate) use port::Port;
pub(crate) use session::IscsiSession;
pub(crate) use sessions::Sessions;
