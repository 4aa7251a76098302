//! A key-value server for experiments: a RocksDB store behind the protocol of Redis (RESP 2).
//!
//! ```text
//! socket ─► Parser ─► words ─► Command ─► Pool of readers | of writers ─► sys::rocks::Store
//!   ▲                                                                        │
//!   └──────────────── answer ◄── Waker ◄── Answer { bytes } ◄────────────────┘
//! ```
//!
//! One thread owns all connections; readers and writers are threads that own only their tallies.
//! They are as many as SSDB's were in the experiments that this repeats (Klimovic et al.,
//! `EuroSys` 2016, §4.1).
//!
//! Invariants:
//! 1. `resp` and `command` turn bytes into commands and back, without a socket or a clock. What a
//!    peer sends can end its connection, never the process.
//! 2. A connection has at most one command in execution: its commands are executed in the order it
//!    sent them, and each is answered once.
//! 3. A command is answered after RocksDB has completed it, with RocksDB's result.
//! 4. A connection is not read while it has unwritten answers or a command in execution.

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
