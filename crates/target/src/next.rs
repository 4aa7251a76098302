//! How a connection goes on.

/// What has come of the bytes that an end has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// There may be more to read.
    More,
    /// It needs further bytes, or may not read on.
    Wait,
    /// No more is read: it is over when everything has been answered.
    Drain,
    /// The same, and the answer waits: the peer has not proved who it is.
    Delay,
    /// It belongs to another shard, perhaps.
    Place,
    /// The peer was told that it has broken a rule, and is to close.
    Violated,
    /// Nothing more passes.
    Close,
}
