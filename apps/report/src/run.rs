//! One run with far memory: how long fetches took, and of what that is made.

use chart::{Axis, Bar, Bars, BarsScale, Kind, Look, Plot, Series, short};
use measure::{Bytes, Duration, Figures, LatencySummary, Run};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::sweep::program as named;
use super::words::{bits_per_s, exact, percent, time_ns};
use results::validity::{self, ALLOWED};

/// The section of a record `afar.run/2`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let run: Run = serde_json::from_value(value)?;
    let program = program(&run.command);
    let mut section = Section {
        title: format!("{program}: one run with far memory"),
        kind: "run",
        warnings: run.results.warnings.clone(),
        facts: settings(&run),
        ..Section::default()
    };
    section.facts.push(("memory".to_owned(), validity::covered(&run.results.coverage)));
    match run.results.figures() {
        Ok(known) => {
            let allowed =
                (!run.results.allowed.is_empty()).then(|| format!("{program}: {ALLOWED}."));
            section.answer.extend(allowed);
            section.answer.extend(answer(&program, &run, known));
            section.facts.extend(facts(known));
            section.figures = figures(known);
            section.pictures.extend(cdf(&known.fault_latency.total_bins));
            section.pictures.extend(parts(known));
        }
        Err(invalid) => section.invalid = Some(validity::told(&invalid)),
    }
    section.command = run.command;
    section.host = Some(run.host);
    Ok(section)
}

/// The name of the program that `afar run` ran.
fn program(command: &[String]) -> String {
    let words: Vec<String> =
        command.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    match (words.as_slice(), command.last()) {
        ([], None) => "the program".to_owned(),
        ([], Some(last)) => named(std::slice::from_ref(last), ""),
        (words, _) => named(words, ""),
    }
}

/// Sentences on the run's time, local memory and fetches.
fn answer(program: &str, run: &Run, results: &Figures) -> Vec<String> {
    let params = &run.params;
    let elapsed = Duration::from_ns(results.elapsed_ns);
    let managed = Bytes::new(results.managed_peak_bytes);
    let local = match (params.share_told(), params.local_bytes) {
        (Some(share), _) => format!("{share} local, of {managed} in use at most"),
        (None, Some(bytes)) => {
            format!("{} of its {managed} of memory local", Bytes::new(bytes))
        }
        (None, None) => format!("{} of its {managed} of memory local", params.local),
    };
    let mut answer =
        vec![format!("{program} ran for {elapsed} with {local}, on a network with {}.", link(run))];
    let latency = &results.fault_latency.total;
    if latency.count > 0 {
        let busy = latency.mean_ns as f64 * latency.count as f64 / results.elapsed_ns.max(1) as f64;
        answer.push(format!(
            "It waited for {} fetches, of which half took up to {} and one in a hundred more than \
             {}; together they are {} of the time that it ran, over all of its threads.",
            console::layout::count(latency.count),
            time_ns(latency.p50_ns as f64),
            time_ns(latency.p99_ns as f64),
            percent(busy)
        ));
    } else {
        answer.push("It fetched nothing: the network did not matter.".to_owned());
    }
    let budget = &results.budget;
    if budget.budget_bytes > 0 && !budget.held {
        answer.push(format!(
            "Local memory was not held to its budget: {} at peak where {} were allowed, so \
             more was local than was asked for.",
            Bytes::new(budget.peak_resident_bytes),
            Bytes::new(budget.budget_bytes)
        ));
    }
    answer.push(
        "How much slower that makes it than without far memory, one run cannot tell: afar sweep \
         runs both."
            .to_owned(),
    );
    answer
}

/// The delays and bandwidth of the run's network, in words.
fn link(run: &Run) -> String {
    let params = &run.params;
    let mut text = match &params.profile {
        Some(profile) => format!("times from {profile}"),
        None => format!("a round trip of {}", time_ns(params.rtt_ns as f64)),
    };
    if let Some(rate) = params.bandwidth_bps.filter(|rate| *rate > 0) {
        text += &format!(" and {}", bits_per_s(rate as f64));
    }
    text
}

