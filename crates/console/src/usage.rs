//! Errors of clap as one sentence that ends with a remedy.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;

/// The name of the command that the arguments of this process are for, with its parents: `afar plan
/// cost`.
#[must_use]
pub fn name(program: &clap::Command) -> String {
    command_of(program, &words()).0
}

/// The command that `error` is about, and the sentence for it.
#[must_use]
pub fn sentence(error: &clap::Error, program: &clap::Command) -> (String, String) {
    let words = words();
    let (name, command) = command_of(program, &words);
    let text = needed_by(error, program, &words).unwrap_or_else(|| text(error, &name));
    (name, as_typed(text, command, &words))
}

/// The word of `among` that is nearest to `word`, the first of several: at most a third of its
/// letters may differ, or one of a short word. `None` if none is near.
#[must_use]
pub fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = among.into_iter().map(|other| (distance(word, other), other));
    let (distance, other) = near.min_by_key(|one| one.0)?;
    (distance <= (word.chars().count() / 3).max(1)).then_some(other)
}

// Levenshtein distance: how many letters must be changed, added or removed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in (1..).zip(one.chars()) {
        let mut diagonal = std::mem::replace(&mut row[0], place);
        for (index, another) in (1..).zip(&other) {
            let changed = diagonal + usize::from(letter != *another);
            diagonal = row[index];
            row[index] = changed.min(diagonal + 1).min(row[index - 1] + 1);
        }
    }
    row[other.len()]
}

/// The flags of the command that is run, with their values: those that were given, and those that
/// have a value by default or from the environment. For `--verbose`.
#[must_use]
pub fn settings(program: &clap::Command, matches: &clap::ArgMatches) -> Vec<String> {
    let (mut command, mut matches, mut names) = (program, matches, Vec::new());
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, inner);
        names.push(name);
    }
    let name = names.join(" ");
    let of = |wanted: ValueSource| -> Vec<String> {
        let of_it =
            |flag: &&clap::Arg| matches.value_source(flag.get_id().as_str()) == Some(wanted);
        let flags = command.get_arguments().filter(of_it);
        flags.filter_map(|flag| setting(flag, matches)).collect()
    };
    let sources = [
        (ValueSource::CommandLine, "as given"),
        (ValueSource::EnvVariable, "by the environment"),
        (ValueSource::DefaultValue, "by default"),
    ];
    let lines = sources.into_iter().map(|(source, how)| (of(source), how));
    let lines = lines.filter(|(flags, _)| !flags.is_empty());
    lines.map(|(flags, how)| format!("{name}, {how}: {}", flags.join(" "))).collect()
}

/// A flag and its value, as they are written; nothing of a switch that is off.
fn setting(flag: &clap::Arg, matches: &clap::ArgMatches) -> Option<String> {
    let raw = matches.get_raw(flag.get_id().as_str())?;
    let words: Vec<String> = raw.map(|word| word.to_string_lossy().into_owned()).collect();
    let value = words.join(if flag.is_positional() { " " } else { "," });
    let name = flag.get_long().map(|name| format!("--{name}"));
    match (name, flag.get_action()) {
        (Some(name), clap::ArgAction::SetTrue) => (value == "true").then_some(name),
        (Some(name), _) => Some(format!("{name} {value}")),
        (None, _) => Some(value),
    }
}

/// What the user wrote, without the command of a user's own.
fn words() -> Vec<String> {
    std::env::args().skip(1).take_while(|word| word != "--").collect()
}

/// The command that the words name, and its full name. Flags may stand before it.
fn command_of<'a>(program: &'a clap::Command, words: &[String]) -> (String, &'a clap::Command) {
    let mut command = program;
    let mut name = program.get_name().to_owned();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        if let Some(found) = command.find_subcommand(word) {
            command = found;
            name += " ";
            name += word;
        }
    }
    (name, command)
}

/// The sentence for an error of command `name`.
fn text(error: &clap::Error, name: &str) -> String {
    let told = match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Some(format!("no command given; see {name} --help"))
        }
        ErrorKind::InvalidSubcommand => no_command(error, name),
        ErrorKind::ValueValidation => {
            argument(error).zip(std::error::Error::source(error)).map(|(flag, source)| {
                format!("{flag}: {}", mistyped(text_of(error, ContextKind::InvalidValue), source))
            })
        }
        ErrorKind::InvalidValue => argument(error).map(|flag| {
            match text_of(error, ContextKind::InvalidValue).unwrap_or_default() {
                "" => format!("{flag}: its value is missing; see {name} --help"),
                value => format!("{flag}: \"{value}\": give {}", choices(error, value, name)),
            }
        }),
        ErrorKind::UnknownArgument => argument(error).map(|word| unknown(error, word, name)),
        ErrorKind::MissingRequiredArgument => {
            context(error).map(|one| format!("{} is missing; see {name} --help", any_of(one)))
        }
        ErrorKind::ArgumentConflict => conflict(error),
        _ => None,
    };
    told.unwrap_or_else(|| {
        let rendered = error.render().to_string();
        let first = squeeze(rendered.split("\n\n").next().unwrap_or_default());
        format!("{}; see {name} --help", first.strip_prefix("error: ").unwrap_or(&first))
    })
}

