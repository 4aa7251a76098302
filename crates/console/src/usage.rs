//! What clap found wrong, in one sentence that ends with a remedy.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The line to print about `error`, which `program` has for the arguments of this process.
#[must_use]
pub fn sentence(error: &clap::Error, program: &clap::Command) -> String {
    let words = std::env::args().nth(1);
    let command = words.filter(|word| program.find_subcommand(word).is_some());
    let name = program.get_name();
    let name = command.map_or_else(|| name.to_owned(), |command| format!("{name} {command}"));
    format!("{name}: {}\n", text(error, &name))
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
