//! What users read fits the program: each command has a page, and commands are written as they are.
//!
//! | rule | of |
//! |---|---|
//! | length | README.md is a way in, not a reference |
//! | page | each command of the table in apps/afar has a page of the guide, named in its title |
//! | link | README.md and docs: what a link leads to is there, and in the book if it is of docs |
//! | book | each page of docs is in docs/SUMMARY.md, the order of the book |
//! | flag | README.md and the guide: each flag of an afar command line is a field of some flags |

use std::collections::BTreeSet;

use crate::Finding;
use crate::tree::Tree;

const README: &str = "README.md";
const README_LINES: usize = 120;
const GUIDE: &str = "docs/guide/";
const BOOK: &str = "docs/SUMMARY.md";
/// The table of commands, and those that are for packagers or afar itself.
const COMMANDS: &str = "apps/afar/src/main.rs";
const HIDDEN: [&str; 5] = ["probe", "keep", "point", "man", "completions"];
/// What every command has.
const COMMON: [&str; 2] = ["help", "version"];

/// Reports pages that do not fit the program.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let table = tree.rust.iter().find(|file| file.path == COMMANDS);
    let commands = table.map(|file| commands(&file.source.text)).unwrap_or_default();
    let is_page = |path: &str| path.starts_with(GUIDE) && path.ends_with(".md");
    let pages = || tree.texts.iter().filter(|file| is_page(&file.path));
    let titles: Vec<&str> = pages().filter_map(|page| page.text.lines().next()).collect();
    for command in commands.iter().filter(|command| !is_titled(&titles, command)) {
        let remedy = format!("`afar {command}` has no page: begin one in {GUIDE} with its name");
        findings.push(Finding::new(COMMANDS, 1, "guide page", remedy));
    }
    findings.extend(beside_the_book(tree.texts.iter().map(|file| (&*file.path, &*file.text))));
    let files: BTreeSet<&str> = tree.texts.iter().map(|file| file.path.as_str()).collect();
    let fields = fields(tree);
    for file in &tree.texts {
        let (is_readme, is_page) = (file.path == README, is_page(&file.path));
        if is_readme && file.text.lines().count() > README_LINES {
            let remedy = format!("move what is beyond {README_LINES} lines into {GUIDE}");
            findings.push(Finding::new(README, README_LINES, "guide length", remedy));
        }
        if is_readme || (file.path.starts_with("docs/") && file.path.ends_with(".md")) {
            findings.extend(lost_links(&file.path, &file.text, &files));
        }
        if is_readme || is_page {
            findings.extend(unknown_flags(&file.path, &file.text, &fields));
        }
    }
    findings
}

fn commands(text: &str) -> Vec<String> {
    let table = text.split("command::table! {").nth(1).and_then(|rest| rest.split('}').next());
    let rows = table.unwrap_or_default().lines().filter_map(|row| row.trim().split_once('('));
    rows.map(|(name, _)| name.to_lowercase()).filter(|name| !HIDDEN.contains(&&**name)).collect()
}

fn is_titled(titles: &[&str], command: &str) -> bool {
    titles.iter().any(|title| {
        let words: Vec<&str> = title.split(|c: char| !c.is_alphanumeric()).collect();
        words.windows(2).any(|pair| pair == ["afar", command])
    })
}

/// Pages that the book leaves out. What it names and is not there is a lost link.
fn beside_the_book<'a>(texts: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<Finding> {
    let book = texts.clone().find(|(path, _)| *path == BOOK).map_or("", |(_, text)| text);
    let named: BTreeSet<&str> =
        book.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let is_page = |path: &&str| path.ends_with(".md") && *path != BOOK;
    let pages = texts.map(|(path, _)| path).filter(is_page);
    let pages = pages.filter_map(|path| path.strip_prefix("docs/"));
    pages
        .filter(|page| !named.contains(page))
        .map(|page| Finding::new(BOOK, 1, "guide book", format!("add a line for {page}")))
        .collect()
}

