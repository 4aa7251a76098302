//! What every text file of the repository keeps to.

use crate::Finding;

/// How a word is looked for.
enum Match {
    /// At the start of a word, in any case.
    Prefix,
    /// A word of its own, in this case.
    Word,
}

/// Words that say how the work is organised instead of what the product is. Each is written in
/// two halves so that this table does not contain them.
#[rustfmt::skip] // one row, one line
const WORDS: [(&str, &str, Match, &str); 9] = [
    ("TO", "DO", Match::Word, "do it, or say what is missing and why that is right for now"),
    ("FIX", "ME", Match::Word, "fix it, or say what is wrong and who is affected"),
    ("XX", "X", Match::Word, "say what is odd and why it is so"),
    ("/wo", "rk/", Match::Prefix, "name files by their path in this repository"),
    ("../sh", "ared", Match::Prefix, "name files by their path in this repository"),
    (".lib", "rary", Match::Prefix, "cite the publication, not a place on one machine"),
    ("sub-", "agent", Match::Prefix, "describe the product, not who wrote it"),
    ("sub", "agent", Match::Prefix, "describe the product, not who wrote it"),
    ("before-", "stop", Match::Prefix, "describe the product, not how it is made"),
];

/// Reports white space at line ends, a missing last line break, and words of the table.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let mut report = |rule, remedy: String| {
            findings.push(Finding::new(path, index + 1, rule, remedy));
        };
        if line.ends_with(char::is_whitespace) {
            report("trailing white space", "remove it".to_owned());
        }
        for (word, remedy) in words(line) {
            report("word", format!("`{word}`: {remedy}"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let remedy = "end the file with a line break";
        findings.push(Finding::new(path, text.lines().count(), "last line", remedy));
    }
    findings
}

/// The words of the table in a line, with their remedies.
fn words(line: &str) -> impl Iterator<Item = (String, &'static str)> {
    let lower = line.to_ascii_lowercase();
    WORDS.iter().filter_map(move |(first, second, kind, remedy)| {
        let word = [*first, *second].concat();
        let is_found = match kind {
            Match::Word => {
                starts(line, &word).any(|at| !is_word(line[at + word.len()..].chars().next()))
            }
            Match::Prefix => starts(&lower, &word).next().is_some(),
        };
        is_found.then_some((word, *remedy))
    })
}

/// Where `word` begins in `line` without being the end of a longer word.
fn starts<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> {
    line.match_indices(word)
        .map(|(at, _)| at)
        .filter(|&at| !is_word(line[..at].chars().next_back()))
}

fn is_word(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        check("a.md", text).into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn clean_text_passes() {
        assert_eq!(rules(""), []);
        assert_eq!(rules("a b\n\n  c\n"), []);
    }

    #[test]
    fn white_space_does_not_end_a_line() {
        assert_eq!(rules("a\nb \n"), [(2, "trailing white space")]);
        assert_eq!(rules("a\r\n"), [(1, "trailing white space")]);
        assert_eq!(rules("a\n\t"), [(2, "trailing white space"), (2, "last line")]);
    }

    #[test]
    fn last_line_ends_with_a_break() {
        assert_eq!(rules("a\nb"), [(2, "last line")]);
    }

    #[test]
    fn words_are_found_one_by_one() {
        for (first, second, _, _) in &WORDS {
            assert_eq!(
                rules(&format!("a\n({first}{second} b\n")),
                [(2, "word")],
                "{first}{second}"
            );
        }
    }

    #[test]
    fn words_of_other_meaning_pass() {
        let text = "mktemp -d x.XXXXXX\njava.library.path\nTODOS METHODO\nnet/work/x\ntodo\n";
        assert_eq!(rules(text), []);
    }

    #[test]
    fn words_ignore_case_where_told() {
        assert_eq!(rules(&format!("Sub{}s\n", "Agent")), [(1, "word")]);
    }
}
