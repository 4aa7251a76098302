//! Series of demands as CSV or Parquet: a column for each dimension, a row for each period; those
//! of many tenants have columns for tenant and period, too.

use std::collections::BTreeMap;
use std::path::Path;

use planner::cost::{Demand, Dimension, Tenant};

use crate::amounts::cell_amount;
use document::DocumentError;
use document::Source;
use document::csv::rows;

/// The most demands of a file, so that it cannot take all memory.
const DEMANDS_MAX: usize = 50_000_000;

/// Reads a series of at most `periods_max` periods.
pub(super) fn read(path: &Path, periods_max: usize) -> Result<Vec<Demand>, DocumentError> {
    parse(&Source::read(path)?, periods_max)
}

/// Reads the series of many tenants, each of at most `periods_max` periods; a period without a row
/// has no demand.
pub(super) fn read_all(path: &Path, periods_max: usize) -> Result<Vec<Tenant>, DocumentError> {
    parse_all(&Source::read(path)?, periods_max)
}

/// Parses the series of many tenants.
fn parse_all(source: &Source, periods_max: usize) -> Result<Vec<Tenant>, DocumentError> {
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or_default();
    let header: Vec<(usize, &str)> = header.cells().collect();
    let [(_, "tenant"), (_, "period"), further @ ..] = &header[..] else {
        return Err(source.wrong(&(0..0), "begin it with tenant,period and what is wanted"));
    };
    let columns = columns(source, further.iter().copied())?;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut tenants: Vec<Tenant> = Vec::new();
    let mut count = 0;
    for row in rows {
        let found: Vec<(usize, &str)> = row.cells().collect();
        if found.len() != header.len() {
            let message = format!("a row has {} cells, as the first line has", header.len());
            return Err(source.wrong(&(row.at..row.at), message));
        }
        let (period_at, text) = found[1];
        let wrong = |message: String| source.wrong(&(period_at..period_at), message);
        let period = text.parse::<usize>().ok().filter(|period| *period < periods_max);
        let period = period.ok_or_else(|| {
            wrong(format!("\"{text}\": a period is a number from 0 to {}", periods_max - 1))
        })?;
        let number = *numbers.entry(found[0].1.to_owned()).or_insert(tenants.len());
        if number == tenants.len() {
            tenants.push(Tenant { name: found[0].1.to_owned(), series: Vec::new() });
        }
        let series = &mut tenants[number].series;
        if period >= series.len() {
            count += period + 1 - series.len();
            if count > DEMANDS_MAX {
                return Err(wrong(format!("there are more than {DEMANDS_MAX} periods in all")));
            }
            series.resize(period + 1, Demand::default());
        }
        series[period] = demand(source, &columns, &found[2..])?;
    }
    if tenants.is_empty() {
        return Err(source.wrong(&(0..0), "there are no tenants; write a row for each period"));
    }
    Ok(tenants)
}

/// The dimensions that columns are named after.
fn columns<'a>(
    source: &Source,
    names: impl Iterator<Item = (usize, &'a str)>,
) -> Result<Vec<Dimension>, DocumentError> {
    let mut columns = Vec::new();
    for (at, name) in names {
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
    Ok(columns)
}

/// The demand in a row of amounts.
fn demand(
    source: &Source,
    columns: &[Dimension],
    found: &[(usize, &str)],
) -> Result<Demand, DocumentError> {
    let mut demand = Demand::default();
    for (&(at, text), &dimension) in found.iter().zip(columns) {
        let amount = cell_amount(source, dimension, text);
        let amount = amount.map_err(|message| source.wrong(&(at..at), message))?;
        demand = demand.with(dimension, amount);
    }
    Ok(demand)
}

/// Parses the series of one tenant.
fn parse(source: &Source, periods_max: usize) -> Result<Vec<Demand>, DocumentError> {
    let mut rows = rows(&source.text);
    let Some(header) = rows.next() else {
        return Err(
            source.wrong(&(0..0), "the series is empty; begin it with the names of columns")
        );
    };
    let columns = columns(source, header.cells())?;
    let mut series = Vec::new();
    for row in rows {
        let start = row.at;
        let found: Vec<(usize, &str)> = row.cells().collect();
        if found.len() != columns.len() {
            let message = format!("a row has {} cells, as the first line has", columns.len());
            return Err(source.wrong(&(start..start), message));
        }
        if series.len() == periods_max {
            let message = format!("a series has at most {periods_max} periods; make them longer");
            return Err(source.wrong(&(start..start), message));
        }
        series.push(demand(source, &columns, &found)?);
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
    fn many_tenants_are_in_one_file() {
        let all = |text: &str| {
            let source = Source { name: "s.csv".to_owned(), text: text.to_owned() };
            parse_all(&source, 3).map_err(|error| error.to_string())
        };
        let tenants = all("tenant,period,qps\na,1,5\nb,0,7\na,0,3\n").expect("it is one");
        let qps = |tenant: &Tenant| -> Vec<u64> {
            tenant.series.iter().map(|one| one.get(Dimension::Qps)).collect()
        };
        assert_eq!(tenants.iter().map(qps).collect::<Vec<_>>(), [vec![3, 5], vec![7]]);
        let refused = |text: &str| all(text).expect_err("it cannot be");
        assert!(refused("tenant,qps\n").starts_with("s.csv:1:1: begin it with tenant,period"));
        assert!(refused("tenant,period,qps\na,3,1\n").starts_with("s.csv:2:3: \"3\": a period"));
        assert!(refused("tenant,period,qps\na,0\n").contains("a row has 3 cells"));
        assert!(refused("tenant,period,qps\na,0,-1\n").starts_with("s.csv:2:5:"));
        assert!(refused("tenant,period,qps\n").contains("there are no tenants"));
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
