//! What a section is made with, beside the record.

/// What a section is made with, beside the record.
#[derive(Debug, Clone)]
pub(super) struct Context {
    /// The slowdown that is good enough, a ratio.
    pub(super) bound: f64,
    /// The file's name, for records that do not say what they are of.
    pub(super) name: String,
}
