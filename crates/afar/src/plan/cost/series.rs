//! A series of demands as CSV: a column for each dimension, a row for each period.

use std::path::Path;

use planner::cost::{Demand, Dimension};

use crate::plan::PlanError;
use crate::plan::amounts::parse_amount;
use crate::plan::csv::{cells, rows};
use crate::plan::source::Source;

/// Reads a file of at most so many periods.
pub(super) fn read(path: &Path, periods_max: usize) -> Result<Vec<Demand>, PlanError> {
    parse(&Source::read(path)?, periods_max)
}

fn parse(source: &Source, periods_max: usize) -> Result<Vec<Demand>, PlanError> {
    let mut rows = rows(&source.text);
    let Some(header) = rows.next() else {
        return Err(
            source.wrong(&(0..0), "the series is empty; begin it with the names of columns")
        );
    };
    let mut columns = Vec::new();
    for (at, name) in cells(header) {
        let found = Dimension::ALL.into_iter().find(|dimension| dimension.name() == name);
        let dimension = found.ok_or_else(|| {
            let names = Dimension::ALL.map(Dimension::name).join(", ");
            source.wrong(&(at..at), format!("\"{name}\": no such column; use {names}"))
        })?;
        if columns.contains(&dimension) {
            return Err(source.wrong(&(at..at), format!("column {name} is there twice")));
        }
        columns.push(dimension);
    }
    let mut series = Vec::new();
    for row in rows {
        let start = row.0;
        let mut demand = Demand::default();
        let mut count = 0;
        for ((at, text), dimension) in cells(row).zip(&columns) {
            let amount = parse_amount(*dimension, text);
            let amount = amount.map_err(|message| source.wrong(&(at..at), message))?;
            demand = demand.with(*dimension, amount);
            count += 1;
        }
        if count != columns.len() || cells(row).count() != count {
            let message = format!("a row has {} cells, as the first line has", columns.len());
            return Err(source.wrong(&(start..start), message));
        }
        if series.len() == periods_max {
            let message = format!("a series has at most {periods_max} periods; make them longer");
            return Err(source.wrong(&(start..start), message));
        }
        series.push(demand);
    }
    if series.is_empty() {
        return Err(source.wrong(&(0..0), "the series has no periods; write a row for each"));
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Demand>, String> {
        let source = Source { name: "s.csv".to_owned(), text: text.to_owned() };
        super::parse(&source, 3).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_periods() {
        let series = parse("qps, capacity\n1k,2TB\n\n3k,4TB\n").expect("it is one");
        assert_eq!(series.len(), 2);
        assert_eq!(series[1].get(Dimension::Qps), 3000);
        assert_eq!(series[1].get(Dimension::Capacity), 4_000_000_000_000);
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let refused = |text: &str| parse(text).expect_err("it cannot be");
        assert!(refused("").starts_with("s.csv:1:1: the series is empty"));
        assert!(refused("qps,size\n").starts_with("s.csv:1:5: \"size\": no such column; use cap"));
        assert!(refused("qps,qps\n").starts_with("s.csv:1:5: column qps is there twice"));
        assert!(refused("qps,iops\n1, -2\n").starts_with("s.csv:2:4: \"-2\": a count cannot be"));
        assert!(refused("qps,iops\n1\n").starts_with("s.csv:2:1: a row has 2 cells"));
        assert!(refused("qps\n1,2\n").starts_with("s.csv:2:1: a row has 1 cells"));
        assert!(refused("qps\n").contains("has no periods"));
        assert!(refused("qps\n1\n2\n3\n4\n").starts_with("s.csv:5:1: a series has at most 3"));
        assert!(refused("qps\nnan\n").contains("not a count"));
    }
}
