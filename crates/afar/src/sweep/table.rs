//! Slowdowns against each axis, for people and as CSV.

use std::fmt::Write as _;

use super::file::{AXES, Better};
use super::journal::Row;
use super::matrix::{Cell, Kind};
use super::stats::{Estimate, outliers};
use crate::validity::ALLOWED;

/// What the runs of one cell say.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) cell: Cell,
    /// Of the ratios of its figure to that of the native run of the same block.
    pub(crate) slowdown: Option<Estimate>,
    /// Block and slowdown of runs that stand out.
    pub(crate) outliers: Vec<(u32, f64)>,
    /// Runs that failed, and why the first of them did.
    pub(crate) failed_count: usize,
    pub(crate) first_failure: Option<String>,
    /// Runs from which nothing is concluded, and why not from the first of them.
    pub(crate) invalid_count: usize,
    pub(crate) first_invalid: Option<String>,
    /// Runs that count because memory that is not managed was allowed.
    pub(crate) allowed_count: usize,
    pub(crate) fetch_count: Option<u64>,
    /// Runs whose budget was exceeded.
    pub(crate) exceeded_count: usize,
}

/// How many times slower `value` is than `native`.
pub(crate) fn slowdown(value: f64, native: f64, better: Better) -> f64 {
    match better {
        Better::Lower => value / native,
        Better::Higher => native / value,
    }
}

/// What all runs of the cells say.
pub(crate) fn findings(cells: &[Cell], rows: &[Row], better: Better, seed: u64) -> Vec<Finding> {
    cells.iter().map(|cell| finding(cell, rows, better, seed)).collect()
}

fn finding(cell: &Cell, rows: &[Row], better: Better, seed: u64) -> Finding {
    let name = cell.name();
    let mine: Vec<&Row> = rows.iter().filter(|row| row.cell == name).collect();
    let native = |block: u32| {
        let row = rows.iter().find(|row| row.block == block && row.cell == "native");
        row.and_then(|row| row.value)
    };
    let ratios: Vec<(u32, f64)> = mine
        .iter()
        .filter_map(|row| Some((row.block, slowdown(row.value?, native(row.block)?, better))))
        .collect();
    let values: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
    let mut fetches: Vec<f64> =
        mine.iter().filter_map(|row| row.fetch_count.map(|count| count as f64)).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of counts")]
    let fetch_count = (!fetches.is_empty()).then(|| super::stats::median(&mut fetches) as u64);
    Finding {
        cell: cell.clone(),
        slowdown: Estimate::of(&values, seed),
        outliers: outliers(&values).into_iter().map(|index| ratios[index]).collect(),
        failed_count: mine.iter().filter(|row| row.failure.is_some()).count(),
        first_failure: mine.iter().find_map(|row| row.failure.clone()),
        invalid_count: mine.iter().filter(|row| row.invalid.is_some()).count(),
        first_invalid: mine.iter().find_map(|row| row.invalid.clone()),
        allowed_count: mine.iter().filter(|row| row.allowed).count(),
        fetch_count,
        exceeded_count: mine.iter().filter(|row| row.budget_held == Some(false)).count(),
    }
}

/// One table for each axis that has several values, and for each combination of the others.
pub(crate) fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    let baselines = findings.iter().filter(|finding| finding.cell.kind == Kind::Zero);
    for finding in baselines {
        let engine = finding.cell.value("engine");
        let under = if engine.is_empty() { String::new() } else { format!(", engine {engine}") };
        let row = row(finding);
        let _infallible = writeln!(out, "afar by itself (all local, no delay{under}): {row}");
    }
    let far: Vec<&Finding> =
        findings.iter().filter(|finding| finding.cell.kind == Kind::Far).collect();
    let mut shown = false;
    for axis in AXES {
        let mut values: Vec<&str> = far.iter().map(|finding| finding.cell.value(axis)).collect();
        values.dedup();
        values.sort_unstable();
        values.dedup();
        if values.len() < 2 {
            continue;
        }
        shown = true;
        let mut others: Vec<String> = Vec::new();
        for finding in &far {
            let rest = rest(&finding.cell, axis);
            if !others.contains(&rest) {
                others.push(rest);
            }
        }
        for other in others {
            let given = if other.is_empty() { String::new() } else { format!(" ({other})") };
            let _infallible = writeln!(out, "\nslowdown against {axis}{given}");
            for finding in far.iter().filter(|finding| rest(&finding.cell, axis) == other) {
                let value = finding.cell.value(axis);
                let _infallible = writeln!(out, "  {value:>10}  {}", row(finding));
            }
        }
    }
    if !shown {
        for finding in &far {
            let _infallible = writeln!(out, "{}: {}", finding.cell.name(), row(finding));
        }
    }
    out.push_str(
        "\nslowdown: median over blocks of the ratio to the native run of the block, with \
                  its 95 % interval\n",
    );
    out
}

