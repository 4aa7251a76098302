//! The summary of a load for people.

use std::fmt::Write as _;

use measure::{Duration, LoadOperation, LoadParams, LoadProbe, LoadResults, LoadSearch, Run};

use console::layout::count;

const NAME: usize = 19;

/// A sentence on requests that were refused, lost or answered wrongly, on failed connections, or on
/// trouble of the probe; `None` if all is well.
pub(crate) fn shortfall(results: &LoadResults) -> Option<String> {
    let sum = |of: fn(&LoadOperation) -> u64| results.operations.iter().map(of).sum();
    let parts = [
        (sum(|of| of.refused_count), "requests were refused"),
        (sum(|of| of.wrong_count), "values came back wrong"),
        (results.lost_count, "requests had no answer"),
        (results.failed_connection_count, "connections failed"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts.map(|(number, what)| format!("{} {what}", count(*number))).collect();
    match (&parts[..], &results.first_trouble) {
        ([], _) if results.request_count > 0 => results.probe.as_ref().and_then(lacking),
        ([], _) => Some("no request was answered".to_owned()),
        (parts, Some(first)) => Some(format!("{}; the first: {first}", parts.join(", "))),
        (parts, None) => Some(parts.join(", ")),
    }
}

/// The same sentence for the probe.
fn lacking(probe: &LoadProbe) -> Option<String> {
    let troubles = probe.operations.iter().map(|of| of.refused_count + of.wrong_count);
    let troubles = troubles.sum::<u64>() + probe.lost_count;
    match (troubles, &probe.first_trouble) {
        (0, _) if probe.request_count == 0 => {
            Some("no request of the probe was answered".to_owned())
        }
        (0, None) => None,
        (_, first) => Some(format!(
            "{} requests of the probe were not answered as asked; the first: {}",
            count(troubles),
            first.as_deref().unwrap_or("it was not told why")
        )),
    }
}

/// The summary of a load.
pub(crate) fn text(run: &Run<LoadResults>) -> String {
    let (params, results) = (&run.params, &run.results);
    let mut out = format!("\nafar: {}: {}\n\n", params.target, how(params));
    let mut row = |name: &str, text: String| {
        let _infallible = writeln!(out, "{name:<NAME$}{text}");
    };
    for (name, text) in results.search.iter().flat_map(searched) {
        row(name, text);
    }
    let elapsed = Duration::from_ns(results.elapsed_ns);
    row(
        "throughput",
        format!(
            "{} requests/s: {} in {elapsed}",
            count(rounded(results.requests_per_s)),
            count(results.request_count),
        ),
    );
    if let Some(seconds) = by_second(&results.request_count_by_second) {
        row("by the second", seconds);
    }
    if let Some(asked) = params.rate_per_s
        && results.requests_per_s < asked * 0.99
    {
        let share = results.requests_per_s / asked * 100.0;
        row("", format!("{share:.1} % of the {} asked for", count(rounded(asked))));
    }
    for of in &results.operations {
        if of.missing_count > 0 {
            row("missing", format!("{} records of {}", count(of.missing_count), of.operation));
        }
        if of.refused_count > 0 {
            row("refused", format!("{} times {}", count(of.refused_count), of.operation));
        }
        if of.wrong_count > 0 {
            row("WRONG", format!("{} values of {}", count(of.wrong_count), of.operation));
        }
    }
    if results.lost_count > 0 || results.failed_connection_count > 0 {
        let (lost, failed) = (results.lost_count, results.failed_connection_count);
        row("lost", format!("{lost} requests without an answer, {failed} connections failed"));
    }
    if let Some(trouble) = &results.first_trouble {
        row("first", trouble.clone());
    }
    if results.interrupted {
        row("interrupted", "these are the figures until then".to_owned());
    }
    out.push_str(&latencies("latency, µs", &results.operations));
    if let Some(probe) = &results.probe {
        out.push_str(&latencies("probe, µs", &probe.operations));
    }
    out
}

/// Rows about a search: the bound, and the rate that was found.
fn searched(search: &LoadSearch) -> Vec<(&'static str, String)> {
    let bound = Duration::from_ns(search.bound_ns);
    let mut rows =
        vec![("searched", format!("{} <= {bound}, {} tries", search.quantity, search.tries.len()))];
    if let Some((rate, [least, most])) = search.found_per_s.zip(search.interval_per_s) {
        let [rate, least, most] = [rate, least, most].map(|rate| count(rounded(rate)));
        let text = format!("{rate} requests/s hold; every try up to {least}, none from {most} on");
        rows.push(("found", text));
        rows.push(("", "what follows is of one try at that rate".to_owned()));
    }
    if let Some(why) = &search.invalid {
        rows.push(("INVALID", why.clone()));
        rows.push(("", "what follows is of the last try".to_owned()));
    }
    rows
}

/// Median, minimum and maximum of requests per whole second; `None` for fewer than 3 seconds.
fn by_second(seconds: &[u64]) -> Option<String> {
    let mut whole = seconds.split_last().map(|(_, whole)| whole.to_vec())?;
    whole.sort_unstable();
    let (Some(least), Some(most), 3..) = (whole.first(), whole.last(), whole.len()) else {
        return None;
    };
    let median = whole[whole.len() / 2];
    Some(format!("{} ({} to {})", count(median), count(*least), count(*most)))
}

// Describes the load in a line.
fn how(params: &LoadParams) -> String {
    let mix: Vec<String> = params
        .mix
        .iter()
        .map(|share| format!("{} {:.0} %", share.operation, share.share * 100.0))
        .collect();
    let pace = match (params.rate_per_s, &params.spacing) {
        (Some(rate), Some(spacing)) => format!("open loop, {}/s {spacing}", count(rounded(rate))),
        _ => "closed loop".to_owned(),
    };
    let plural =
        |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let growth = params.append_bytes.map(|bytes| format!(", growing by {bytes}"));
    let growth = growth.unwrap_or_default();
    let keys = params.key_bytes.map(|bytes| format!("{bytes} and ")).unwrap_or_default();
    format!(
        "{} of {} records ({keys}{} bytes{growth}), {}; {pace}, {}, {}, depth {}",
        mix.join(", "),
        count(params.record_count),
        params.value_bytes,
        params.distribution,
        plural(params.thread_count, "thread"),
        plural(params.connection_count, "connection"),
        params.depth
    )
}

fn latencies(title: &str, operations: &[LoadOperation]) -> String {
    let of = |one: &LoadOperation| (one.operation.clone(), one.latency);
    crate::latencies::table(title, NAME, operations.iter().map(of))
}

// A rate, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn rounded(rate: f64) -> u64 {
    rate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_felt_nothing_is_told() {
        let of = |probe| {
            let probe = Some(probe);
            shortfall(&LoadResults { request_count: 1, probe, ..LoadResults::default() })
        };
        let none = LoadProbe::default();
        assert_eq!(of(none.clone()).as_deref(), Some("no request of the probe was answered"));
        assert_eq!(of(LoadProbe { request_count: 1, ..none.clone() }), None);
        let lost = LoadProbe { lost_count: 2, first_trouble: Some("reset".to_owned()), ..none };
        let told = "2 requests of the probe were not answered as asked; the first: reset";
        assert_eq!(of(lost).as_deref(), Some(told));
    }

    #[test]
    fn good_is_answered_and_nothing_else() {
        let good = LoadResults { request_count: 1, ..LoadResults::default() };
        assert_eq!(shortfall(&good), None);
        assert_eq!(shortfall(&LoadResults::default()).as_deref(), Some("no request was answered"));
        let lost = LoadResults { lost_count: 1, first_trouble: Some("reset".to_owned()), ..good };
        let sentence = shortfall(&lost).unwrap_or_default();
        assert_eq!(sentence, "1 requests had no answer; the first: reset");
    }
}
