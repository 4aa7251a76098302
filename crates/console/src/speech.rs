//! How much a command says and in which colours: the flags that every command has.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};

/// The flags in force since [`SpeechFlags::hold`].
static HELD: OnceLock<SpeechFlags> = OnceLock::new();

/// Flags of every command.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Every command")]
pub struct SpeechFlags {
    /// Say nothing but errors and what was asked for: no progress, no notes, and no text of an
    /// answer that goes to a file
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more: which files were read and written, with which settings, and how long it took
    #[arg(long, short, global = true)]
    pub verbose: bool,

    /// When to colour: auto, on a terminal, unless NO_COLOR is set or TERM is dumb
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", global = true)]
    pub color: When,

    /// Show no progress: no live line, and no line for each run that has ended
    #[arg(long, global = true)]
    pub no_progress: bool,
}

/// When there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// In files and pipes, too
    Always,
    /// Nowhere
    Never,
}

/// Destination of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Answer,
    /// Standard error.
    Message,
}

/// Meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// In order: green.
    Good,
    /// Wrong: red and bold.
    Bad,
}

impl SpeechFlags {
    /// Puts these flags in force for the rest of this process; only the first call counts.
    pub fn hold(self) {
        let _first = HELD.set(self);
    }
}

impl When {
    /// The value of `--color` in a command line that cannot be parsed as a whole.
    fn of_words(words: impl Iterator<Item = String>) -> Self {
        let mut words = words.take_while(|word| word != "--");
        let mut when = Self::Auto;
        while let Some(word) = words.next() {
            let value = match word.strip_prefix("--color") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('=').map(str::to_owned),
                None => None,
            };
            when = value.and_then(|value| Self::from_str(&value, false).ok()).unwrap_or(when);
        }
        when
    }

    /// Whether texts for `stream` have colours.
    fn is_on(self, stream: Stream) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let variable = |name: &str| std::env::var_os(name).filter(|one| !one.is_empty());
                // https://no-color.org
                variable("NO_COLOR").is_none()
                    && variable("TERM").is_some_and(|term| term != "dumb")
                    && match stream {
                        Stream::Answer => std::io::stdout().is_terminal(),
                        Stream::Message => std::io::stderr().is_terminal(),
                    }
            }
        }
    }
}

/// Whether `--quiet` was given.
#[must_use]
pub fn is_quiet() -> bool {
    HELD.get().is_some_and(|held| held.quiet)
}

/// Whether `--verbose` was given.
#[must_use]
pub fn is_verbose() -> bool {
    HELD.get().is_some_and(|held| held.verbose)
}

/// Whether progress is to be shown.
pub(crate) fn shows_progress() -> bool {
    !HELD.get().is_some_and(|held| held.quiet || held.no_progress)
}

/// Whether texts for a stream have colours.
#[must_use]
pub fn has_color(stream: Stream) -> bool {
    let when = HELD.get().map(|held| held.color);
    when.unwrap_or_else(|| When::of_words(std::env::args())).is_on(stream)
}

/// The text in the colour of `tone`, if texts for the stream have colours.
#[must_use]
pub fn tinted(stream: Stream, tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "1;31",
    };
    if has_color(stream) { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_read_says_when_to_colour() {
        let of = |line: &str| When::of_words(line.split(' ').map(str::to_owned));
        assert_eq!(of("afar run --color never --nonsense"), When::Never);
        assert_eq!(of("afar --color=always run"), When::Always);
        assert_eq!(of("afar run --color sometimes"), When::Auto);
        assert_eq!(of("afar run -- ls --color=always"), When::Auto);
    }
}
