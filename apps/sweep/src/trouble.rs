//! How a run ended that did not end well.

/// How a run ended, if it did not end well.
#[derive(Debug)]
pub enum Trouble {
    /// The user wants to stop.
    Interrupted,
    /// Something that is said of this run; the others go on.
    Failed(String),
    /// Nothing is concluded from this run, and why; the others go on.
    Invalid(String),
}
