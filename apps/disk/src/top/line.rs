//! Parses a line of Prometheus' text format.

use std::collections::BTreeMap;

/// A sample: a metric's name, labels and value.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Parses a finite number or `+Inf`; `None` for anything else.
pub(super) fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

impl Line {
    /// Parses `name{label="value",...} number`; `None` if the line has another form.
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

    /// The value of a label as a number; `None` if it is missing or none.
    pub(super) fn number(&self, label: &str) -> Option<u32> {
        self.labels.get(label)?.parse().ok()
    }
}

// Reads a quoted value up to its closing quote; returns it unescaped, and the rest of the line.
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

/// Replaces control characters, which a terminal would act on.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
