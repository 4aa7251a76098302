//! The exchange of text on a connection, between two of its requests.

/// The exchange of text on a connection.
#[derive(Debug, Default)]
pub(crate) struct TextState {
    pub(super) itt: u32,
    pub(super) continues: bool,
    /// What is being answered, and how much of it was sent.
    pub(super) answer: Vec<u8>,
    pub(super) sent: usize,
    /// The tag with which an exchange goes on; 0 if there is none.
    pub(super) tag: u32,
}
