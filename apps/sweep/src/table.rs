//! Computes findings, and prints slowdowns against each axis as text and CSV.

use std::fmt::Write as _;

use console::layout;
use experiment::{Ratios, stats};
use measure::{Bytes, ShareOf};
use results::{CellKind as Kind, Estimate, Finding, Native, Outlier, Verdict};

use super::file::{AXES, Better, Metric};
use super::matrix::Cell;
use super::row::Row;
use results::validity::ALLOWED;

/// The key of the machine's class in a finding's settings, if there are several classes.
pub(crate) const MACHINE: &str = "machine";

/// The slowdown of a figure against the native one.
pub fn slowdown(value: f64, native: f64, better: Better) -> f64 {
    match better {
        Better::Lower => value / native,
        Better::Higher => native / value,
    }
}

/// The findings of all cells.
pub(crate) fn findings(cells: &[Cell], rows: &[Row], better: Better) -> Vec<Finding> {
    cells.iter().map(|cell| finding(cell, rows, better, stats::estimate)).collect()
}

/// The native figure from undisturbed runs; `None` if there are none.
pub(crate) fn native(rows: &[Row], metric: &Metric) -> Option<Native> {
    let name = Cell::NATIVE.name();
    let valid = |row: &&Row| row.cell == name && row.disturbed.is_none();
    let values: Vec<f64> = rows.iter().filter(valid).filter_map(|row| row.value).collect();
    let read = metric.pattern.as_ref().or(metric.json.as_ref());
    Some(Native {
        figure: stats::estimate(&values)?,
        metric: read.map_or_else(|| "seconds".to_owned(), Clone::clone),
        higher_is_better: metric.better == Better::Higher,
    })
}

/// The finding of one cell, with its interval by `estimate`.
pub(crate) fn finding(
    cell: &Cell,
    rows: &[Row],
    better: Better,
    estimate: impl Fn(&[f64]) -> Option<Estimate>,
) -> Finding {
    let name = cell.name();
    let mine: Vec<&Row> = rows.iter().filter(|row| row.cell == name).collect();
    let beside_native = ratios(&mine, rows, &Cell::NATIVE.name(), better);
    let (values, is_disturbed) = beside_native.counting();
    let slowdown = estimate(&values);
    let beside_zero = ratios(&mine, rows, &cell.zero_of().name(), better);
    let slowdown_beside_zero = stats::estimate(&beside_zero.counting().0);
    let mut fetches: Vec<f64> =
        mine.iter().filter_map(|row| row.fetch_count.map(|count| count as f64)).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of counts")]
    let fetch_count = stats::median(&mut fetches).map(|count| count as u64);
    let count = |is: fn(&Row) -> bool| mine.iter().filter(|row| is(row)).count() as u64;
    let first_invalid = mine.iter().find_map(|row| row.invalid.clone());
    let verdict = match slowdown {
        None if first_invalid.is_some() => Verdict::Invalid,
        None => Verdict::Undecided,
        Some(_) if is_disturbed => Verdict::Disturbed,
        Some(slowdown) => slowdown.verdict(1.0),
    };
    Finding {
        slowdown,
        slowdown_beside_zero: slowdown_beside_zero.filter(|_| cell.kind == Kind::Far),
        verdict,
        outliers: beside_native.outliers(),
        failed_count: count(|row| row.failure.is_some()),
        first_failure: mine.iter().find_map(|row| row.failure.clone()),
        invalid_count: count(|row| row.invalid.is_some()),
        first_invalid,
        disturbed_count: beside_native.disturbed_count(),
        first_disturbance: beside_native.first_disturbance().map(str::to_owned),
        allowed_count: count(|row| row.allowed),
        fetch_count,
        of_bytes: mine.iter().find_map(|row| row.of_bytes),
        local_bytes: mine.iter().find_map(|row| row.local_bytes),
        budget_exceeded_count: count(|row| row.budget_held == Some(false)),
        ..Finding::new(cell.kind, cell.all_settings())
    }
}

