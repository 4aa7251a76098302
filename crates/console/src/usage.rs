//! What clap found wrong, in one sentence that ends with a remedy.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Which command `error` is of, which `program` has for the arguments of this process, and the
/// sentence about it.
#[must_use]
pub fn sentence(error: &clap::Error, program: &clap::Command) -> (String, String) {
    // Flags that every command has may stand before it.
    let mut words = std::env::args().skip(1).take_while(|word| word != "--");
    let command = words.find(|word| program.find_subcommand(word).is_some());
    let name = program.get_name();
    let name = command.map_or_else(|| name.to_owned(), |command| format!("{name} {command}"));
    let text = text(error, &name);
    (name, text)
}

fn text(error: &clap::Error, name: &str) -> String {
    match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return format!("no command given; see {name} --help");
        }
        ErrorKind::ValueValidation => {
            if let (Some(flag), Some(source)) = (argument(error), std::error::Error::source(error))
            {
                return format!("{flag}: {source}");
            }
        }
        ErrorKind::UnknownArgument => {
            if let Some((flag, value)) = negative(argument(error), std::env::args()) {
                return format!("{flag} {value}: a negative value; give 0 or more, as it allows");
            }
        }
        ErrorKind::MissingRequiredArgument => {
            if let Some(argument) = argument(error) {
                return format!("{argument} is missing; see {name} --help");
            }
        }
        _ => {}
    }
    let rendered = error.render().to_string();
    let mut paragraphs = rendered.split("\n\n");
    let first = squeeze(paragraphs.next().unwrap_or_default());
    let first = first.strip_prefix("error: ").unwrap_or(&first);
    let mut tips = rendered.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    match tips.next() {
        Some(tip) => format!("{first}; {tip}"),
        None => format!("{first}; see {name} --help"),
    }
}

/// The flag before what clap takes for another flag, and that: a number below zero.
fn negative(
    unknown: Option<&str>,
    words: impl Iterator<Item = String>,
) -> Option<(String, String)> {
    let is_negative = |word: &str| {
        let mut letters = word.chars();
        letters.next() == Some('-') && letters.next().is_some_and(|one| one.is_ascii_digit())
    };
    let unknown = unknown.filter(|word| is_negative(word))?;
    let words: Vec<String> = words.collect();
    let pairs = words.windows(2);
    let mut pairs = pairs.filter(|pair| pair[1].starts_with(unknown) && pair[0].starts_with('-'));
    pairs.next().map(|pair| (pair[0].clone(), pair[1].clone()))
}

/// The first argument that the error is about, as it is written: `--local`.
fn argument(error: &clap::Error) -> Option<&str> {
    let text = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(text) => text,
        ContextValue::Strings(texts) => texts.first()?,
        _ => return None,
    };
    text.split(' ').next().map(|name| name.trim_end_matches('.'))
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_value_is_told_with_its_flag() {
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
        let told = |unknown, text| negative(Some(unknown), line(text));
        let pair = |flag: &str, value: &str| Some((flag.to_owned(), value.to_owned()));
        // clap names the first letter of what it takes for flags.
        assert_eq!(told("-5", "afar bench x --duration -5s"), pair("--duration", "-5s"));
        assert_eq!(told("-1", "afar load kv -n -1"), pair("-n", "-1"));
        assert_eq!(told("-x", "afar bench --duration -x"), None);
        assert_eq!(told("-5", "afar bench -5"), None);
        assert_eq!(negative(None, line("afar")), None);
    }
}
