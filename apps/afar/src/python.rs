//! The flags of commands in the Python package: names for the program, types for type checkers.
//!
//! Both files are made from clap's definitions by the test below, so that they cannot differ:
//! `AFAR_BLESS=1 cargo test -p afar python` writes them.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::Cli;

/// Commands for which the package has functions.
const COMMANDS: [&[&str]; 14] = [
    &["run"],
    &["sweep"],
    &["sim"],
    &["loop"],
    &["bench"],
    &["serve"],
    &["predict"],
    &["report"],
    &["plan", "cost"],
    &["plan", "latency"],
    &["plan", "place"],
    &["plan", "admit"],
    &["plan", "pool"],
    &["plan", "fleet"],
];

/// Flags that the package passes itself, or that make afar print something else than a record.
const NOT_KEYWORDS: [&str; 8] =
    ["help", "version", "json", "ready-fd", "list", "print", "dry-run", "table"];

/// Reserved words of Python; a flag of that name gets an underscore behind it.
const RESERVED: [&str; 12] =
    ["and", "as", "assert", "class", "def", "for", "from", "global", "import", "in", "is", "with"];

/// Types by the name of a flag's value; all others are `Text`.
const TYPES: [(&str, &str); 13] = [
    ("DIR", "Path"),
    ("DIRECTORY", "Path"),
    ("FILE", "Path"),
    ("N", "Number"),
    ("NUMBER", "Number"),
    ("PACKETS", "Number"),
    ("PAGES", "Number"),
    ("PERCENT", "Number"),
    ("RATE", "Rate"),
    ("RECORD", "Path"),
    ("SHARE", "Share"),
    ("SIZE", "Size"),
    ("TIME", "Time"),
];

const WORDS_HEAD: &str = r#""""The words of the flags of each command.

Made from the definitions of the program; do not edit by hand.
"""

from __future__ import annotations

from typing import Dict, Tuple

# By command and name: the flag, and the name of its value; empty for a switch, with * at its end
# for a flag that may be given several times.
FLAGS: Dict[str, Dict[str, Tuple[str, str]]] = {
"#;

const TYPES_HEAD: &str = r#""""The types of the flags of each command, for checkers alone.

Made from the definitions of the program; do not edit by hand.
"""

from __future__ import annotations

import datetime
import os
from typing import Mapping, Sequence, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Number = Union[str, int, float]
Size = Union[str, int, float]
Share = Union[str, float]
Rate = Union[str, int]
Time = Union[str, int, datetime.timedelta]
Text = Union[str, int, float, "os.PathLike[str]"]
# One of them, or several.
Paths = Union[Path, Sequence[Path]]
Numbers = Union[Number, Sequence[Number]]
Sizes = Union[Size, Sequence[Size]]
Shares = Union[Share, Sequence[Share]]
Rates = Union[Rate, Sequence[Rate]]
Times = Union[Time, Sequence[Time]]
Texts = Union[Text, Sequence[Text]]
Pairs = Union[str, Sequence[str], Mapping[str, Text]]
"#;

/// A flag, as a keyword argument in Python.
struct Keyword {
    name: String,
    flag: String,
    /// The name of the value, with `*` at its end if the flag may be given several times.
    kind: String,
    class: String,
}

impl Keyword {
    // The keyword of a flag; `None` for flags that the package does not offer.
    fn of(command: &[&str], arg: &Arg) -> Option<Self> {
        let long = arg.get_long()?;
        if arg.is_hide_set() || NOT_KEYWORDS.contains(&long) {
            return None;
        }
        let mut name = long.replace('-', "_");
        if RESERVED.contains(&name.as_str()) {
            name.push('_');
        }
        let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let value =
            if takes { arg.get_value_names().unwrap_or_default().join(" ") } else { String::new() };
        let split = arg.get_value_delimiter().is_some();
        let repeated = matches!(arg.get_action(), ArgAction::Append) && !split;
        // Python may give several values for a flag of `sim`; the package writes them to a file.
        let several = repeated || split || command == ["sim"];
        let class = class_of(&value, several);
        let kind = if repeated { value + "*" } else { value };
        Some(Self { name, flag: format!("--{long}"), kind, class })
    }
}

// The Python type of a flag, by the name of its value.
fn class_of(value: &str, several: bool) -> String {
    if value.is_empty() {
        return "bool".to_owned();
    }
    if value.contains('=') {
        return "Pairs".to_owned();
    }
    let name = value.split('[').next().unwrap_or(value);
    let known = TYPES.iter().find(|(known, _)| *known == name);
    let class = known.map_or("Text", |(_, class)| class);
    if several && class != "Path" { format!("{class}s") } else { class.to_owned() }
}

// The keywords of a command.
fn keywords(command: &[&str]) -> Vec<Keyword> {
    let mut at: &Command = &Cli::command();
    for word in command {
        at = at.find_subcommand(word).unwrap_or_else(|| panic!("no command {word}"));
    }
    at.get_arguments().filter_map(|arg| Keyword::of(command, arg)).collect()
}

// The text of `_flags.py`.
fn words() -> String {
    let mut text = WORDS_HEAD.to_owned();
    for command in COMMANDS {
        let _ = writeln!(text, "    \"{}\": {{", command.join(" "));
        for Keyword { name, flag, kind, .. } in keywords(command) {
            let _ = writeln!(text, "        \"{name}\": (\"{flag}\", \"{kind}\"),");
        }
        text.push_str("    },\n");
    }
    text + "}\n"
}

// The text of `_flag_types.py`.
fn types() -> String {
    let mut text = TYPES_HEAD.to_owned();
    for command in COMMANDS {
        let capital = |word: &&str| word[..1].to_uppercase() + &word[1..];
        let name: String = command.iter().map(capital).collect();
        let _ = write!(text, "\n\nclass {name}Flags(TypedDict, total=False):\n");
        let _ = write!(text, "    \"\"\"Flags of ``afar {}``.\"\"\"\n\n", command.join(" "));
        for Keyword { name, class, .. } in keywords(command) {
            let _ = writeln!(text, "    {name}: {class}");
        }
    }
    text
}

#[test]
fn python_package_has_the_flags_of_the_program() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src/afar");
    for (name, text) in [("_flags.py", words()), ("_flag_types.py", types())] {
        let path = home.join(name);
        if std::env::var_os("AFAR_BLESS").is_some() {
            std::fs::write(&path, &text).expect("a file of the package");
        }
        let kept = std::fs::read_to_string(&path).expect("a file; AFAR_BLESS=1 makes it");
        assert_eq!(kept, text, "{}: AFAR_BLESS=1 cargo test -p afar python", path.display());
    }
}
