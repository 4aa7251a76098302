//! What the parts of a drawing stand for, as the page's script reads it: most of a page is this,
//! so words that hints share are written once.
//!
//! An array of words and of hints. Words hold until others come, and have a gap for each number of
//! a hint. A hint is `[x, y, numbers]` at a point, `[x, y, width, height, numbers]` at a rectangle;
//! its numbers are one text, with a bar between two.

use std::fmt::Write as _;

use chart::Hint;

const GAP: char = '\u{1}';

/// Hints as JSON, in the order in which arrow keys find them.
pub(super) fn written(hints: &[Hint]) -> String {
    let mut text = "[".to_owned();
    let mut last = None;
    for hint in hints {
        let (words, numbers) = parted(&hint.text);
        if text.len() > 1 {
            text.push(',');
        }
        if last.as_ref() != Some(&words) {
            text += &json(&words);
            text.push(',');
            last = Some(words);
        }
        let [left, top, width, height] = hint.place.map(|value| (value * 10.0).round() / 10.0);
        let _infallible = write!(text, "[{left},{top},");
        if width != 0.0 || height != 0.0 {
            let _infallible = write!(text, "{width},{height},");
        }
        text += &json(&numbers.join("|"));
        text.push(']');
    }
    text + "]"
}

// The words around the numbers of a text, and the numbers.
fn parted(text: &str) -> (String, Vec<String>) {
    let (mut words, mut numbers) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let is_inside = |&(at, c): &(usize, char)| {
            let next = from[at + c.len_utf8()..].chars().next();
            let has_digit = next.is_some_and(|next| next.is_ascii_digit());
            c.is_ascii_digit() || (matches!(c, '.' | ',') && has_digit)
        };
        let length =
            from.char_indices().find(|one| !is_inside(one)).map_or(from.len(), |one| one.0);
        words.extend(before.chars().filter(|&c| c != GAP).chain([GAP]));
        numbers.push(from[..length].to_owned());
        rest = &from[length..];
    }
    words.extend(rest.chars().filter(|&c| c != GAP));
    (words, numbers)
}

/// A text as JSON within a script, which no text can end.
fn json(text: &str) -> String {
    let text = serde_json::to_string(text).expect("a text has a JSON form");
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    // As the page's script reads them.
    fn read(text: &str) -> Vec<(Vec<f64>, String)> {
        let items: Vec<Value> = serde_json::from_str(text).expect("it is JSON");
        let (mut words, mut hints) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Value::String(text) => words = text.split(GAP).map(str::to_owned).collect(),
                Value::Array(mut hint) => {
                    let numbers = hint.pop().expect("it has numbers");
                    let mut numbers = numbers.as_str().expect("they are a text").split('|');
                    let filled =
                        words.iter().map(|word| format!("{word}{}", numbers.next().unwrap_or("")));
                    let filled = filled.collect();
                    assert_eq!(numbers.next(), None);
                    let place = hint.iter().map(|value| value.as_f64().expect("a number"));
                    hints.push((place.collect(), filled));
                }
                other => panic!("{other}"),
            }
        }
        hints
    }

    #[test]
    fn no_words_end_the_script() {
        assert_eq!(json("</script>\"é"), "\"\\u003c/script>\\\"é\"");
    }

    #[test]
    fn what_is_written_is_what_is_read_and_words_are_written_once() {
        let texts = [
            "fetches: time, µs 4.96, share 0",
            "fetches: time, µs 1,204.5, share 0.25",
            "no numbers at all",
            "25 % local, rtt 3 µs: 1.5 [1.2, 2.0]",
            "ends with 7",
        ];
        let places = [[1.0, 2.04, 0.0, 0.0], [64.0, 290.0, 0.0, 12.5]];
        let hints: Vec<Hint> = (0..)
            .zip(texts)
            .map(|(index, text)| Hint { place: places[index % 2], text: text.to_owned() })
            .collect();
        let written = written(&hints);
        let found = read(&written);
        assert_eq!(found.iter().map(|hint| hint.1.as_str()).collect::<Vec<_>>(), texts);
        assert_eq!([&found[0].0, &found[1].0], [&vec![1.0, 2.0], &vec![64.0, 290.0, 0.0, 12.5]]);
        assert_eq!(written.matches("share").count(), 1, "{written}");
        assert_eq!(super::written(&[]), "[]");
    }
}
