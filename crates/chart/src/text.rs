//! Widths of texts.

/// The font size of a drawing.
const FONT: f64 = 13.0;
/// The room of an entry of a key besides its name: its square and the gaps.
const KEY: f64 = 34.0;

/// Advance of each character from the space to `~`, in hundredths of the font size: those of
/// `DejaVu` Sans, the widest of the fonts that a drawing names.
const ADVANCE: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75,
    79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35,
    63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
];
/// Advance of every other character: at least that of `µ`, `×` and `≤`.
const OTHER: u8 = 84;

/// The width of a text in the widest of the fonts that a drawing names.
#[must_use]
pub fn text_width(text: &str) -> f64 {
    let advance = |letter: char| {
        let at = usize::try_from(u32::from(letter)).ok().and_then(|code| code.checked_sub(32));
        f64::from(at.and_then(|at| ADVANCE.get(at)).copied().unwrap_or(OTHER))
    };
    text.chars().map(advance).sum::<f64>() / 100.0 * FONT
}

/// The width of an entry of a key with this name, gap included.
#[must_use]
pub fn key_width(name: &str) -> f64 {
    KEY + text_width(name)
}

/// A text in lines no wider than `width`, unless a single word is wider.
#[must_use]
pub fn wrap(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            line.push_str(word);
        } else if text_width(line) + text_width(" ") + text_width(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_more_room() {
        // As DejaVu Sans has them: 0.97 and 0.28 of its height.
        assert!((text_width("mm") - 25.2).abs() < 0.1);
        assert!((text_width("ll") - 7.3).abs() < 0.1);
        assert!((text_width("µ~") - 21.8).abs() < 0.1);
        assert!((key_width("") - KEY).abs() < 1e-9);
    }

    #[test]
    fn lines_are_as_wide_as_there_is_room() {
        let text = "memory mmmm mmmm far away";
        for width in [10.0, 60.0, 100.0, 1000.0] {
            let lines = wrap(text, width);
            assert_eq!(lines.join(" "), text);
            assert!(lines.iter().all(|line| text_width(line) <= width || !line.contains(' ')));
            for pair in lines.windows(2) {
                let word = pair[1].split(' ').next().expect("a line has a word");
                assert!(text_width(&format!("{} {word}", pair[0])) > width);
            }
        }
        assert_eq!(wrap("", 10.0), [""]);
    }
}