/// The settings of the run, as facts.
fn settings(run: &Run) -> Vec<(String, String)> {
    let params = &run.params;
    let mut facts = vec![
        ("engine".to_owned(), params.engine.clone()),
        ("trap".to_owned(), params.trap.clone()),
        ("a thread that waits".to_owned(), format!("{}s", params.wait)),
        ("policy".to_owned(), params.policy.clone()),
        ("prefetch".to_owned(), params.prefetch.clone()),
        ("link".to_owned(), params.link.clone()),
        ("seed".to_owned(), run.seed.to_string()),
    ];
    if let Some(calibration) = &run.results.calibration {
        let floor = Duration::from_ns(calibration.floor_ns).to_string();
        facts.push(("shortest delay".to_owned(), floor));
    }
    facts
}

/// What the run's link and mechanism did, as facts.
fn facts(figures: &Figures) -> [(String, String); 5] {
    let is_bound = figures.links.iter().all(|link| link.conserves);
    let bound =
        if is_bound { "bounds fetches and write-backs" } else { "delays, and bounds nothing" };
    let own = figures.mechanism.share(figures.elapsed_ns) * 100.0;
    [
        ("bandwidth".to_owned(), bound.to_owned()),
        ("beyond delays".to_owned(), format!("{own:.1} % of the run")),
        ("fetched".to_owned(), Bytes::new(figures.fetched_bytes).to_string()),
        ("written back".to_owned(), Bytes::new(figures.written_back_bytes).to_string()),
        ("stalls".to_owned(), figures.stall.stall_count.to_string()),
    ]
}

/// The time, fetches and bytes of the run, as figures.
fn figures(results: &Figures) -> Vec<Figure> {
    let latency = &results.fault_latency.total;
    let us = |ns: u64| ns as f64 / 1e3;
    let mut figures = vec![Figure::new("elapsed", "s", results.elapsed_ns as f64 / 1e9)];
    figures.push(Figure::new("fetches", "", results.faults.fetch_count as f64));
    for (name, ns) in [
        ("fetch, mean", latency.mean_ns),
        ("fetch, p50", latency.p50_ns),
        ("fetch, p99", latency.p99_ns),
        ("fetch, p99.9", latency.p999_ns),
    ] {
        figures.push(Figure::new(name, "µs", us(ns)));
    }
    figures.push(Figure::new("fetched", "bytes", results.fetched_bytes as f64));
    figures.push(Figure::new("written back", "bytes", results.written_back_bytes as f64));
    figures
}

/// The cumulative distribution of times in µs, from pairs of ns and count in ascending order.
pub(super) fn distribution(name: &str, bins: &[(u64, u64)]) -> Series {
    let all: u64 = bins.iter().map(|bin| bin.1).sum();
    let mut below = 0;
    let share = bins.iter().map(|(ns, count)| {
        below += count;
        (*ns as f64 / 1e3, below as f64 / all.max(1) as f64)
    });
    let points: Vec<(f64, f64)> = share.collect();
    let start = points.first().map(|first| (first.0, 0.0));
    Series::new(name, Look::Steps, start.into_iter().chain(points).collect())
}

/// A picture of distributions over one logarithmic axis of microseconds.
pub(super) fn distributions(title: &str, caption: &str, series: Vec<Series>) -> Picture {
    let mut table = Table::new(["series", "us", "share"]);
    for one in &series {
        for point in one.points.iter().skip(1) {
            table.push([one.name.clone(), exact(point.x), exact(point.y)]);
        }
    }
    let chart = Plot {
        title: title.to_owned(),
        x: Axis::new("time, µs", Kind::Logarithmic),
        y: Axis::new("share", Kind::Linear).showing(&[0.0, 1.0]),
        series,
        bounds: vec![(0.5, "p50".to_owned()), (0.99, "p99".to_owned())],
        marks: Vec::new(),
    };
    Picture {
        name: "latency-cdf".to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        chart: Chart::Plot(chart),
        table,
    }
}

/// The picture of the distribution of fetch times; `None` without fetches.
fn cdf(bins: &[(u64, u64)]) -> Option<Picture> {
    let caption = "The share of fetches that took no longer, from the fault to the page.";
    let series = distribution("fetches", bins);
    (!bins.is_empty()).then(|| distributions("Time of a fetch", caption, vec![series]))
}

