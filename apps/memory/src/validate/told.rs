//! A validation as text.

use console::layout::{row, table};
use results::{Emulated, Estimate, FetchTimes, ValidatedSide, Validation};

/// The table with a line for each kind of run, and remarks.
pub(super) fn text(record: &Validation) -> String {
    let head = ["run", "waits", "s", "slowdown", "fetches", "moved MiB", "fetch µs", "p50", "p99"];
    let head = head.into_iter().chain(["by real", ""]);
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    if let Some(native) = &record.native_seconds {
        rows.push(row(["native", "", &native.text(3), "", "", "", "", "", "", "", ""]));
    }
    if let Some(real) = &record.real {
        rows.push(line("real", real, ["", ""]));
    }
    for one in &record.emulated {
        let ends = [&one.ratio.text(3), one.agreement.words()];
        rows.push(line(&one.name, &one.side, ends));
    }
    let local = record
        .of
        .as_ref()
        .map_or_else(|| record.local.clone(), |of| format!("{} of {of}", record.local));
    let mut text =
        format!("{} with {local} local, far on {}\n\n", record.command.join(" "), record.far);
    text += &table(&rows);
    text += "\nmedians; a slowdown beside the native run of the same block, \"by real\" beside the \
             real one,\nwith an interval that holds the true median in at least 93 % of \
             experiments\n";
    for one in &record.emulated {
        text += &remarks(one);
    }
    text += &format!(
        "an emulation agrees where the whole interval is within {} % of the real run, and what was \
         fetched\nand moved within {} %\n",
        percent(record.within),
        percent(record.counts_within)
    );
    text
}

/// The result of the plain emulation, in a sentence.
pub(super) fn verdict(record: &Validation, plain: &Emulated) -> String {
    format!(
        "emulated beside real: {} of the time, {:.3} of the fetches, {:.3} of the bytes: {} \
         (within {} % and {} %)",
        plain.ratio.text(3),
        plain.fetch_ratio,
        plain.moved_ratio,
        plain.agreement.words(),
        percent(record.within),
        percent(record.counts_within)
    )
}

// Deviating counts and disturbances of one emulation.
fn remarks(one: &Emulated) -> String {
    let mut text = String::new();
    if (one.fetch_ratio - 1.0).abs() > 0.001 || (one.moved_ratio - 1.0).abs() > 0.001 {
        text += &format!(
            "{}: {:.3} of the fetches of the real runs, {:.3} of the bytes moved\n",
            one.name, one.fetch_ratio, one.moved_ratio
        );
    }
    if let Some(why) = &one.first_disturbance {
        let count = one.disturbed_count;
        text += &format!("{}: {count} pairs of runs were disturbed: {why}\n", one.name);
    }
    text
}

// The row of one kind.
fn line(name: &str, side: &ValidatedSide, ends: [&str; 2]) -> Vec<String> {
    let FetchTimes { mean_us, p50_us, p99_us, .. } = side.fetch;
    row([
        name,
        &side.wait,
        &short(&side.seconds),
        &side.slowdown.text(3),
        &format!("{:.0}", side.fetch_count),
        &format!("{:.1}", side.moved_bytes / f64::from(1 << 20)),
        &format!("{mean_us:.2}"),
        &format!("{p50_us:.2}"),
        &format!("{p99_us:.2}"),
        ends[0],
        ends[1],
    ])
}

fn short(estimate: &Estimate) -> String {
    format!("{:.3}", estimate.median)
}

fn percent(share: f64) -> String {
    format!("{}", (share * 1e4).round() / 1e2)
}
