//! A key-value server for experiments: a store of RocksDB behind the protocol of Redis (RESP 2).
//!
//! ```text
//! socket ─► Parser ─► words ─► Command ─► Pool of readers | of writers ─► sys::rocks::Store
//!   ▲                                                                        │
//!   └──────────────── answer ◄── Waker ◄── Answer { bytes } ◄────────────────┘
//! ```
//!
//! One thread owns all connections; readers and writers are threads that own nothing but what they
//! count. They are as many as SSDB's were in the experiments that this repeats (Klimovic et al.,
//! `EuroSys` 2016, §4.1).
//!
//! Invariants:
//! 1. `resp` and `command` are bytes to commands and back: no socket, no clock. What a peer sends
//!    can end its connection, never the process.
//! 2. A connection has one command at work: its commands are done in the order it sent them, and
//!    each is answered once.
//! 3. A command is answered after RocksDB has said that it is done, and as RocksDB said it.
//! 4. A connection is not read while it has something to be written, or a command at work.

mod command;
mod connection;
mod counters;
mod execute;
mod pool;
mod resp;
mod server;
mod statistics;

pub use command::Operation;
pub use counters::{Counters, OperationTally, Outcome};
pub use server::{Server, ServerConfig, ServerError};
pub use statistics::StoreCounters;
pub use sys::rocks::{Settings, StoreError};
