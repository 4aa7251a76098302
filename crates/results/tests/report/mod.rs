//! Records of `afar report`.

use measure::Host;
use proptest::prelude::*;
use results::report::{Better, Fact, Figure, Picture, Report, Section, Table};

use super::{comes_back, is_as_before, many, number, texts};

fn table() -> impl Strategy<Value = Table> {
    let rows_of_record = prop::option::of(any::<u32>().prop_map(u64::from));
    (texts(), many(texts()), rows_of_record).prop_map(|(columns, rows, rows_of_record)| Table {
        columns,
        rows,
        rows_of_record,
    })
}

fn figure() -> impl Strategy<Value = Figure> {
    let better = prop::sample::select(vec![Better::Lower, Better::Higher]);
    let end = || prop::option::of(number());
    (".{0,8}", ".{0,3}", number(), end(), end(), better).prop_map(
        |(name, unit, value, low, high, better)| Figure { name, unit, value, low, high, better },
    )
}

fn section() -> impl Strategy<Value = Section> {
    let fact = (".{0,8}", ".{0,8}").prop_map(|(name, value)| Fact { name, value });
    let picture = (".{0,8}", ".{0,8}", ".{0,8}", table());
    let picture =
        picture.prop_map(|(name, title, caption, table)| Picture { name, title, caption, table });
    let heads = (".{0,8}", ".{0,8}", ".{0,8}", texts(), any::<bool>());
    let said = (texts(), texts(), prop::option::of(table()), prop::option::of(table()));
    (heads, said, many(fact), many(figure()), many(picture)).prop_map(
        |((record, kind, title, command, valid), said, facts, figures, pictures)| Section {
            record,
            kind,
            title,
            command,
            host: valid.then(Host::default),
            valid,
            answer: said.0,
            enough: said.2,
            verdicts: said.3,
            warnings: said.1,
            facts,
            figures,
            pictures,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reports_come_back(sections in many(section())) {
        let command = vec!["afar".to_owned(), "report".to_owned()];
        comes_back(&Report {
            version: "0.1.0".to_owned(),
            title: "A report".to_owned(),
            command,
            sections,
        });
    }
}

#[test]
fn reports_are_what_they_were() {
    let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let table = |rows: &[[&str; 2]], rows_of_record| Table {
        columns: words(&["fetches", "seconds"]),
        rows: rows.iter().map(|row| words(row)).collect(),
        rows_of_record,
    };
    let fact = Fact { name: "local".to_owned(), value: "25 %".to_owned() };
    let figure = Figure {
        name: "slowdown".to_owned(),
        unit: String::new(),
        value: 1.5,
        low: Some(1.25),
        high: None,
        better: Better::Lower,
    };
    let picture = Picture {
        name: "run-fetches".to_owned(),
        title: "Fetches over time".to_owned(),
        caption: "Each column is a second.".to_owned(),
        table: table(&[["1", "0.5"], ["2", "1"]], Some(20)),
    };
    let section = Section {
        record: "run.json".to_owned(),
        kind: "run".to_owned(),
        title: "sort with 25 % local".to_owned(),
        command: words(&["afar", "run", "--", "sort"]),
        host: Some(Host::default()),
        valid: true,
        answer: words(&["It took 1.5 times as long."]),
        enough: Some(table(&[["5 %", "3 us"]], None)),
        verdicts: None,
        warnings: words(&["The machine was busy."]),
        facts: vec![fact],
        figures: vec![figure],
        pictures: vec![picture],
    };
    is_as_before(
        "report",
        &Report {
            version: "0.1.0".to_owned(),
            title: "Two runs".to_owned(),
            command: words(&["afar", "report", "run.json"]),
            sections: vec![section],
        },
    );
}
