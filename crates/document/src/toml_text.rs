//! TOML into values, with what is wrong in one line.

use serde::de::DeserializeOwned;

/// What is wrong in a text, and where.
#[derive(Debug)]
pub struct Wrong {
    /// From 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// Reads a text.
///
/// # Errors
/// The first thing in it that cannot be; of a key that is not known, those that are.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text[..at].matches('\n').count() + 1;
        let words: Vec<&str> = error.message().split_whitespace().collect();
        Wrong { line, message: words.join(" ") }
    })
}

/// `file:line:column` of a place in its text, each from 1.
#[must_use]
pub fn place(name: &str, text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
    format!("{name}:{line}:{column}")
}
