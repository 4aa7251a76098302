//! Tests that clap can parse the command lines in README and guide.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::Cli;

/// The least number of command lines; with fewer, the documents were not read.
const LINES_MIN: usize = 100;

// README, and all pages of the guide.
fn documents() -> Vec<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_dir(home.join("docs/guide")).expect("the guide");
    let pages = guide.map(|entry| entry.expect("a page").path());
    let mut found: Vec<_> =
        pages.filter(|path| path.extension().is_some_and(|of| of == "md")).collect();
    found.push(home.join("README.md"));
    found
}

/// Lines within the blocks of code of a document; those that end in a backslash are joined.
fn code(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    let mut begun = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if let Some(part) = line.strip_suffix('\\') {
            begun += part;
        } else if inside {
            lines.push(std::mem::take(&mut begun) + line);
        }
    }
    lines
}

/// The words of each call of afar in a line of a shell, without pipes and redirections.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut end = |words: &mut Vec<String>| {
        let whole = std::mem::take(words);
        // Output of afar begins with "afar", too; it has a colon, or is its version.
        let is_version = whole.get(1).is_some_and(|word| word.starts_with(char::is_numeric));
        let printed = is_version || whole.iter().any(|word| word.ends_with(':'));
        if whole.len() > 1 && whole[0] == "afar" && !printed {
            calls.push(whole);
        }
    };
    let mut left = line.trim();
    while !left.is_empty() {
        let (word, rest) = next_word(left);
        left = rest;
        match word.as_str() {
            "#" => break,
            "&&" | "|" | "&" | ";" | ">" | "2>" => end(&mut words),
            // The process id of what was started last.
            "$!" => words.push("4711".to_owned()),
            _ => words.push(word),
        }
    }
    end(&mut words);
    calls
}

/// Splits off the first word, which may be quoted.
fn next_word(line: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') => return (word, line[at..].trim_start()),
            _ => word.push(letter),
        }
    }
    (word, "")
}

#[test]
fn command_lines_of_documents_are_understood() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document");
        for words in code(&text).iter().flat_map(|line| calls(line)) {
            count += 1;
            let Err(error) = Cli::try_parse_from(&words) else { continue };
            if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                wrong.push(format!("{name}: {}: {}", words.join(" "), error.kind()));
            }
        }
    }
    assert!(count >= LINES_MIN, "only {count} command lines were found");
    assert!(wrong.is_empty(), "of {count}:\n{}", wrong.join("\n"));
}

#[test]
fn calls_are_found_in_lines_of_a_shell() {
    let line = "FOO=1 x && afar run --rtt '5 us' -- a b > out | afar ctl $! show # afar none";
    let whole: Vec<_> = calls(line).iter().map(|words| words.join("|")).collect();
    assert_eq!(whole, ["afar|run|--rtt|5 us|--|a|b", "afar|ctl|4711|show"]);
    assert!(calls("afar workload sort: 3 s").is_empty());
    assert_eq!(code("a\n```\nafar x \\\n  y\n```\nb"), ["afar x   y"]);
}
