//! Parsing of TOML, with errors on one line.

use serde::de::DeserializeOwned;

/// An error in a text, and its place.
#[derive(Debug)]
pub struct Wrong {
    /// Line number from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// Parses a text.
///
/// # Errors
/// The first error in the text; for an unknown key it lists the known ones.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text[..at].matches('\n').count() + 1;
        Wrong { line, message: told(text, error.message()) }
    })
}

/// The parser's message about a text, on one line, with a remedy if the message has none.
#[must_use]
pub fn told(text: &str, message: &str) -> String {
    if text.trim_start().starts_with('{') {
        return "this is JSON, and TOML is wanted; give a file of KEY = VALUE, no record of afar"
            .to_owned();
    }
    let words: Vec<&str> = message.split_whitespace().collect();
    let message = words.join(" ");
    let remedy = match () {
        () if message.ends_with("expected a sequence") => {
            "; give a list: values in brackets, separated by commas"
        }
        () if text.parse::<toml::Table>().is_err() => {
            "; this is no TOML: write KEY = VALUE, texts in quotes, and [TABLE] above its keys"
        }
        () if message.starts_with("missing field") => {
            "; write it as KEY = VALUE, or as a [TABLE] where it has keys of its own"
        }
        () => "",
    };
    message + remedy
}

/// `file:line:column` of offset `at`, each from 1.
#[must_use]
pub fn place(name: &str, text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
    format!("{name}:{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        #[expect(dead_code, reason = "it is only read")]
        rtt: Vec<String>,
    }

    #[test]
    fn what_is_wrong_has_a_remedy() {
        for (text, wanted) in [
            ("{\n\"schema\": \"afar.run/2\"}", "this is JSON, and TOML is wanted"),
            ("rtt = \"5us\"", "expected a sequence; give a list: values in brackets"),
            ("root:x:0", "; this is no TOML: write KEY = VALUE"),
            ("", "missing field `rtt`; write it as KEY = VALUE"),
            ("rrt = []", "unknown field `rrt`, expected `rtt`"),
        ] {
            let Wrong { message, .. } = parse::<Document>(text).expect_err(text);
            assert!(message.contains(wanted), "{text}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
