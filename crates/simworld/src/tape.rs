//! Recording what a target does over sockets, and replaying it without any.
//!
//! ```text
//! record: threads ─► ring of the kernel, sockets ─┬─► what came, at what time ─┐
//!                                                 └─► what was asked ──────────┤ tape
//! play:   the same threads ◄── what came, at that time ────────────────────────┤
//!                          ──► what is asked: the same, to the byte? ◄─────────┘
//! ```
//!
//! One thread runs at a time in both, from one wait to the next, so that the tape is one sequence:
//! turns, each with what ended a wait, and between them what the running thread has requested. Time
//! stands still during a turn.
//!
//! Invariants:
//! - During recording, the requests are the kernel's and the connections are sockets.
//! - During replay, all input comes from the tape: the first request that differs from the recorded
//!   one stops all threads with a message.

mod ring;
mod stream;
mod turns;
mod world;

pub use turns::Record;
pub use world::Taped;