/// The sentence for a command that does not exist; `None` if clap does not name it.
fn no_command(error: &clap::Error, name: &str) -> Option<String> {
    let word = text_of(error, ContextKind::InvalidSubcommand)?;
    let near = suggested(error, ContextKind::SuggestedSubcommand);
    Some(match near.filter(|near| nearest(word, [*near]).is_some()) {
        Some(near) => format!("there is no command \"{word}\"; give {near}"),
        None => format!("there is no command \"{word}\"; {name} --help has those there are"),
    })
}

/// The sentence for an unknown flag, or for one argument too many.
fn unknown(error: &clap::Error, word: &str, name: &str) -> String {
    if let Some((flag, value)) = negative(Some(word), std::env::args()) {
        return format!("{flag} {value}: a negative value; give 0 or more, as it allows");
    }
    if is_negative(word) {
        return format!("{word}: a negative value stands nowhere; see {name} --help");
    }
    if !word.starts_with('-') {
        return format!("\"{word}\" is one argument too many; see {name} --help");
    }
    let near = suggested(error, ContextKind::SuggestedArg);
    match near.filter(|near| nearest(word, [*near]).is_some()) {
        Some(near) => format!("there is no flag {word}; give {near}"),
        None => format!("there is no flag {word}; {name} --help has those there are"),
    }
}

/// The sentence for flags that exclude each other.
fn conflict(error: &clap::Error) -> Option<String> {
    let one = argument(error)?;
    let others: Vec<&str> = match error.get(ContextKind::PriorArg)? {
        ContextValue::String(other) => vec![name_of(other)],
        ContextValue::Strings(others) => others.iter().map(|other| name_of(other)).collect(),
        _ => return None,
    };
    match &others[..] {
        [other] if *other == one => Some(format!("{one} is given twice; give it once")),
        [other] => Some(format!("{one} and {other} exclude each other; leave one of them out")),
        others => Some(format!("{one} excludes {}; leave it out, or those", others.join(", "))),
    }
}

/// The sentence for a flag that needs another one. clap does not say which flag that is: the one
/// without which nothing is missing.
fn needed_by(error: &clap::Error, program: &clap::Command, words: &[String]) -> Option<String> {
    let missing = context(error).filter(|_| error.kind() == ErrorKind::MissingRequiredArgument)?;
    let mut program = program.clone();
    program.build();
    let (_, command) = command_of(&program, words);
    let tail = std::env::args().skip(1 + words.len());
    let tail: Vec<String> = tail.collect();
    for (index, word) in words.iter().enumerate().filter(|(_, word)| word.starts_with('-')) {
        let Some(flag) = command.get_arguments().find(|flag| is_written(flag, word)) else {
            continue;
        };
        let takes = flag.get_num_args().is_some_and(|count| count.min_values() > 0);
        let count = 1 + usize::from(takes && !word.contains('='));
        let rest = words[..index].iter().chain(words.iter().skip(index + count)).chain(&tail);
        let rest = std::iter::once("afar".to_owned()).chain(rest.cloned());
        let without = program.clone().try_get_matches_from(rest);
        if without.is_ok_and(|_| true) {
            let word = word.split('=').next().unwrap_or_default();
            let what = any_of(missing);
            return Some(format!("{word} needs {what}; add that, or leave {word} out"));
        }
    }
    None
}

/// Whether `word` is this flag, by any of its names.
fn is_written(flag: &clap::Arg, word: &str) -> bool {
    let word = word.split('=').next().unwrap_or_default();
    let is_long = |name: &str| word.strip_prefix("--") == Some(name);
    flag.get_long().is_some_and(is_long)
        || flag.get_all_aliases().unwrap_or_default().into_iter().any(is_long)
        || flag.get_short().is_some_and(|short| word.strip_prefix('-') == Some(&short.to_string()))
}

/// The sentence with the flag at its start as the user wrote it.
fn as_typed(text: String, command: &clap::Command, words: &[String]) -> String {
    let Some((flag, rest)) = text.split_once(':').filter(|(flag, _)| flag.starts_with("--")) else {
        return text;
    };
    let known = command.get_arguments().find(|known| is_written(known, flag));
    let typed = known.and_then(|known| words.iter().find(|word| is_written(known, word)));
    match typed {
        Some(typed) => format!("{}:{rest}", typed.split('=').next().unwrap_or_default()),
        None => text,
    }
}

/// The flag and the negative number after it, which clap takes for another flag.
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

/// Whether `word` is a negative number.
fn is_negative(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
}

/// What is wrong with a value: messages of our own types, better ones for numbers.
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

