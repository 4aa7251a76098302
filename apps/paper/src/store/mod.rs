//! A key-value store on a local drive and on a remote one.
//!
//! ```text
//! Place (a view of the files of its own) ─► Image (a file system with a store, filled once)
//!   Stack: drive ─► attach ─► loop device ─► ext4 ─► afar kv serve ◄── afar load kv
//!          └────► serve ─► network ─► attach ┘
//! ```
//!
//! Every turn begins with a copy of the image, so that all ways to the drive have the same store.
//! Mounts are in a mount namespace that ends with this process, however it ends.

mod image;
mod loads;
mod place;
mod stack;
mod tgt;
mod turn;

pub(crate) use image::Image;
pub(crate) use loads::{Asked, KEY_BYTES, Kind, Loads, RECORDS, Reads, SET_BYTES};
pub(crate) use place::{Place, check};
#[cfg(test)]
pub(crate) use stack::Spent;
pub(crate) use stack::{Over, Stack};
pub(crate) use turn::{CLIENTS, Kept, Step, Steps, Turn, timed, turn};
