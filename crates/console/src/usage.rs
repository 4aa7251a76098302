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
                return format!("{flag}: {}", mistyped(value(error), source));
            }
        }
        ErrorKind::InvalidValue => {
            if let Some(flag) = argument(error) {
                return match value(error).unwrap_or_default() {
                    "" => format!("{flag}: its value is missing; see {name} --help"),
                    value => format!("{flag}: \"{value}\": give {}", choices(error)),
                };
            }
        }
        ErrorKind::UnknownArgument => {
            if let Some((flag, value)) = negative(argument(error), std::env::args()) {
                return format!("{flag} {value}: a negative value; give 0 or more, as it allows");
            }
            if let Some(word) = argument(error).filter(|word| is_negative(word)) {
                return format!("{word}: a negative value stands nowhere; see {name} --help");
            }
        }
        ErrorKind::MissingRequiredArgument => {
            if let Some(argument) = context(error) {
                return format!("{} is missing; see {name} --help", any_of(argument));
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
    let unknown = unknown.filter(|word| is_negative(word))?;
    let words: Vec<String> = words.collect();
    let pairs = words.windows(2);
    let mut pairs = pairs.filter(|pair| pair[1].starts_with(unknown) && pair[0].starts_with('-'));
    pairs.next().map(|pair| (pair[0].clone(), pair[1].clone()))
}

fn is_negative(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
}

/// What is wrong with a value that has a type: ours say it themselves, those of numbers do not.
fn mistyped(value: Option<&str>, source: &(dyn std::error::Error + 'static)) -> String {
    let value = value.unwrap_or_default();
    if source.is::<std::num::ParseIntError>() {
        return format!("\"{value}\": not a whole number; write one such as 4");
    }
    if source.is::<std::num::ParseFloatError>() {
        return format!("\"{value}\": not a number; write one such as 0.5");
    }
    let said = source.to_string();
    match said.split_once(" is not in ").and_then(|(_, range)| bounds(range)) {
        Some(range) => format!("\"{value}\": give a whole number {range}"),
        None => said,
    }
}

/// A range as clap prints it, in words.
fn bounds(range: &str) -> Option<String> {
    let (low, high) = range.split_once("..")?;
    let (high, is_open) = match high.strip_prefix('=') {
        Some(high) => (high, false),
        None => (high, true),
    };
    let high = high.parse::<u128>().ok();
    let high = high.map(|high| if is_open { high.saturating_sub(1) } else { high });
    // The end of a type is no bound that somebody chose.
    let ends = [u128::from(u32::MAX), u128::from(u64::MAX), i64::MAX as u128];
    let high = high.filter(|high| !ends.contains(high));
    match (low.is_empty(), high) {
        (false, Some(high)) => Some(format!("from {low} to {high}")),
        (false, None) => Some(format!("of {low} or more")),
        (true, Some(high)) => Some(format!("of {high} or less")),
        (true, None) => None,
    }
}

/// The words that an argument may be, or the one that was meant.
fn choices(error: &clap::Error) -> String {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::SuggestedValue) {
        return word.clone();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(words)) => match words.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "another value".to_owned(),
        },
        _ => "another value".to_owned(),
    }
}

/// The value that cannot be.
fn value(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidValue)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// The first argument that the error is about, as it is written: `--local`.
fn argument(error: &clap::Error) -> Option<&str> {
    context(error).map(name_of)
}

fn context(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

// Without its value.
fn name_of(argument: &str) -> &str {
    argument.split(' ').next().unwrap_or_default().trim_end_matches('.')
}

// Of a group, as `<--this <VALUE>|--that <VALUE>>`, any one is enough.
fn any_of(argument: &str) -> String {
    let is_group = argument.starts_with("<--");
    let members = argument.split('|').filter(|_| is_group);
    let members: Vec<&str> =
        members.map(|member| name_of(member.trim_start_matches('<'))).collect();
    match members.is_empty() {
        true => name_of(argument).to_owned(),
        false => members.join(" or "),
    }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> String {
        use clap::{Arg, Command, value_parser};

        let command = Command::new("x")
            .arg(Arg::new("count").long("count").value_parser(value_parser!(u16).range(1..=64)))
            .arg(Arg::new("least").long("least").value_parser(value_parser!(u32).range(1..)))
            .arg(Arg::new("skew").long("skew").value_parser(value_parser!(f64)))
            .arg(Arg::new("how").long("how").value_parser(["spin", "sleep"]))
            .arg(Arg::new("this").long("this").group("either"))
            .arg(Arg::new("that").long("that").group("either"))
            .arg(Arg::new("more").long("more").requires("either"))
            .arg(Arg::new("file"));
        let words = [&["x"], words].concat();
        text(&command.try_get_matches_from(words).expect_err("it cannot be"), "x")
    }

    #[test]
    fn a_mistyped_value_is_told_with_what_is_expected() {
        for (words, wanted) in [
            (&["--count", "x"][..], "--count: \"x\": not a whole number; write one such as 4"),
            (&["--count", "65"], "--count: \"65\": give a whole number from 1 to 64"),
            (&["--least", "0"], "--least: \"0\": give a whole number of 1 or more"),
            (&["--skew", "x"], "--skew: \"x\": not a number; write one such as 0.5"),
            (&["--how", "x"], "--how: \"x\": give spin or sleep"),
            (&["--how"], "--how: its value is missing; see x --help"),
            (&["--more", "x"], "--this or --that is missing; see x --help"),
            (&["a", "-1"], "-1: a negative value stands nowhere; see x --help"),
        ] {
            let said = told(words);
            assert!(said.starts_with(wanted), "{words:?}: {said}");
        }
    }

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
