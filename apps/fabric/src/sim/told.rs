//! What is reported of a run: a table, JSON, rows of flows, a profile of delays.

use std::fmt::Write as _;

use console::layout::{row, table};
use measure::{BitsPerSec, Bytes, DelayProfile, Duration};
use netsim::{BUFFER, End};
use records::{FlowExchange, FlowRow};
use results::sim::{Ports, Shares, Simulation, Speed};

use super::setting::Settings;
use super::setup::Setup;
use results::{Figures, Interval, Measured, Slowdowns, Spread, Steady};

/// The most times of one size in a profile; more are reduced to as many quantiles.
const PROFILE_TIMES_MAX: usize = 1000;

/// One line that says what was simulated.
pub(super) fn title(settings: &Settings, setup: &Setup) -> String {
    let host_count = setup.fabric.topology.host_count();
    let mut text = format!("{} on {}", settings.text("transport"), settings.text("topology"));
    if settings.text("variant") == super::transport::PUBLISHED {
        let _infallible = write!(text, " as published in 2016");
    }
    let _infallible = write!(text, ", {host_count} hosts; {}", settings.text("traffic"));
    for (name, value) in settings.all() {
        if matches!(name, "sizes" | "load" | "size" | "senders" | "burst" | "scale" | "seed") {
            let _infallible = write!(text, ", {name} {value}");
        }
    }
    // Results of one buffer are not those of another.
    if let Some(buffer) = setup.fabric.switch_port.buffer.filter(|buffer| *buffer != BUFFER) {
        let _infallible = write!(text, ", buffer {buffer}");
    }
    text
}

/// The readable table. `cpu_ns` is processor time of the simulation.
pub(super) fn text(title: &str, figures: &Figures, cpu_ns: u64) -> String {
    let mut text = format!("{title}\n\nslowdown\n{}\n", slowdowns(figures));
    if let Some(steady) = &figures.steady {
        let _infallible = writeln!(text, "{:<14} {}", "intervals", sureness(steady));
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let delivered = figures.delivered_packets as f64;
    let lines = [
        ("time", format!("{} in the network", Duration::from_ps(figures.end_ps))),
        ("goodput", goodput(figures)),
        ("load", load(figures)),
        (
            "utilisation",
            format!(
                "{} of hosts' links, {} of the busiest link ({})",
                percent(figures.utilisation),
                percent(figures.busiest.utilisation),
                figures.busiest.link
            ),
        ),
        (
            "drops",
            format!(
                "{} at hosts, {} at switches",
                figures.dropped_at_hosts, figures.dropped_at_switches
            ),
        ),
        (
            "deepest queue",
            format!("{}, {}", Bytes::new(figures.deepest.bytes), figures.deepest.link),
        ),
        (
            "packets",
            format!(
                "{} delivered, {:.3} sent for each that was needed",
                figures.delivered_packets, figures.inflation
            ),
        ),
        (
            "events",
            format!(
                "{}, {:.2} for each packet",
                figures.event_count,
                figures.event_count as f64 / delivered
            ),
        ),
        (
            "speed",
            format!(
                "{:.0} packets per second of processor time, {:.1} s of it",
                delivered / (cpu_ns.max(1) as f64 / 1e9),
                cpu_ns as f64 / 1e9
            ),
        ),
    ];
    for (name, what) in lines {
        let _infallible = writeln!(text, "{name:<14} {what}");
    }
    text
}

/// The table of slowdowns: a row for each size and one for all; with intervals of several runs.
fn slowdowns(figures: &Figures) -> String {
    let steady = figures.steady.as_ref().filter(|steady| steady.run_count > 1);
    let mut rows = vec![row(["flow size", "flows", "mean", "p50", "p99", "p99.9"])];
    let line = |name: &str, spread: &Spread, sure: Option<&Slowdowns>| {
        let plain = |value: f64| format!("{value:.3}");
        let cells = match sure {
            Some(Slowdowns { mean, p50, p99, p999 }) => {
                [mean, p50, p99, p999].map(|one| one.text(3))
            }
            None => [spread.mean, spread.p50, spread.p99, spread.p999].map(plain),
        };
        let first = [name.to_owned(), spread.count.to_string()];
        first.into_iter().chain(cells).collect::<Vec<_>>()
    };
    for (index, bin) in figures.bins.iter().enumerate() {
        let sure = steady.and_then(|steady| steady.bins.get(index));
        rows.push(line(&bin.name(), &bin.slowdown, sure));
    }
    rows.push(line("all", &figures.slowdown, steady.map(|steady| &steady.slowdown)));
    table(&rows)
}

/// What the intervals mean, or why there are none.
fn sureness(steady: &Steady) -> String {
    let runs = steady.run_count;
    match steady.slowdown.mean.interval {
        Some(Interval { level, .. }) => format!(
            "the middle of {runs} independent runs, with where it lies in {:.0} % of experiments; \
             bytes under way grew by {} of those that started",
            (level * 100.0).floor(),
            steady.growth.text(3)
        ),
        None => format!(
            "n too small: {runs} of at least {} runs; add --repetitions {}",
            super::steady::RUNS_MIN,
            super::steady::RUNS_MIN
        ),
    }
}

/// The goodput with its unit.
fn goodput(figures: &Figures) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive, and one that is too high is the highest"
    )]
    let goodput = BitsPerSec::new((figures.goodput_bits_per_sec as u64).max(1));
    goodput.to_string()
}

