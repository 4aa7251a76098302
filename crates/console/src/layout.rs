//! How numbers are laid out for people: tables, and rates in thousands.

/// Shown where there is no number.
pub const NONE: &str = "–";

/// Columns as wide as they need to be, the first to the left and the others to the right.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &match index {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A row of a table.
#[must_use]
pub fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Requests per second, in thousands.
#[must_use]
pub fn kilo(rate: f64) -> String {
    format!("{:.1}k", rate / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let rows = [row(["mix", "IOPS"]), row(["100 %", "9"])];
        assert_eq!(table(&rows), "mix    IOPS\n100 %     9\n");
    }
}
