//! Whether giving up a dirty page costs anything.

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum WriteBack {
    /// It uses the link, and its frame is free once it is acknowledged.
    #[default]
    Charged,
    /// It is free, as with the FIFO and random policies of the `DiME` module.
    Ignored,
}