/// Ratios of a cell's figures to those of another cell in the same block.
fn ratios(mine: &[&Row], rows: &[Row], beside: &str, better: Better) -> Ratios {
    let mut ratios = Ratios::default();
    for row in mine {
        let is_beside = |other: &&Row| other.block == row.block && other.cell == beside;
        let Some(other) = rows.iter().find(is_beside) else { continue };
        let Some((value, base)) = row.value.zip(other.value) else { continue };
        let disturbed = row.disturbed.as_ref().or(other.disturbed.as_ref());
        ratios.add(row.block, slowdown(value, base, better), disturbed.cloned());
    }
    ratios
}

/// The findings as text: the native figure, then a table for each axis with several values and
/// each combination of the other axes.
pub(crate) fn text(native: Option<&Native>, findings: &[Finding]) -> String {
    let mut out = native.map_or_else(|| "native: no figure\n".to_owned(), native_line);
    for finding in findings.iter().filter(|finding| finding.kind == Kind::Small) {
        let _infallible = writeln!(out, "native without huge pages: {}", row(finding));
    }
    for finding in findings.iter().filter(|finding| finding.kind == Kind::Zero) {
        let engine = finding.value("engine");
        let row = row(finding);
        let _infallible = writeln!(out, "all local, no delay, engine {engine}: {row}");
    }
    let far: Vec<&Finding> = findings.iter().filter(|finding| finding.kind == Kind::Far).collect();
    for line in shares(&far) {
        let _infallible = writeln!(out, "{line}");
    }
    let mut shown = false;
    for axis in AXES {
        let mut values: Vec<&str> = far.iter().map(|finding| finding.value(axis)).collect();
        values.dedup();
        values.sort_unstable();
        values.dedup();
        if values.len() < 2 {
            continue;
        }
        shown = true;
        let mut others: Vec<String> = Vec::new();
        for finding in &far {
            let rest = rest(finding, &[axis]);
            if !others.contains(&rest) {
                others.push(rest);
            }
        }
        for other in others {
            let given = if other.is_empty() { String::new() } else { format!(" ({other})") };
            let _infallible = writeln!(out, "\nslowdown against {axis}{given}");
            for finding in far.iter().filter(|finding| rest(finding, &[axis]) == other) {
                let value = finding.value(axis);
                let _infallible = writeln!(out, "  {value:>10}  {}", row(finding));
            }
        }
    }
    if !shown {
        for finding in &far {
            let _infallible = writeln!(out, "{}: {}", rest(finding, &[]), row(finding));
        }
    }
    out.push_str(NOTE);
    out
}

const NOTE: &str = "
slowdown: median over blocks of the ratio to the native run of the same block; in brackets an
interval that holds the true median in at least 93 % of experiments (order statistics, from 5 runs
on). slower: the whole interval is above 1. undecided: it holds 1. beside zero: the ratio to the run
of the same block with all memory local and no delay. native without huge pages: memory under the
arena engine has pages of 4 KiB; what that costs by itself.
";

