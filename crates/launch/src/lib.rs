//! Children that never outlive their parent, afar itself among them.
//!
//! ```text
//! RunSpec ───► command line ─► Child ─► exit status, Run record in a file
//! ServeSpec ─► command line ─► Child ─► one line of JSON on a descriptor ─► Served { Ready }
//! KvSpec ────► the same ──────────────────────────────────────────────────► KvServed
//! LoadSpec ──► command line ─► its caller starts it ─► Run record on standard output
//! ```
//!
//! * A measurement runs afar as a user does: as a process, by its flags. This crate is the only one
//!   that finds afar's program and spells those flags.
//! * A [`Child`] ends when it is dropped, and the kernel kills it if this process is killed.
//! * afar's messages for people are not parsed: a target reports its addresses in [`Ready`], a
//!   key-value server in [`KvReady`].

mod child;
mod kv;
mod own;
mod ready;
mod run;
mod serve;

pub use child::{Child, Waited};
pub use kv::{KvServed, KvSpec, LoadPace, LoadSpec};
pub use own::{SELF, afar, program};
pub use ready::{KvReady, Ready};
pub use run::{Network, RunSpec};
pub use serve::{LaunchError, ServeSpec, Served};
