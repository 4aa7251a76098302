//! Answers as Markdown: what a pull request or an issue shows (GitHub Flavored Markdown 0.29).

use super::contents::Report;
use super::section::{Section, Table};

/// The most rows of a table: a comment on GitHub may have 65,536 characters.
const ROWS_MAX: usize = 50;

/// The report as Markdown.
pub(super) fn text(report: &Report) -> String {
    let sections = report.sections.iter().map(|(name, one)| section(name, one));
    sections.collect::<Vec<_>>().join("\n")
}

/// A section as Markdown.
fn section(name: &str, section: &Section) -> String {
    let mut out = format!("### {}\n\n", plain(&section.title));
    for (index, sentence) in section.answer.iter().enumerate() {
        let mark = if index == 0 { "**" } else { "" };
        out += &format!("{mark}{}{mark}\n\n", plain(sentence));
    }
    for warning in &section.warnings {
        out += &format!("> note: {}\n\n", plain(warning));
    }
    if let Some((enough, note)) = &section.enough {
        out += &format!("{}\n{}\n\n", table(enough), plain(note));
    }
    if let Some(verdicts) = &section.verdicts {
        out += &format!("{}\n", table(verdicts));
    }
    out + &format!("<sub>{}, a record of afar {}</sub>\n", plain(name), env!("CARGO_PKG_VERSION"))
}

/// A table as Markdown, with at most `ROWS_MAX` rows.
fn table(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = row(&table.columns);
    // Names to the left, numbers to the right.
    out += &format!("|---{}|\n", "|---:".repeat(table.columns.len().saturating_sub(1)));
    for cells in table.rows.iter().take(ROWS_MAX) {
        out += &row(cells);
    }
    if table.rows.len() > ROWS_MAX {
        out += &format!("\n{} more rows are in the record\n", table.rows.len() - ROWS_MAX);
    }
    out
}

/// Escapes a text for Markdown: records name files and programs of others.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '@' | '&' | '!' => {
                // Unescaped, a stranger's text could become a mention or an image.
                out.extend(['\\', letter]);
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(section: Section) -> Report {
        let sections = vec![("a_b.json".to_owned(), section)];
        Report { title: "t".to_owned(), command: Vec::new(), sections }
    }

    #[test]
    fn answers_notes_and_tables_are_markdown() {
        let mut verdicts = Table::new(["network", "slowdown"]);
        verdicts.push(["RDMA | fast".to_owned(), "1.02 [1.01, 1.03]".to_owned()]);
        let text = text(&report(Section {
            title: "redis-server".to_owned(),
            answer: vec!["It is fine.".to_owned(), "More.".to_owned()],
            warnings: vec!["few runs".to_owned()],
            verdicts: Some(verdicts),
            ..Section::default()
        }));
        assert_eq!(
            text,
            format!(
                "### redis-server\n\n**It is fine.**\n\nMore.\n\n> note: few runs\n\n\
                 | network | slowdown |\n|---|---:|\n\
                 | RDMA \\| fast | 1.02 \\[1.01, 1.03\\] |\n\n\
                 <sub>a\\_b.json, a record of afar {}</sub>\n",
                env!("CARGO_PKG_VERSION")
            )
        );
    }

    #[test]
    fn a_name_of_a_program_is_no_markup() {
        let hostile = "<img src=x>\n# @all ![x](http://y) `a`";
        let text = text(&report(Section { title: hostile.to_owned(), ..Section::default() }));
        let title = text.lines().next().unwrap_or_default();
        let whole = "### \\<img src=x\\> \\# \\@all \\!\\[x\\](http://y) \\`a\\`";
        assert_eq!(title, whole);
    }

    #[test]
    fn a_long_table_is_cut_and_says_so() {
        let mut long = Table::new(["a"]);
        for number in 0..60 {
            long.push([number.to_string()]);
        }
        let text = table(&long);
        assert_eq!(text.lines().count(), 2 + ROWS_MAX + 2);
        assert!(text.ends_with("10 more rows are in the record\n"), "{text}");
    }
}
