//! What a report has, before it is a page or a file.

use super::section::Section;

/// A report: its title, the command that made it, and its sections.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) title: String,
    pub(super) command: Vec<String>,
    /// Each with the name of the file it was read from.
    pub(super) sections: Vec<(String, Section)>,
}
