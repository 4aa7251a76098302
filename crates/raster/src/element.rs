//! The elements of a drawing of crate `chart`: one per line.

use tiny_skia::Color;

use crate::DrawError;

/// An element with its attributes as text.
#[derive(Debug)]
pub(crate) struct Element<'a> {
    line: usize,
    pub(crate) name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
    /// The text between its tags.
    pub(crate) text: String,
}

/// The elements of a drawing, in order.
pub(crate) fn elements(svg: &str) -> impl Iterator<Item = Result<Element<'_>, DrawError>> {
    let lines = svg.lines().enumerate().filter(|(_, line)| !matches!(*line, "" | "</svg>"));
    lines.map(|(index, line)| {
        let unknown = || DrawError::Unknown { line: index + 1, what: shortened(line) };
        parse(line, index + 1).ok_or_else(unknown)
    })
}

/// The first letters of a line, for messages.
fn shortened(line: &str) -> String {
    line.chars().take(60).collect()
}

/// Parses the element on line `number`; `None` if it is none.
fn parse(line: &str, number: usize) -> Option<Element<'_>> {
    let rest = line.strip_prefix('<')?;
    let end = rest.find([' ', '>', '/'])?;
    let (name, mut rest) = rest.split_at(end);
    let mut attributes = Vec::new();
    let text = loop {
        rest = rest.trim_start();
        if rest == "/>" {
            break String::new();
        }
        if let Some(inner) = rest.strip_prefix('>') {
            let inner = inner
                .strip_suffix('>')
                .map_or(inner, |inner| inner.rsplit_once("</").map_or(inner, |(inner, _)| inner));
            break unescaped(inner);
        }
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        attributes.push((key, value));
        rest = after;
    };
    Some(Element { line: number, name, attributes, text })
}

/// Replaces entities by their characters.
fn unescaped(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

impl Element<'_> {
    /// The text of attribute `key`; `None` if there is none.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The error that `what` of this element cannot be drawn.
    pub(crate) fn unknown(&self, what: &str) -> DrawError {
        DrawError::Unknown { line: self.line, what: format!("<{}>: {what}", self.name) }
    }

    /// Parses a finite number.
    fn read(&self, value: &str) -> Result<f32, DrawError> {
        let number = value.parse().ok().filter(|number: &f32| number.is_finite());
        number.ok_or_else(|| self.unknown(value))
    }

    /// The attribute `key` as a number; an error if it is missing or no number.
    pub(crate) fn number(&self, key: &str) -> Result<f32, DrawError> {
        self.read(self.get(key).ok_or_else(|| self.unknown(key))?)
    }

    /// The attribute `key` as a number; `default` if it is missing.
    pub(crate) fn number_or(&self, key: &str, default: f32) -> Result<f32, DrawError> {
        self.get(key).map_or(Ok(default), |value| self.read(value))
    }

    /// The attribute `key` as numbers separated by spaces or commas; empty if it is missing.
    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<f32>, DrawError> {
        let words = self.get(key).unwrap_or_default().split([' ', ',']);
        words.filter(|word| !word.is_empty()).map(|word| self.read(word)).collect()
    }

    /// The attribute `key` as a colour of six digits; `None` if it is `none` or missing.
    pub(crate) fn colour(&self, key: &str) -> Result<Option<Color>, DrawError> {
        let value = match self.get(key) {
            None | Some("none") => return Ok(None),
            Some(value) => value,
        };
        let number = value.strip_prefix('#').filter(|digits| digits.len() == 6);
        let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let [_, red, green, blue] = number.ok_or_else(|| self.unknown(value))?.to_be_bytes();
        Ok(Some(Color::from_rgba8(red, green, blue, 255)))
    }

    /// The attribute `points` as pairs of numbers.
    pub(crate) fn points(&self) -> Result<Vec<(f32, f32)>, DrawError> {
        let numbers = self.numbers("points")?;
        Ok(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    /// The rotation in `transform`: degrees, and the point around which; `None` if it is missing.
    pub(crate) fn rotation(&self) -> Result<Option<[f32; 3]>, DrawError> {
        let Some(value) = self.get("transform") else { return Ok(None) };
        let inner = value.strip_prefix("rotate(").and_then(|rest| rest.strip_suffix(')'));
        let numbers = inner.map(|inner| inner.split(' ').map(|word| self.read(word)).collect());
        let numbers: Vec<f32> = numbers.unwrap_or_else(|| Err(self.unknown(value)))?;
        numbers.try_into().map(Some).map_err(|_| self.unknown(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_text_come_back() {
        let line =
            "<text x=\"1.5\" transform=\"rotate(-90 16.0 2.0)\" >a &lt;b&gt; &amp;lt;</text>";
        let element = parse(line, 1).expect("it is an element");
        assert_eq!((element.name, element.text.as_str()), ("text", "a <b> &lt;"));
        assert_eq!(element.number("x").ok(), Some(1.5));
        assert_eq!(element.rotation().ok().flatten(), Some([-90.0, 16.0, 2.0]));
        let line = parse("<polyline points=\"1,2 3,4\" fill=\"none\"/>", 1).expect("an element");
        assert_eq!(line.points().ok(), Some(vec![(1.0, 2.0), (3.0, 4.0)]));
        assert!(line.colour("fill").is_ok_and(|colour| colour.is_none()));
        assert!(parse("<rect x=\"1", 1).is_none());
    }
}