/// A range as clap prints it, in words; `None` if it has no bound.
fn bounds(range: &str) -> Option<String> {
    let (low, high) = range.split_once("..")?;
    let (high, is_open) = match high.strip_prefix('=') {
        Some(high) => (high, false),
        None => (high, true),
    };
    let high = high.parse::<u128>().ok();
    let high = high.map(|high| if is_open { high.saturating_sub(1) } else { high });
    // The limit of a type is no bound that was chosen.
    let ends = [u128::from(u32::MAX), u128::from(u64::MAX), i64::MAX as u128];
    let high = high.filter(|high| !ends.contains(high) && !ends.contains(&(high + 1)));
    match (low.is_empty(), high) {
        (false, Some(high)) => Some(format!("from {low} to {high}")),
        (false, None) => Some(format!("of {low} or more")),
        (true, Some(high)) => Some(format!("of {high} or less")),
        (true, None) => None,
    }
}

/// The values that an argument may have, or the one nearest to `value`.
fn choices(error: &clap::Error, value: &str, name: &str) -> String {
    const SHOWN_MAX: usize = 12;
    let words = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(words)) => &words[..],
        _ => &[],
    };
    if let Some(word) = nearest(value, words.iter().map(String::as_str)) {
        return word.to_owned();
    }
    // Of many, those that begin as what was written.
    let near: Vec<String> =
        words.iter().filter(|word| !value.is_empty() && word.starts_with(value)).cloned().collect();
    let words = if near.is_empty() { words } else { &near[..] };
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) if others.len() < SHOWN_MAX => {
            format!("{} or {last}", others.join(", "))
        }
        _ => format!("one that {name} --help names"),
    }
}

/// The text in a context of the error; `None` if it has none.
fn text_of(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// clap's suggestion.
fn suggested(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

/// The first argument that the error is about, without its value: `--local`.
fn argument(error: &clap::Error) -> Option<&str> {
    context(error).map(name_of)
}

/// The first argument that the error is about, as clap writes it.
fn context(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

// The name of an argument, without its value.
fn name_of(argument: &str) -> &str {
    let word = argument.split(' ').next().unwrap_or_default();
    // An argument that may be left out is in brackets.
    let word = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
    word.split("[=").next().unwrap_or_default().trim_end_matches('.')
}

// The names in a group such as `<--this <VALUE>|--that <VALUE>>`, of which any one is enough.
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

/// The text with single spaces between words.
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
            .arg(Arg::new("of").long("of").value_parser(["dime-fig3", "dime-fig4", "gao-fig5"]))
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
            (&["--of", "dime"], "--of: \"dime\": give dime-fig3 or dime-fig4"),
            (&["--of", "x"], "--of: \"x\": give dime-fig3, dime-fig4 or gao-fig5"),
            (&["--how"], "--how: its value is missing; see x --help"),
            (&["--more", "x"], "--this or --that is missing; see x --help"),
            (&["a", "-1"], "-1: a negative value stands nowhere; see x --help"),
        ] {
            let said = told(words);
            assert!(said.starts_with(wanted), "{words:?}: {said}");
        }
    }

    #[test]
    fn flags_that_do_not_go_together_are_told_with_what_to_do() {
        let twice = ["--this", "1", "--that", "2"];
        let words = "--this and --that exclude each other; leave one of them out";
        assert_eq!(told(&twice), words);
        assert_eq!(told(&["--how", "spin", "--how", "spin"]), "--how is given twice; give it once");
        assert_eq!(told(&["--hows", "spin"]), "there is no flag --hows; give --how");
        let none = "there is no flag --nonsense; x --help has those there are";
        assert_eq!(told(&["--nonsense"]), none);
        assert_eq!(told(&["a", "b"]), "\"b\" is one argument too many; see x --help");
    }

    #[test]
    fn settings_are_told_by_their_source() {
        use clap::{Arg, ArgAction, Command};

        let flag = |name: &'static str| Arg::new(name).long(name);
        let inner = Command::new("kv")
            .arg(flag("rate").default_value("5"))
            .arg(flag("seed").default_value("1"))
            .arg(flag("fill").action(ArgAction::SetTrue))
            .arg(flag("verify").action(ArgAction::SetTrue))
            .arg(flag("unset"))
            .arg(Arg::new("uri"));
        let program = Command::new("x").subcommand(Command::new("load").subcommand(inner));
        let words = ["x", "load", "kv", "redis://a", "--rate", "9", "--fill"];
        let matches = program.clone().try_get_matches_from(words).expect("it can be");
        let wanted =
            ["load kv, as given: --rate 9 --fill redis://a", "load kv, by default: --seed 1"];
        assert_eq!(settings(&program, &matches), wanted);
    }

    #[test]
    fn a_word_is_near_if_few_letters_differ() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", "")), (3, 3));
        assert_eq!(nearest("half-dupelx", ["full-duplex", "half-duplex"]), Some("half-duplex"));
        assert_eq!(nearest("mru", ["fifo", "lru"]), Some("lru"));
        assert_eq!(nearest("tcsh", ["zsh", "fish"]), None);
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