/// Lines that say what shares of local memory are shares of.
fn shares(far: &[&Finding]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let is_one = far.iter().all(|finding| finding.value("engine") == far[0].value("engine"));
    for finding in far {
        let Some((of, told)) = finding.share_of().zip(finding.share_told()) else { continue };
        let engine = finding.value("engine");
        let with = if is_one { String::new() } else { format!(", with engine {engine},") };
        let first = match of {
            ShareOf::Peak => ", in its first run with all memory local",
            ShareOf::Live | ShareOf::Bytes(_) => "",
        };
        let line = format!("of={of}: local memory{with} is a share of {told}{first}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The line about the native figure.
fn native_line(native: &Native) -> String {
    let Native { figure, metric, higher_is_better } = native;
    let better = if *higher_is_better { ", more is better" } else { "" };
    format!("native: {} {metric}  n={}{better}\n", figure.text(4), figure.count)
}

/// The settings of a finding except those of the axes `without`, as text.
fn rest(finding: &Finding, without: &[&str]) -> String {
    let axes = AXES.into_iter().filter(|axis| !without.contains(axis));
    let settings = axes.filter_map(|axis| Some((axis, finding.settings.get(axis)?)));
    // The default engine needs no mention.
    let settings = settings.filter(|(axis, value)| (*axis, value.as_str()) != ("engine", "arena"));
    settings.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The word for a verdict in tables.
const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Beyond => "slower",
        Verdict::Within => "as fast",
        other => other.words(),
    }
}

/// The line about a finding: slowdown, verdict and counts.
fn row(finding: &Finding) -> String {
    let mut out = match finding.slowdown {
        Some(slowdown) => {
            let (text, count) = (slowdown.text(3), slowdown.count);
            format!("{text:>22}  {}  n={count}", word(finding.verdict))
        }
        None => "no figure".to_owned(),
    };
    if let Some(Estimate { median, .. }) = finding.slowdown_beside_zero {
        let _infallible = write!(out, "  {median:.3} beside zero");
    }
    if let Some(count) = finding.fetch_count {
        let _infallible = write!(out, "  {count} fetches");
    }
    if let Some(bytes) = finding.local_bytes.filter(|_| finding.share_of().is_some()) {
        let _infallible = write!(out, "  {} local", Bytes::new(bytes));
    }
    if finding.budget_exceeded_count > 0 {
        let _infallible = write!(out, "  budget exceeded in {}", finding.budget_exceeded_count);
    }
    for Outlier { block, slowdown } in &finding.outliers {
        let _infallible = write!(out, "  outlier {slowdown:.3} in block {}", block + 1);
    }
    if let Some(why) = &finding.first_failure {
        let _infallible = write!(out, "  {} failed: {why}", finding.failed_count);
    }
    if let Some(why) = &finding.first_invalid {
        let _infallible = write!(out, "  {} {why}", finding.invalid_count);
    }
    if let Some(why) = &finding.first_disturbance {
        let _infallible = write!(out, "  {} disturbed: {why}", finding.disturbed_count);
    }
    if finding.allowed_count > 0 {
        let _infallible = write!(out, "  {} of them: {ALLOWED}", finding.allowed_count);
    }
    out
}

/// The findings as CSV, a line for each cell.
pub(crate) fn csv(findings: &[Finding]) -> String {
    let mut out = String::from("cell");
    for axis in AXES {
        let _infallible = write!(out, ",{axis}");
    }
    out.push_str(
        ",slowdown,low,high,level,count,verdict,beside_zero,failed,invalid,disturbed,allowed,\
         outliers,fetches,budget_exceeded,of_bytes,local_bytes,machine\n",
    );
    for finding in findings {
        let mut fields = vec![match finding.kind {
            Kind::Native => "native".to_owned(),
            Kind::Small => "small".to_owned(),
            Kind::Zero => "zero".to_owned(),
            Kind::Far => "far".to_owned(),
        }];
        fields.extend(AXES.map(|axis| finding.value(axis).to_owned()));
        let number = |value: Option<f64>| value.map_or_else(String::new, |one| format!("{one:.6}"));
        let interval = finding.slowdown.and_then(|slowdown| slowdown.interval);
        fields.push(number(finding.slowdown.map(|slowdown| slowdown.median)));
        fields.push(number(interval.map(|interval| interval.low)));
        fields.push(number(interval.map(|interval| interval.high)));
        fields.push(number(interval.map(|interval| interval.level)));
        fields.push(finding.slowdown.map_or(0, |slowdown| slowdown.count).to_string());
        fields.push(word(finding.verdict).to_owned());
        fields.push(number(finding.slowdown_beside_zero.map(|slowdown| slowdown.median)));
        fields.push(finding.failed_count.to_string());
        fields.push(finding.invalid_count.to_string());
        fields.push(finding.disturbed_count.to_string());
        fields.push(finding.allowed_count.to_string());
        fields.push(finding.outliers.len().to_string());
        fields.push(finding.fetch_count.map_or_else(String::new, |count| count.to_string()));
        fields.push(finding.budget_exceeded_count.to_string());
        let bytes = |bytes: Option<u64>| bytes.map_or_else(String::new, |one| one.to_string());
        fields.extend([bytes(finding.of_bytes), bytes(finding.local_bytes)]);
        fields.push(finding.value(MACHINE).to_owned());
        out += &layout::csv([fields]);
    }
    out
}

#[cfg(test)]
mod tests {
    use experiment::noise::{Noise, Tolerance};
    use results::Interval;
    use workload::Draw;

    use super::*;

    fn far(local: &str) -> Cell {
        Cell::far(vec![("local", local.to_owned())])
    }

    fn ran(block: u32, cell: &Cell, value: Option<f64>) -> Row {
        let failure = value.is_none().then(|| "it hung".to_owned());
        Row { block, cell: cell.name(), value, failure, ..Row::default() }
    }

    fn exactly(median: f64, count: u64) -> Estimate {
        let level = 1.0 - 2.0 * 0.5_f64.powi(6);
        let interval = (count == 6).then_some(Interval { low: median, high: median, level });
        Estimate { median, interval, count }
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
            rows.push(ran(block, &Cell::zero(None), Some(1.5 * pace)));
            rows.push(ran(block, &slow, Some(3.0 * pace)));
            rows.push(ran(block, &broken, None));
        }
        let findings = findings(&cells, &rows, Better::Lower);
        assert_eq!(findings[2].slowdown, Some(exactly(3.0, 6)));
        assert_eq!(findings[2].slowdown_beside_zero, Some(exactly(2.0, 6)));
        assert_eq!(findings[2].verdict, Verdict::Beyond);
        assert_eq!((findings[3].slowdown, findings[3].failed_count), (None, 6));
        let native = native(&rows, &Metric::default()).expect("it ran");
        let text = text(Some(&native), &findings);
        assert!(text.starts_with("native: 1.5000 [1.0000, 2.0000] seconds  n=6\n"), "{text}");
        assert!(
            text.contains("25%    3.000 [3.000, 3.000]  slower  n=6  2.000 beside zero\n"),
            "{text}"
        );
        assert!(text.contains("50%  no figure  6 failed: it hung"), "{text}");
        let csv = csv(&findings);
        assert_eq!(csv.lines().count(), 5);
        let line = "far,arena,25%,peak,,,,,,,3.000000,3.000000,3.000000,0.968750,6,slower,\
                    2.000000,0,0,0,0,0,,0,,,\n";
        assert!(csv.contains(line), "{csv}");
    }

    #[test]
    fn a_share_is_told_with_what_it_is_a_share_of() {
        let of = |name: &str| ("of", name.to_owned());
        let far = |of| Cell::far(vec![("local", "25%".to_owned()), of]);
        let cells = [far(of("peak")), far(of("live")), far(of("2GiB"))];
        let mut rows: Vec<Row> = cells.iter().map(|cell| ran(0, cell, Some(2.0))).collect();
        rows.push(ran(0, &Cell::NATIVE, Some(1.0)));
        (rows[0].of_bytes, rows[0].local_bytes) = (Some(512 << 20), Some(128 << 20));
        let findings = findings(&cells, &rows, Better::Lower);
        let text = text(None, &findings);
        for line in [
            "of=peak: local memory is a share of 512.0 MiB (the most it used), in its first run \
             with all memory local\n",
            "of=live: local memory is a share of what is in use at each moment (live footprint)\n",
            "of=2.0 GiB: local memory is a share of 2.0 GiB\n",
            "slowdown against of (local=25%)\n",
            "n=1  128.0 MiB local\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let csv = csv(&findings);
        assert!(csv.contains("far,arena,25%,peak,") && csv.contains(",536870912,134217728,\n"));
        assert_eq!((findings[1].of_bytes, findings[1].value("of")), (None, "live"));
    }

    #[test]
    fn an_invalid_run_is_told_and_counts_for_nothing() {
        let cell = far("25%");
        let mut rows = Vec::new();
        for block in 0..3 {
            rows.push(ran(block, &Cell::NATIVE, Some(1.0)));
            rows.push(ran(block, &cell, Some(2.0)));
        }
        rows[1] = rows[1].clone().invalidated("invalid: it ran natively".to_owned());
        let findings = findings(std::slice::from_ref(&cell), &rows, Better::Lower);
        assert_eq!(findings[0].slowdown, Some(exactly(2.0, 2)));
        assert_eq!((findings[0].invalid_count, findings[0].failed_count), (1, 0));
        assert_eq!(findings[0].verdict, Verdict::Undecided, "two runs decide nothing");
        let text = text(None, &findings);
        assert!(text.contains("[n too small: 2]  undecided  n=2  1 invalid: it ran natively"));
    }

    #[test]
    fn a_verdict_follows_from_the_interval_and_not_from_the_median() {
        let cell = far("25%");
        let found = |ratios: [f64; 5]| {
            let both = |(block, ratio)| {
                [ran(block, &Cell::NATIVE, Some(1.0)), ran(block, &cell, Some(ratio))]
            };
            let rows: Vec<Row> = (0..).zip(ratios).flat_map(both).collect();
            findings(std::slice::from_ref(&cell), &rows, Better::Lower).remove(0)
        };
        assert_eq!(found([1.1, 1.2, 1.2, 1.2, 1.3]).verdict, Verdict::Beyond);
        assert_eq!(found([0.9, 1.2, 1.2, 1.2, 1.3]).verdict, Verdict::Undecided);
        assert_eq!(found([0.8, 0.8, 0.9, 0.9, 1.0]).verdict, Verdict::Within);
        let fast = found([0.7, 0.8, 0.8, 0.9, 0.9]);
        assert_eq!(fast.verdict, Verdict::Implausible);
        assert!(text(None, &[fast]).contains("implausible: faster than native"));
    }

    #[test]
    fn disturbed_runs_count_only_where_there_are_too_few_others() {
        let cell = far("25%");
        let mut rows = Vec::new();
        for block in 0..6 {
            rows.push(ran(block, &Cell::NATIVE, Some(1.0)));
            rows.push(ran(block, &cell, Some(2.0)));
        }
        // A native run that was disturbed spoils its block.
        rows[0] = Row { disturbed: Some("a load".to_owned()), value: Some(8.0), ..rows[0].clone() };
        let of = |rows: &[Row]| {
            let findings = findings(std::slice::from_ref(&cell), rows, Better::Lower);
            findings.into_iter().next().expect("one cell")
        };
        let found = of(&rows);
        assert_eq!((found.verdict, found.disturbed_count), (Verdict::Beyond, 1));
        let native = native(&rows, &Metric::default()).expect("it ran");
        assert_eq!((native.figure.median, native.figure.count), (1.0, 5));
        assert_eq!(found.slowdown.map(|one| (one.median, one.count)), Some((2.0, 5)));
        rows[3] = Row { disturbed: Some("a load".to_owned()), ..rows[3].clone() };
        let found = of(&rows);
        assert_eq!((found.verdict, found.disturbed_count), (Verdict::Disturbed, 2));
        assert_eq!(found.slowdown.map(|one| one.count), Some(6));
        assert!(text(None, &[found]).contains("disturbed  n=6  2 disturbed: a load"));
    }

    // Times of a program that takes 10 % longer in a cell, on a machine whose runs scatter by 3 %.
    // A load takes 40 % of a processor of two from some runs and little from others.
    #[test]
    fn a_tenth_is_found_on_a_quiet_machine_and_nothing_beside_a_load() {
        let cell = far("25%");
        let tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };
        let mut draw = Draw::new(5);
        let mut sweep = |load: f64| {
            let mut rows = Vec::new();
            for block in 0..5 {
                for (cell, takes) in [(&Cell::NATIVE, 1.0), (&cell, 1.1)] {
                    // Twelve uniform draws come close to a normal one.
                    let normal = (0..12).map(|_| draw.unit()).sum::<f64>() - 6.0;
                    let others = load * (0.3 + 0.7 * draw.unit()) / 2.0;
                    let noise = Noise { others, ..Noise::default() };
                    let value = takes * (0.03 * normal).exp() * (1.0 + others);
                    let disturbed = noise.disturbance(tolerance);
                    rows.push(Row { noise, disturbed, ..ran(block, cell, Some(value)) });
                }
            }
            findings(std::slice::from_ref(&cell), &rows, Better::Lower)[0].verdict
        };
        let quiet = (0..50).filter(|_| sweep(0.0) == Verdict::Beyond).count();
        assert!(quiet >= 45, "found in {quiet} of 50");
        let silent = [Verdict::Undecided, Verdict::Disturbed];
        let loaded = (0..50).filter(|_| silent.contains(&sweep(0.4))).count();
        assert!(loaded >= 48, "nothing said in {loaded} of 50");
    }

    #[test]
    fn more_is_better_turns_the_ratio_round() {
        assert_eq!(slowdown(50.0, 100.0, Better::Higher), 2.0);
        assert_eq!(slowdown(50.0, 100.0, Better::Lower), 0.5);
    }
}