/// Links to files, from the directory of the page.
fn lost_links(path: &str, text: &str, files: &BTreeSet<&str>) -> Vec<Finding> {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut findings = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let targets = row.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or(target);
            let place = resolved(directory, file);
            let inside = format!("{place}/");
            let is_there = files.contains(place.as_str())
                || files
                    .range(inside.as_str()..)
                    .next()
                    .is_some_and(|one| one.starts_with(&inside));
            if path.starts_with("docs/") && !place.starts_with("docs/") {
                let remedy = format!("{place} is not in the book; name it without a link");
                findings.push(Finding::new(path, line, "guide link", remedy));
            } else if !is_there {
                let remedy = format!("there is no {place}; link to what there is");
                findings.push(Finding::new(path, line, "guide link", remedy));
            }
        }
    }
    findings
}

fn resolved(directory: &str, link: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/').filter(|part| !part.is_empty()) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Names in the sources of applications, which flags are named after.
fn fields(tree: &Tree) -> BTreeSet<String> {
    let of_apps = tree.rust.iter().filter(|file| file.path.starts_with("apps/"));
    let words = of_apps.flat_map(|file| {
        file.source.text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)))
    });
    words.map(|word| word.trim_matches('-').replace('-', "_")).collect()
}

fn unknown_flags(path: &str, text: &str, fields: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_code = false;
    for (line, row) in (1..).zip(text.lines()) {
        if row.starts_with("```") {
            is_code = !is_code;
        }
        let is_ours = row.starts_with("afar ") || row.starts_with("sudo afar ");
        if !(is_code && is_ours) {
            continue;
        }
        // The words of the program that is run, of a pipe and of a remark are others'.
        let ours = [" -- ", " | ", " # "]
            .iter()
            .fold(row, |row, end| row.split_once(end).map_or(row, |(ours, _)| ours));
        let flags = ours.split_whitespace().filter_map(|word| word.strip_prefix("--"));
        for flag in flags.filter_map(|flag| flag.split('=').next()) {
            if !COMMON.contains(&flag) && !fields.contains(&flag.replace('-', "_")) {
                let remedy = format!("no command has --{flag}; write the one that there is");
                findings.push(Finding::new(path, line, "guide flag", remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_a_page_is_found() {
        let table = "command::table! {\n    Run(memory::RunFlags) => memory::run,\n    \
                     Man(pages::ManFlags) => man,\n}";
        assert_eq!(commands(table), ["run"]);
        assert!(is_titled(&["# afar sweep and afar run"], "run"));
        assert!(!is_titled(&["# afar sweep: run it"], "run"));
    }

    #[test]
    fn a_page_beside_the_book_is_found() {
        let texts = [
            (BOOK, "- [a](guide/a.md)\n- [glossary](glossary.md)\n"),
            ("docs/guide/a.md", ""),
            ("docs/glossary.md", ""),
            ("README.md", ""),
        ];
        assert_eq!(beside_the_book(texts.iter().copied()), []);
        let more = texts.iter().copied().chain([("docs/guide/b.md", "")]);
        assert!(beside_the_book(more)[0].to_string().ends_with("add a line for guide/b.md"));
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let files = BTreeSet::from([
            "docs/guide/run.md",
            "docs/promises.md",
            "docs/systemd/a",
            "README.md",
        ]);
        let lost =
            |link: &str| lost_links("docs/guide/a.md", &format!("[a]({link})"), &files).len();
        assert_eq!(lost("run.md") + lost("./run.md#limits") + lost("../promises.md"), 0);
        assert_eq!(lost("../systemd") + lost("#below") + lost("https://a.example/"), 0);
        assert_eq!((lost("walk.md"), lost("../system")), (1, 1));
        assert_eq!(lost("../../README.md"), 1, "the book does not have it");
    }

    #[test]
    fn a_flag_that_nobody_has_is_found() {
        let fields = BTreeSet::from(["local".to_owned(), "ctrl_loss_tmo".to_owned()]);
        let unknown = |row: &str| unknown_flags("a", &format!("```\n{row}\n```\n"), &fields).len();
        assert_eq!(unknown("afar run --local 25% --help -- ./a --nonsense"), 0);
        assert_eq!(unknown("afar attach --ctrl-loss-tmo=5s | grep --nonsense"), 0);
        assert_eq!(unknown("redis-cli --nonsense  # afar run --nonsense"), 0);
        assert_eq!(unknown("sudo afar run --nonsense --loca 5"), 2);
        assert_eq!(unknown_flags("a", "afar run --nonsense", &fields).len(), 0, "prose");
    }
}