/// The picture of the parts of a fetch's time; `None` without fetches.
fn parts(results: &Figures) -> Option<Picture> {
    let latency = &results.fault_latency;
    let parts: [(&str, &LatencySummary); 3] = [
        ("waiting for the link", &latency.wait),
        ("transfer", &latency.transfer),
        ("the mechanism", &latency.overhead),
    ];
    if latency.total.count == 0 {
        return None;
    }
    let mut table =
        Table::new(["part", "mean_us", "p50_us", "p95_us", "p99_us", "p999_us", "max_us"]);
    let us = |ns: u64| exact(ns as f64 / 1e3);
    for (name, one) in parts.iter().copied().chain([("whole", &latency.total)]) {
        let [mean, p50, p95, p99, p999, max] =
            [one.mean_ns, one.p50_ns, one.p95_ns, one.p99_ns, one.p999_ns, one.max_ns].map(us);
        table.push([name.to_owned(), mean, p50, p95, p99, p999, max]);
    }
    let bar = |name: &str, of: fn(&LatencySummary) -> u64| {
        let values: Vec<f64> = parts.iter().map(|(_, part)| of(part) as f64 / 1e3).collect();
        let text = format!("{} µs", short(values.iter().sum()));
        Bar { name: name.to_owned(), parts: values, interval: None, text }
    };
    Some(Picture {
        name: "fetch-parts".to_owned(),
        title: "What a fetch is made of".to_owned(),
        caption: "Percentiles of each part, taken by themselves: those of the whole are in the \
                  table."
            .to_owned(),
        chart: Chart::Bars(Bars {
            title: "What a fetch is made of".to_owned(),
            unit: "µs".to_owned(),
            label: short,
            parts: parts.iter().map(|(name, _)| (*name).to_owned()).collect(),
            bars: vec![
                bar("mean", |one| one.mean_ns),
                bar("p50", |one| one.p50_ns),
                bar("p99", |one| one.p99_ns),
            ],
            marks: Vec::new(),
            scale: BarsScale::Zero,
        }),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a run that is invalid but for what its user allows.
    fn run() -> Run {
        let golden = include_str!("../../../crates/measure/tests/golden/run.json");
        Run::from_json(golden).expect("it is a run")
    }

    fn told(run: &Run) -> Section {
        let context = Context { bound: 1.05, name: String::new() };
        let value = serde_json::from_str(&run.to_json()).expect("it is JSON");
        section(value, &context).expect("it is a run").silenced()
    }

    #[test]
    fn a_run_is_told_with_its_distribution() {
        let mut run = run();
        run.results = run.results.allowing_unmanaged();
        let section = told(&run);
        let answer = &section.answer;
        assert!(answer[0].contains("ran with local memory only (allowed)"), "{answer:?}");
        assert!(answer[1].contains("ran for 1.5 s with 512.0 MiB of its 2.0 GiB"), "{answer:?}");
        assert_eq!(section.figures[0], Figure::new("elapsed", "s", 1.5));
    }

    #[test]
    fn a_share_is_told_with_what_it_is_a_share_of() {
        let mut run = run();
        run.results = run.results.allowing_unmanaged();
        run.params.of = Some("live".to_owned());
        let answer = told(&run).answer.join(" ");
        let live = "with 25 % of what is in use at each moment (live footprint) local, of 2.0 GiB";
        assert!(answer.contains(live), "{answer}");
        (run.params.of, run.params.of_bytes) = (Some("fixed".to_owned()), Some(2 << 30));
        let answer = told(&run).answer.join(" ");
        assert!(answer.contains("with 25 % of 2.0 GiB local, of 2.0 GiB in use"), "{answer}");
    }

    #[test]
    fn an_invalid_run_has_a_reason_in_place_of_an_answer() {
        let section = told(&run());
        let answer = section.answer.join(" ");
        assert!(answer.contains("invalid: redis-server (pid 77) was not managed"), "{answer}");
        for verdict in ["did not matter", "fetches", "ran for", "How much slower"] {
            assert!(!answer.contains(verdict), "{answer}");
        }
        assert!(section.figures.is_empty() && section.pictures.is_empty());
        let fact = |name: &str| section.facts.iter().any(|fact| fact.0 == name);
        assert!(fact("memory") && !fact("fetched"), "{:?}", section.facts);
    }

    #[test]
    fn a_distribution_ends_at_one() {
        let series = distribution("x", &[(1_000, 1), (2_000, 3)]);
        let points: Vec<(f64, f64)> = series.points.iter().map(|one| (one.x, one.y)).collect();
        assert_eq!(points, [(1.0, 0.0), (1.0, 0.25), (2.0, 1.0)]);
    }
}
