//! The report as a record: answers, figures, and the table behind every picture.

use results::report;

use super::Report;
use super::section::{Better, Figure, Picture, Section, Table};

/// The report as JSON.
pub(super) fn text(report: &Report) -> String {
    let sections = report.sections.iter().map(|(name, one)| section(name, one));
    results::write(&report::Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        title: report.title.clone(),
        command: report.command.clone(),
        sections: sections.collect(),
    })
}

/// A section as the record has it.
fn section(name: &str, section: &Section) -> report::Section {
    let facts = section.facts.iter();
    let fact = |(name, value): &(String, String)| report::Fact {
        name: name.clone(),
        value: value.clone(),
    };
    report::Section {
        record: name.to_owned(),
        kind: section.kind.to_owned(),
        title: section.title.clone(),
        command: section.command.clone(),
        host: section.host.clone(),
        valid: section.invalid.is_none(),
        answer: section.answer.clone(),
        enough: section.enough.as_ref().map(|(enough, _)| table(enough)),
        verdicts: section.verdicts.as_ref().map(table),
        warnings: section.warnings.clone(),
        facts: facts.map(fact).collect(),
        figures: section.figures.iter().map(figure).collect(),
        pictures: section.pictures.iter().map(picture).collect(),
    }
}

/// A figure as the record has it.
fn figure(figure: &Figure) -> report::Figure {
    report::Figure {
        name: figure.name.clone(),
        unit: figure.unit.to_owned(),
        value: figure.value,
        low: figure.interval.map(|ends| ends.0),
        high: figure.interval.map(|ends| ends.1),
        better: match figure.better {
            Better::Lower => report::Better::Lower,
            Better::Higher => report::Better::Higher,
        },
    }
}

/// A picture as the record has it: its texts and table.
fn picture(picture: &Picture) -> report::Picture {
    report::Picture {
        name: picture.name.clone(),
        title: picture.title.clone(),
        caption: picture.caption.clone(),
        table: table(&picture.table),
    }
}

/// A table as the record has it.
fn table(table: &Table) -> report::Table {
    report::Table {
        columns: table.columns.clone(),
        rows: table.rows.clone(),
        rows_of_record: table.cut_from,
    }
}
