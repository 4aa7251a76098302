//! The state of a text exchange on a connection, between two of its requests.

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct TextState {
    pub(super) itt: u32,
    pub(super) continues: bool,
    /// The answer, and how many bytes of it were sent.
    pub(super) answer: Vec<u8>,
    pub(super) sent: usize,
    /// The target transfer tag of the exchange; 0 before the first.
    pub(super) tag: u32,
}
