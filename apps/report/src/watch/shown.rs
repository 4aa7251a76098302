//! What is shown of one moment.

use crate::section::Section;

/// Something that is looked at again and again.
pub(super) trait Watched: Send {
    /// What it is, for people.
    fn name(&self) -> String;

    /// Looks at it.
    fn look(&mut self) -> Shown;
}

/// What is shown of one moment.
#[derive(Debug)]
pub(super) struct Shown {
    /// How it is, in a sentence.
    pub(super) state: String,
    /// Whether it goes on, or has come to its end: not whether it cannot be looked at.
    pub(super) is_there: bool,
    /// With what each is of; nothing where what was shown before still holds.
    pub(super) sections: Option<Vec<(String, Section)>>,
}

impl Shown {
    /// What was shown before, with the reason why nothing newer is known.
    pub(super) fn gone(state: String) -> Self {
        Self { state, is_there: false, sections: None }
    }
}
