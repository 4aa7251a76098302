//! What a request brings when it has ended.

use std::io;

use crate::block::Block;
use crate::stream::Stream;

/// Memory that a request needs, handed back with its completion.
#[derive(Debug)]
pub enum Held {
    /// None.
    Nothing,
    /// For sockets.
    Bytes(Vec<u8>),
    /// For files.
    Block(Block),
}

/// A request that has ended, or for [`accept`](super::Ring::accept) has brought another connection.
#[derive(Debug)]
pub struct Completed {
    /// The caller's number.
    pub token: u64,
    /// Bytes moved, where any were to be.
    pub result: io::Result<u32>,
    /// What it was given; with its last completion, if there are several.
    pub held: Held,
    /// The connection that was accepted.
    pub accepted: Option<Stream>,
    /// The request goes on.
    pub has_more: bool,
    /// For [`send_in_place`](super::Ring::send_in_place): nothing has happened but that the memory
    /// is free again.
    pub is_notice: bool,
}

/// As the kernel counts bytes of one request.
pub(super) fn length_of(count: usize) -> u32 {
    u32::try_from(count).expect("a request moves less than 4 GiB")
}
