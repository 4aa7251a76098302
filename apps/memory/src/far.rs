//! Memory on blades: which ones `--far` names, and how they are reached.

mod blades;
mod disk;
mod distant;
mod error;
mod hold;
mod uri;

pub(crate) use blades::Far;
pub(crate) use uri::{FarUri, far_uri};
