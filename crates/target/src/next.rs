//! How a connection goes on.

/// What a protocol end wants of its connection after it has read or acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// There may be more to read.
    More,
    /// The end needs further bytes, or has to wait.
    Wait,
    /// Nothing more is read: the connection ends when everything has been answered.
    Drain,
    /// As `Drain`, with the answer delayed: the peer's authentication has failed.
    Delay,
    /// The connection now belongs to its home shard, perhaps another one.
    Place,
    /// A terminating PDU tells the peer of its violation; the peer is to close.
    Violated,
    /// The connection is closed at once.
    Close,
}