fn rest(cell: &Cell, axis: &str) -> String {
    let others = cell.settings.iter().filter(|(name, _)| *name != axis);
    others.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn row(finding: &Finding) -> String {
    let mut out = match finding.slowdown {
        Some(Estimate { median, low, high, count }) => {
            format!("{median:>7.3}  [{low:.3}, {high:.3}]  n={count}")
        }
        None => "no figure".to_owned(),
    };
    if let Some(count) = finding.fetch_count {
        let _infallible = write!(out, "  {count} fetches");
    }
    if finding.exceeded_count > 0 {
        let _infallible = write!(out, "  budget exceeded in {}", finding.exceeded_count);
    }
    for (block, value) in &finding.outliers {
        let _infallible = write!(out, "  outlier {value:.3} in block {}", block + 1);
    }
    if let Some(why) = &finding.first_failure {
        let _infallible = write!(out, "  {} failed: {why}", finding.failed_count);
    }
    if let Some(why) = &finding.first_invalid {
        let _infallible = write!(out, "  {} {why}", finding.invalid_count);
    }
    if finding.allowed_count > 0 {
        let _infallible = write!(out, "  {} of them: {ALLOWED}", finding.allowed_count);
    }
    out
}

/// One line for each cell, with everything in it.
pub(crate) fn csv(findings: &[Finding]) -> String {
    let mut out = String::from("cell");
    for axis in AXES {
        let _infallible = write!(out, ",{axis}");
    }
    out.push_str(
        ",slowdown,low,high,count,failed,invalid,allowed,outliers,fetches,budget_exceeded\n",
    );
    for finding in findings {
        let mut fields = vec![match finding.cell.kind {
            Kind::Native => "native".to_owned(),
            Kind::Zero => "zero".to_owned(),
            Kind::Far => "far".to_owned(),
        }];
        fields.extend(AXES.map(|axis| finding.cell.value(axis).to_owned()));
        match finding.slowdown {
            Some(Estimate { median, low, high, count }) => {
                fields.extend([median, low, high].map(|figure| format!("{figure:.6}")));
                fields.push(count.to_string());
            }
            None => fields.extend(["", "", "", "0"].map(str::to_owned)),
        }
        fields.push(finding.failed_count.to_string());
        fields.push(finding.invalid_count.to_string());
        fields.push(finding.allowed_count.to_string());
        fields.push(finding.outliers.len().to_string());
        fields.push(finding.fetch_count.map_or_else(String::new, |count| count.to_string()));
        fields.push(finding.exceeded_count.to_string());
        let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
        out.push_str(&quoted.join(","));
        out.push('\n');
    }
    out
}

// RFC 4180.
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(local: &str) -> Cell {
        Cell { kind: Kind::Far, settings: vec![("local", local.to_owned())] }
    }

    fn ran(block: u32, cell: &Cell, value: Option<f64>) -> Row {
        let failure = value.is_none().then(|| "it hung".to_owned());
        Row { block, cell: cell.name(), value, failure, ..Row::default() }
    }

    #[test]
    fn slowdown_is_taken_block_by_block() {
        let (slow, broken) = (far("25%"), far("50%"));
        let cells = [Cell::NATIVE, Cell::zero(None), slow.clone(), broken.clone()];
        let mut rows = Vec::new();
        // The machine is twice as slow in every other block; ratios do not show it.
        for block in 0..6 {
            let pace = f64::from(block % 2 + 1);
            rows.push(ran(block, &Cell::NATIVE, Some(pace)));
            rows.push(ran(block, &slow, Some(3.0 * pace)));
            rows.push(ran(block, &broken, None));
        }
        let findings = findings(&cells, &rows, Better::Lower, 1);
        let expected = Estimate { median: 3.0, low: 3.0, high: 3.0, count: 6 };
        assert_eq!(findings[2].slowdown, Some(expected));
        assert_eq!((findings[3].slowdown, findings[3].failed_count), (None, 6));
        let text = text(&findings);
        assert!(
            text.contains("slowdown against local\n         25%    3.000  [3.000, 3.000]  n=6")
        );
        assert!(text.contains("50%  no figure  6 failed: it hung"), "{text}");
        let csv = csv(&findings);
        assert_eq!(csv.lines().count(), 5);
        assert!(csv.contains("far,,25%,,,,,,,3.000000,3.000000,3.000000,6,0,0,0,0,,0\n"), "{csv}");
    }

    #[test]
    fn an_invalid_run_is_told_and_counts_for_nothing() {
        let cell = far("25%");
        let mut rows = Vec::new();
        for block in 0..3 {
            rows.push(ran(block, &Cell::NATIVE, Some(1.0)));
            rows.push(ran(block, &cell, Some(2.0)));
        }
        rows[1].invalidate("invalid: it ran natively".to_owned());
        let findings = findings(std::slice::from_ref(&cell), &rows, Better::Lower, 1);
        let expected = Estimate { median: 2.0, low: 2.0, high: 2.0, count: 2 };
        assert_eq!(findings[0].slowdown, Some(expected));
        assert_eq!((findings[0].invalid_count, findings[0].failed_count), (1, 0));
        let text = text(&findings);
        assert!(text.contains("n=2  1 invalid: it ran natively"), "{text}");
    }

    #[test]
    fn more_is_better_turns_the_ratio_round() {
        assert_eq!(slowdown(50.0, 100.0, Better::Higher), 2.0);
        assert_eq!(slowdown(50.0, 100.0, Better::Lower), 0.5);
    }
}
