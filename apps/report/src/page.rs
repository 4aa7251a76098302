//! The report as one HTML file, which sends no requests; and its parts, for a live page.
//!
//! Everything that comes from a record passes through `escape` (or `json`, within scripts). Colours
//! of pictures are attributes, and the style sheet has others for a dark page: a file of a picture
//! and the page have one drawing.

use std::fmt::Write as _;

use chart::escape;
use measure::{Bytes, Host};

use super::Report;
use super::hints;
use super::network;
use super::section::{Picture, Section, Table};
use super::words::{GLOSSARY, command, moment};
use console::layout::count;

pub(super) const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");
/// Nothing may be fetched from anywhere; what is in the file may run.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:";
/// The most rows of a table in the page; its CSV has all.
const ROWS_MAX: usize = 200;
/// The attribute that an SVG file needs, and SVG within a page does not.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// The HTML file of a report.
pub(super) fn html(report: &Report) -> String {
    let title = escape(&report.title);
    let mut body = format!(
        "<header><div><h1>{title}</h1><p class=\"soft\">afar report {}</p></div>\
         <button id=\"theme\" hidden>light or dark</button></header>\n",
        env!("CARGO_PKG_VERSION")
    );
    body += &contents(&report.sections);
    match report.sections.as_slice() {
        // Its title is that of the page.
        [(name, section)] if section.title == report.title => body += &one(1, name, section, ""),
        several => body.extend(sections(several)),
    }
    body += &glossary();
    let command = escape(&command(&report.command));
    let _infallible = write!(
        body,
        "<h2>How this page was made</h2>\n<pre>{command}</pre>\n\
         <p class=\"soft\">Everything is in this file. A pointer over a picture, or the arrow keys \
         when it has the focus, tell its values.</p>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n"
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n"
    )
}

/// The markup of each section.
pub(super) fn sections(sections: &[(String, Section)]) -> impl Iterator<Item = String> {
    (1..).zip(sections).map(|(index, (name, section))| {
        one(index, name, section, &format!("<h2>{}</h2>\n", escape(&section.title)))
    })
}

/// The list of sections, each with its first sentence; empty for a single section.
fn contents(sections: &[(String, Section)]) -> String {
    if sections.len() < 2 {
        return String::new();
    }
    let mut text = "<nav class=\"answer\" aria-label=\"In short\"><ul>\n".to_owned();
    for (index, (_, section)) in (1..).zip(sections) {
        let (title, first) = (escape(&section.title), section.answer.first());
        let first = first.map_or_else(String::new, |first| format!(": {}", escape(first)));
        let _infallible = writeln!(text, "<li><a href=\"#r{index}\">{title}</a>{first}</li>");
    }
    text + "</ul></nav>\n"
}

/// The markup of one section.
fn one(index: usize, name: &str, section: &Section, heading: &str) -> String {
    let name = escape(name);
    let mut text = format!("<section id=\"r{index}\">\n{heading}");
    let (opening, pictures) = match section.pictures.split_first() {
        Some((first, rest)) if section.opens => (Some(first), rest),
        _ => (None, section.pictures.as_slice()),
    };
    let _infallible = match section.kind {
        // A section of a live page has no record.
        "" => writeln!(text, "<p class=\"source\">{name}</p>"),
        kind => {
            let (kind, origin) = (escape(kind), escape(&origin(section)));
            writeln!(text, "<p class=\"source\">{kind} record, {name}{origin}</p>")
        }
    };
    text += &answer(index, section, opening);
    if !section.warnings.is_empty() {
        let items = items(&section.warnings);
        let _infallible = write!(
            text,
            "<div class=\"warnings\"><strong>Note</strong>\n<ul>\n{items}</ul></div>\n"
        );
    }
    if !pictures.is_empty() {
        text += "<div class=\"pictures\">\n";
        pictures.iter().for_each(|picture| text += &figure(index, picture));
        text += "</div>\n";
    }
    text += &made(section);
    text + "</section>\n"
}

// When and on which machine, as far as the record says so.
fn origin(section: &Section) -> String {
    let mut text = section.began_unix_ns.map_or_else(String::new, |ns| format!(", {}", moment(ns)));
    if let Some(host) = section.host.as_ref().filter(|host| !host.cpu_model.is_empty()) {
        let (model, count, kernel) = (&host.cpu_model, host.cpu_count, &host.kernel);
        let _infallible = write!(text, ", on {model}, {count} processors, Linux {kernel}");
    }
    text
}

/// Sentences as the items of a list.
fn items(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("<li>{}</li>\n", escape(sentence))).collect()
}

