//! What a target has done over sockets, to be done again without any.
//!
//! ```text
//! record: threads ─► ring of the kernel, sockets ─┬─► what came, at what time ─┐
//!                                                 └─► what was asked ──────────┤ tape
//! play:   the same threads ◄── what came, at that time ────────────────────────┤
//!                          ──► what is asked: the same, to the byte? ◄─────────┘
//! ```
//!
//! One thread runs at a time in both, from one wait to the next, so that the tape is one sequence:
//! turns, each with what ended a wait, and between them what the thread whose turn it was has
//! asked. Time stands still during a turn.
//!
//! Invariants:
//! - While it is recorded, the requests are the kernel's and the connections are sockets.
//! - While it is played, nothing comes from anywhere but the tape: the first request that differs
//!   from the recorded one stops all threads, and says so.

mod ring;
mod stream;
mod turns;
mod world;

pub use turns::Record;
pub use world::Taped;
