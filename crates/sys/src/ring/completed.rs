//! Completions of requests.

use std::io;

use crate::block::Block;
use crate::stream::Stream;

/// Memory that a request needs, returned with its completion.
#[derive(Debug)]
pub enum Held {
    /// No memory.
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
    /// How many bytes were moved, for requests that move bytes.
    pub result: io::Result<u32>,
    /// The memory that the request was given; with its last completion, if there are several.
    pub held: Held,
    /// The accepted connection, for [`accept`](super::Ring::accept).
    pub accepted: Option<Stream>,
    /// Further completions of the request will follow.
    pub has_more: bool,
    /// For [`send_in_place`](super::Ring::send_in_place): the completion only returns the memory.
    pub is_notice: bool,
}

/// A length as the kernel counts it.
pub(super) fn length_of(count: usize) -> u32 {
    u32::try_from(count).expect("a request moves less than 4 GiB")
}