// The markup of the answer: the first sentence, the opening picture if there is one, the rest.
fn answer(index: usize, section: &Section, opening: Option<&Picture>) -> String {
    let mut text = "<div class=\"answer\">\n".to_owned();
    if let Some((first, rest)) = section.answer.split_first() {
        let _infallible = writeln!(text, "<p class=\"lead\">{}</p>", escape(first));
        text.extend(opening.map(|picture| figure(index, picture)));
        if !rest.is_empty() {
            let _infallible = write!(text, "<ul>\n{}</ul>\n", items(rest));
        }
    }
    if let Some((enough, note)) = &section.enough {
        text += &table(enough);
        text += &csv(&format!("r{index}-enough"), enough);
        let _infallible = writeln!(text, "<p class=\"soft\">{}</p>", escape(note));
    }
    if let Some(verdicts) = &section.verdicts {
        text += &table(verdicts);
        text += &csv(&format!("r{index}-answer"), verdicts);
        if verdicts.columns.first().is_some_and(|first| first == "network") {
            let _infallible = writeln!(text, "<p class=\"soft\">{}</p>", escape(network::NOTE));
        }
    }
    text + "</div>\n"
}

/// The markup of a picture, with its table, buttons and hints.
fn figure(index: usize, picture: &Picture) -> String {
    let drawing = picture.chart.draw();
    let id = escape(&format!("r{index}-{}", picture.name));
    let (title, caption) = (escape(&picture.title), escape(&picture.caption));
    let rows = count(picture.table.rows.len() as u64);
    format!(
        "<figure id=\"{id}\">\n<h3>{title}</h3>\n\
         <div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"{title}; arrow keys \
         tell its values\">\n{}</div>\n<figcaption>{caption}</figcaption>\n{}\
         <details><summary>Table, {rows} rows</summary>\n{}</details>\n\
         <script type=\"application/json\" class=\"hints\">{}</script>\n</figure>\n",
        inline(&drawing.svg),
        buttons(&id, &picture.table),
        table(&picture.table),
        hints::written(&drawing.hints)
    )
}

/// An SVG file as markup within a page, without its title, which browsers show over the hints.
fn inline(svg: &str) -> String {
    let svg = svg.replacen(NAMESPACE, "", 1);
    let Some((head, rest)) = svg.split_once("<title>") else { return svg };
    let Some((_, rest)) = rest.split_once("</title>\n") else { return svg };
    format!("{head}{rest}")
}

/// The buttons that save a picture and its table.
fn buttons(id: &str, table: &Table) -> String {
    let csv = link(id, table);
    format!(
        "<div class=\"buttons\">{csv} <button data-save=\"svg\">SVG</button> \
         <button data-save=\"png\">PNG</button></div>\n"
    )
}

/// The button that saves a table.
fn csv(id: &str, table: &Table) -> String {
    format!("<div class=\"buttons\">{}</div>\n", link(id, table))
}

// A link that has a table's CSV as its data, and works without scripts.
fn link(id: &str, table: &Table) -> String {
    let data = uri(&table.csv());
    format!("<a download=\"{id}.csv\" href=\"data:text/csv;charset=utf-8,{data}\">CSV</a>")
}

/// A text with no break between a number and its unit.
fn together(text: &str) -> String {
    let mut parts = text.split(' ').peekable();
    let mut out = String::new();
    while let Some(part) = parts.next() {
        out += part;
        if parts.peek().is_some() {
            let is_number = part.parse::<f64>().is_ok();
            out += if is_number { "\u{a0}" } else { " " };
        }
    }
    out
}

/// The markup of a table, with at most `ROWS_MAX` rows.
fn table(table: &Table) -> String {
    let cells = |tag: &str, row: &[String]| -> String {
        row.iter().map(|cell| format!("<{tag}>{}</{tag}>", together(&escape(cell)))).collect()
    };
    let head = cells("th", &table.columns).replace("<th>", "<th scope=\"col\">");
    let mut text =
        format!("<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n");
    for row in table.rows.iter().take(ROWS_MAX) {
        let _infallible = writeln!(text, "<tr>{}</tr>", cells("td", row));
    }
    text += "</tbody></table></div>\n";
    if let Some(note) = cut(table) {
        let _infallible = writeln!(text, "<p class=\"soft\">{note}</p>");
    }
    text
}

/// A note on rows that the page or the CSV leaves out; `None` if neither does.
fn cut(table: &Table) -> Option<String> {
    let rows = table.rows.len();
    let shown = (rows > ROWS_MAX).then(|| {
        format!("{ROWS_MAX} of {} rows are shown; the CSV has all of them.", count(rows as u64))
    });
    match table.cut_from {
        Some(all) => Some(format!(
            "{} of {} rows are shown; the CSV has the first {}, and the record all.",
            ROWS_MAX.min(rows),
            count(all),
            count(rows as u64)
        )),
        None => shown,
    }
}