/// The utilisation of hosts' links in the measured time, beside the load that was set.
fn load(figures: &Figures) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    match &figures.measured {
        Some(Measured { from_ps, to_ps, asked, utilisation }) => format!(
            "{} of hosts' links, {} asked for, from {} to {}",
            percent(*utilisation),
            percent(*asked),
            Duration::from_ps(*from_ps),
            Duration::from_ps(*to_ps)
        ),
        None => {
            format!("{} of hosts' links until the last flow ended", percent(figures.utilisation))
        }
    }
}

/// The record of a run. What depends on this machine is under `speed`.
pub(super) fn record(
    settings: &Settings,
    setup: &Setup,
    figures: Figures,
    cpu_ns: u64,
    ports: Option<Ports>,
    shares: Vec<Shares>,
) -> Simulation {
    let seconds = cpu_ns.max(1) as f64 / 1e9;
    let packets_per_cpu_sec = (figures.delivered_packets as f64 / seconds).round();
    let named = |(name, value): (&str, &str)| (name.replace('-', "_"), value.to_owned());
    let resolved = setup.resolved.iter().map(|(name, value)| (*name, value.as_str()));
    Simulation {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: settings.all().chain(resolved).map(named).collect(),
        figures,
        speed: Speed { cpu_ns, packets_per_cpu_sec },
        ports,
        shares,
    }
}

/// The CSV: a row for each flow, in the order of the list.
pub(super) fn csv(rows: &[FlowRow]) -> String {
    let mut text = "start_ps,src,dst,bytes,completion_ps,ideal_ps,slowdown,sent_packets,\
                    dropped_packets,exchange\n"
        .to_owned();
    for one in rows {
        let FlowRow { flow, completion_ps, ideal_ps, slowdown, sent_packets, dropped_packets } =
            one;
        let _infallible = writeln!(
            text,
            "{},{},{},{},{completion_ps},{ideal_ps},{slowdown},{sent_packets},{dropped_packets},{}",
            flow.start_ps,
            flow.src,
            flow.dst,
            flow.bytes,
            flow.exchange.unwrap_or(FlowExchange::OneWay),
        );
    }
    text
}

/// The profile of delays for `afar run --profile`: completion times of reads by size, from the
/// request on. One-way flows count as reads if they end when acknowledged: an acknowledgement
/// crosses the network as a request does. `None` if nothing is read.
pub(crate) fn profile(rows: &[FlowRow], end: End) -> Option<DelayProfile> {
    let is_asked = |row: &&FlowRow| match row.flow.exchange {
        Some(FlowExchange::Read) => true,
        Some(FlowExchange::Write) => false,
        Some(FlowExchange::OneWay) | None => end == End::Acknowledged,
    };
    let rows: Vec<&FlowRow> = rows.iter().filter(is_asked).collect();
    let time = |row: &FlowRow| (Bytes::new(row.flow.bytes), Duration::from_ps(row.completion_ps));
    let whole = DelayProfile::from_samples(rows.iter().map(|row| time(row))).ok()?;
    let mut counts = std::collections::BTreeMap::<Bytes, usize>::new();
    for row in rows {
        *counts.entry(Bytes::new(row.flow.bytes)).or_default() += 1;
    }
    let thinned = counts.into_iter().flat_map(|(bytes, count)| {
        let times = whole.table(bytes, count.min(PROFILE_TIMES_MAX));
        times.into_iter().map(move |time| (bytes, time))
    });
    DelayProfile::from_samples(thinned).ok()
}
