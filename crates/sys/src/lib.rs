//! Safe handles on Linux: what the rest of afar needs of the kernel, and nothing of what it does
//! with it.
//!
//! ```text
//! spawn a program under a system-call filter      seccomp, process
//! back its memory with a file and watch it        memory, userfault, pagemap
//! trap its page faults                            bpf
//! have a program do without huge pages          huge
//! limit a group of processes, swap their pages  group, swap, setting
//! act inside it                                   remote, socket (to the helper), ptrace
//! wait for whatever comes next                    event, clock, processors, priority
//! move bytes to and from sockets and files       ring, block, shared, disk, stream
//! be on this machine, or in a simulation         world
//! serve files of its own                          mount, fuse
//! keep keys and values with a library that is installed  rocks
//! see what processes cost, and who listens       usage, listener
//! measure what nothing can be faster than         baseline, echo
//! give up rights                                  user, sandbox
//! draw random numbers for secrets                 random
//! find out what can be done here                  feature
//! ```
//!
//! Invariants:
//! - Every `unsafe` block of the workspace is here, in the preload library or in `afar-place`, and
//!   says why it is sound.
//! - No policy: nothing here knows of delays, budgets or victims.
//! - Every failure names the operation and the operating system's reason ([`Error`]).

pub mod baseline;
pub mod block;
pub mod bpf;
pub mod clock;
pub mod disk;
pub mod echo;
mod error;
pub mod event;
mod execute;
pub mod feature;
pub mod file_pages;
pub mod fuse;
pub mod group;
pub mod hint;
pub mod holes;
pub mod huge;
mod library;
pub mod listener;
pub mod maps;
pub mod memory;
pub mod mount;
pub mod nr;
mod owner;
pub mod pagemap;
pub mod priority;
pub mod process;
pub mod processors;
pub mod ptrace;
pub mod random;
pub mod remote;
pub mod ring;
pub mod rocks;
pub mod sandbox;
pub mod seccomp;
pub mod setting;
pub mod shared;
pub mod socket;
pub mod stream;
pub mod swap;
pub mod told;
pub mod usage;
pub mod user;
pub mod userfault;
pub mod world;

pub use error::{Error, Result};
pub use library::LoaderError;