/// The markup of how the record was made: command, facts and machine.
fn made(section: &Section) -> String {
    let mut text = String::new();
    if !section.command.is_empty() {
        let words = match section.command.as_slice() {
            // The record has the words joined.
            [whole] => whole.clone(),
            words => command(words),
        };
        let _infallible = writeln!(text, "<pre>{}</pre>", escape(&words));
    }
    let mut facts = section.facts.clone();
    facts.extend(section.host.iter().flat_map(host));
    if !facts.is_empty() {
        text += "<dl>\n";
        for (name, value) in facts {
            let _infallible =
                writeln!(text, "<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&value));
        }
        text += "</dl>\n";
    }
    match text.as_str() {
        "" => text,
        text => {
            format!("<details><summary>How it was made, and where</summary>\n{text}</details>\n")
        }
    }
}

/// Facts about a machine that a reader needs to judge its figures.
pub(super) fn host(host: &Host) -> Vec<(String, String)> {
    let virtualised = match host.virtualised {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not known",
    };
    let all = [
        ("processor", host.cpu_model.clone()),
        ("processors", host.cpu_count.to_string()),
        ("memory", Bytes::new(host.memory_bytes).to_string()),
        ("kernel", host.kernel.clone()),
        ("huge pages", host.thp.clone()),
        ("clock", host.clocksource.clone()),
        ("virtual machine", virtualised.to_owned()),
        ("frequency governor", host.governor.clone().unwrap_or_default()),
        ("mitigations", host.mitigations.clone().unwrap_or_default()),
    ];
    let known = all.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The markup of the glossary.
pub(super) fn glossary() -> String {
    let entries = GLOSSARY
        .iter()
        .map(|(word, meaning)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(word), escape(meaning)));
    let entries: String = entries.collect();
    format!("<details open><summary>Words used here</summary>\n<dl>\n{entries}</dl></details>\n")
}

/// A text, percent-encoded, as the data of a URI in an attribute (RFC 2397, RFC 3986 §2.1).
fn uri(text: &str) -> String {
    let mut data = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => data.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'~' | b',' | b':' | b';' | b'/' | b'(' | b')' | b'*' | b'=' => {
                data.push(char::from(byte));
            }
            other => {
                let _infallible = write!(data, "%{other:02X}");
            }
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use chart::{Axis, Kind, Look, Plot, Series};

    use super::super::section::Chart;
    use super::*;

    #[test]
    fn nothing_ends_what_it_stands_in() {
        assert_eq!(uri("a,\"b\" %\n<é>"), "a,%22b%22%20%25%0A%3C%C3%A9%3E");
        let svg = format!("<svg{NAMESPACE} x=\"1\">\n<title>a</title>\n<rect/></svg>");
        assert_eq!(inline(&svg), "<svg x=\"1\">\n<rect/></svg>");
    }

    #[test]
    fn the_picture_that_is_the_answer_follows_its_sentence() {
        let picture = |name: &str| Picture {
            name: name.to_owned(),
            title: String::new(),
            caption: String::new(),
            chart: Chart::Plot(Plot {
                title: String::new(),
                x: Axis::new("x", Kind::Linear),
                y: Axis::new("y", Kind::Linear),
                series: vec![Series::new("s", Look::Line, vec![(0.0, 0.0), (1.0, 1.0)])],
                bounds: Vec::new(),
                marks: Vec::new(),
            }),
            table: Table::new(["a"]),
        };
        let mut section = Section {
            answer: vec!["First.".to_owned(), "Second.".to_owned()],
            pictures: vec![picture("one"), picture("two")],
            began_unix_ns: Some(0),
            ..Section::default()
        };
        let order = |section: &Section| {
            let text = one(1, "x", section, "");
            ["First.", "Second.", "r1-one", "r1-two"].map(|part| text.find(part))
        };
        let [first, second, one, two] = order(&section);
        assert!(first < second && second < one && one < two);
        section.opens = true;
        let [first, second, one, two] = order(&section);
        assert!(first < one && one < second && second < two);
        assert_eq!(origin(&section), ", 1970-01-01 00:00 UTC");
    }

    #[test]
    fn tables_say_what_is_not_in_them() {
        let mut long = Table::new(["a"]);
        long.rows = vec![vec!["<b>".to_owned()]; 1_000];
        let text = table(&long);
        assert_eq!(text.matches("&lt;b&gt;").count(), ROWS_MAX);
        assert!(text.contains("200 of 1,000 rows are shown; the CSV has all"));
        assert_eq!(link("x", &long).matches("%3Cb%3E").count(), 1_000);
        long.cut_from = Some(5_000_000);
        assert!(
            table(&long).contains("200 of 5,000,000 rows are shown; the CSV has the first 1,000")
        );
        long.rows.truncate(3);
        long.cut_from = None;
        assert_eq!(cut(&long), None);
    }
}
