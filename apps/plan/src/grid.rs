//! Tables that are written for other commands, as CSV or, by the ending of their name, as Parquet.

use std::path::PathBuf;

use document::DocumentError;
use planner::cost::{Demand, Dimension};
use records::{Column, write_table};

use document::is_parquet;

/// Columns of one length, with their names.
pub(super) type Grid = Vec<(&'static str, Column)>;

/// The contents of a table's file; empty without a path.
///
/// # Errors
/// If the table cannot be made.
pub(super) fn bytes(
    path: &Option<PathBuf>,
    grid: impl FnOnce() -> Result<Grid, DocumentError>,
) -> Result<Vec<u8>, DocumentError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let (name, grid) = (path.display().to_string(), grid()?);
    if !is_parquet(&name) {
        return Ok(csv(&grid).into_bytes());
    }
    write_table(Vec::new(), &grid).map_err(|source| DocumentError::Table { place: name, source })
}

/// A column of demands for each dimension.
pub(super) fn demands(all: &[Demand]) -> Grid {
    let column = |dimension: Dimension| {
        let numbers = all.iter().map(|one| one.get(dimension)).collect();
        (dimension.name(), Column::Numbers(numbers))
    };
    Dimension::ALL.into_iter().map(column).collect()
}

/// The table as CSV.
fn csv(grid: &Grid) -> String {
    let names: Vec<&str> = grid.iter().map(|(name, _)| *name).collect();
    let rows = grid.first().map_or(0, |(_, column)| match column {
        Column::Text(values) => values.len(),
        Column::Numbers(values) => values.len(),
    });
    let mut text = names.join(",") + "\n";
    for row in 0..rows {
        for (at, (name, column)) in grid.iter().enumerate() {
            text += if at > 0 { "," } else { "" };
            match column {
                Column::Text(values) => text += &values[row],
                Column::Numbers(values) => text += &values[row].to_string(),
            }
            // Readers of CSV need the unit of a rate; in Parquet rates have none.
            let is_rate =
                [Dimension::Traffic, Dimension::Network].iter().any(|one| one.name() == *name);
            text += if is_rate && !text.ends_with(",0") { "b/s" } else { "" };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rows() {
        let grid = vec![
            ("a", Column::Text(vec!["x".to_owned(), "y".to_owned()])),
            ("traffic", Column::Numbers(vec![0, 20])),
        ];
        assert_eq!(csv(&grid), "a,traffic\nx,0\ny,20b/s\n");
    }
}
