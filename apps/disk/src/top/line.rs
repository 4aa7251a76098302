//! A line of a target's metrics.

use std::collections::BTreeMap;

/// A line of the text.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// A number of the format that is one, or no bound.
pub(super) fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

impl Line {
    /// name{label="value",...} number
    pub(super) fn read(line: &str) -> Option<Self> {
        let end = line.find(|c: char| c != '_' && c != ':' && !c.is_ascii_alphanumeric())?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = BTreeMap::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (label, quoted) = rest.split_once("=\"")?;
                let (value, after) = quoted_text(quoted)?;
                labels.insert(label.trim().to_owned(), value);
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            rest = &rest[1..];
        }
        let value = number(rest.split_whitespace().next()?)?;
        (!name.is_empty()).then(|| Self { name: name.to_owned(), labels, value })
    }

    /// A label that is a number.
    pub(super) fn number(&self, label: &str) -> Option<u32> {
        self.labels.get(label)?.parse().ok()
    }
}

// Up to the quote that ends it, and what is behind that.
fn quoted_text(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// Terminals act on other characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
