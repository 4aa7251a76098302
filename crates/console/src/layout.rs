//! Layout of numbers: tables for people and as CSV, and rates in thousands.

use std::borrow::Cow;

/// Printed where there is no number.
pub const NONE: &str = "–";

/// A table with columns as wide as their cells, the first left-aligned and the others
/// right-aligned.
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

/// Rows as CSV of RFC 4180, but with line ends of one character.
#[must_use]
pub fn csv(rows: impl IntoIterator<Item = impl AsRef<[String]>>) -> String {
    let line = |row: &[String]| row.iter().map(|cell| quote(cell)).collect::<Vec<_>>().join(",");
    rows.into_iter().map(|row| line(row.as_ref()) + "\n").collect()
}

/// A cell, quoted if need be.
fn quote(cell: &str) -> Cow<'_, str> {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\"")).into()
    } else {
        cell.into()
    }
}

/// A rate in thousands per second: `12.3k`.
#[must_use]
pub fn kilo(rate: f64) -> String {
    format!("{:.1}k", rate / 1e3)
}

/// A number with commas between thousands: `1,234,567`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_thousands() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn csv_quotes_what_would_be_read_otherwise() {
        let rows = [row(["a b", "c,d"]), row(["say \"no\"", "two\nlines"])];
        assert_eq!(csv(&rows), "a b,\"c,d\"\n\"say \"\"no\"\"\",\"two\nlines\"\n");
    }

    #[test]
    fn tables_line_up() {
        let rows = [row(["mix", "IOPS"]), row(["100 %", "9"])];
        assert_eq!(table(&rows), "mix    IOPS\n100 %     9\n");
    }
}
