//! `afar plan admit`: who may share a flash device.

use std::path::Path;
use std::process::ExitCode;

use chart::{Anchor, BLUE, GREY, ORANGE, Panel, Scale, Svg, axis, decades};
use console::{
    Failure,
    layout::{NONE, row, table},
    terminal,
};
use document::DocumentError;
use measure::{Count, Duration};
use planner::device::{Applicant, Device, Interference, Point, Verdict};
use results::plan::admit as record;
use serde::Deserialize;
use serde_json::Value as Json;
use toml::Spanned;

use super::amounts::small;
use super::{Written, when, write};
use crate::flags::AdmitFlags;
use document::csv::rows;
use document::{Source, Text, Value};

/// The example that `--print` prints.
const EXAMPLE: &str = include_str!("../../../examples/plan/admit.toml");
/// Klimovic et al. §4.2: a core carries three tenants at their peak, not four.
const TENANTS_OF_CORE: u32 = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    device: DeviceTable,
    #[serde(default)]
    tenant: Vec<TenantTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceTable {
    cores: Option<Value>,
    points: Option<Spanned<Vec<PointTable>>>,
    #[serde(default)]
    records: Vec<Spanned<String>>,
    read: Option<Value>,
    write: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointTable {
    reads: Value,
    writes: Value,
    p95: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantTable {
    name: String,
    reads: Option<Value>,
    writes: Option<Value>,
    p95: Option<Value>,
    #[serde(default)]
    bursty: bool,
}

/// Runs `afar plan admit`.
///
/// # Errors
/// If the file is invalid, or a result cannot be written.
pub(super) fn admit(flags: &AdmitFlags) -> Result<ExitCode, Failure> {
    let Some(path) = flags.experiment.as_deref().filter(|_| !flags.print) else {
        terminal::answer(EXAMPLE)?;
        return Ok(ExitCode::SUCCESS);
    };
    let (device, points, applicants) = read(path)?;
    let verdicts = device.admit(&applicants);
    write(Written {
        table: text(&device, &applicants, &verdicts),
        files: vec![
            when(&flags.json, || results::write(&recorded(&device, &applicants, &verdicts))),
            when(&flags.csv, || csv(recorded(&device, &applicants, &verdicts).tenants)),
            when(&flags.svg, || picture(&device, &points, &applicants, &verdicts)),
        ],
    })
}

/// Reads the file: the device, the loads that were measured, and the tenants that apply.
fn read(path: &Path) -> Result<(Device, Vec<Point>, Vec<Applicant>), DocumentError> {
    let source = Source::read(path)?;
    let document: Document = source.parse()?;
    let tenants_max = match &document.device.cores {
        None => None,
        Some(value) => match small(&source, value, 10_000, "cores")? {
            0 => {
                let message = "there are no cores; give at least 1, or leave it out";
                return Err(source.wrong(&value.span(), message));
            }
            cores => Some(cores * TENANTS_OF_CORE),
        },
    };
    let points = points(&source, &document.device)?;
    let span = document.device.points.as_ref().map_or(0..0, Spanned::span);
    let mut device = Device::fit(&points, tenants_max)
        .map_err(|error| source.wrong(&span, error.to_string()))?;
    device.service = match (&document.device.read, &document.device.write) {
        (Some(read), Some(write)) => Some([source.value(read)?, source.value(write)?]),
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => {
            return Err(source.wrong(&one.span(), "give both read and write, or neither"));
        }
    };
    let mut applicants = Vec::new();
    for tenant in &document.tenant {
        let of = |value: &Option<Value>| value.as_ref().map_or(Ok(0.0), |one| rate(&source, one));
        applicants.push(Applicant {
            name: tenant.name.clone(),
            reads: of(&tenant.reads)?,
            writes: of(&tenant.writes)?,
            tail_us: tenant.p95.as_ref().map(|one| tail(&source, one)).transpose()?,
            bursty: tenant.bursty,
        });
    }
    Ok((device, points, applicants))
}

/// The loads that were measured, from the file and from the records that it names.
fn points(source: &Source, table: &DeviceTable) -> Result<Vec<Point>, DocumentError> {
    let mut points = Vec::new();
    for point in table.points.iter().flat_map(Spanned::get_ref) {
        let (reads, writes) = (rate(source, &point.reads)?, rate(source, &point.writes)?);
        points.push(Point { reads, writes, tail_us: tail(source, &point.p95)? });
    }
    for name in &table.records {
        let path = Path::new(&source.name).with_file_name(name.get_ref());
        let source = Source::read(&path)?;
        let is_json = source.text.trim_start().starts_with('{');
        points.extend(if is_json { of_record(&source) } else { of_table(&source) }?);
    }
    Ok(points)
}

/// The loads in a record of `afar bench --sweep --json`, or in fio's JSON. Closed loops of afar are
/// left out, since their latency follows from their depth.
fn of_record(source: &Source) -> Result<Vec<Point>, DocumentError> {
    let record: Json = serde_json::from_str(&source.text).map_err(|error| DocumentError::At {
        place: format!("{}:{}:{}", source.name, error.line(), error.column()),
        message: "this is no JSON; give what afar bench --sweep --json has written".to_owned(),
    })?;
    let mut points = Vec::new();
    for job in record["jobs"].as_array().into_iter().flatten() {
        if job["afar"].is_object() && job["afar"]["rate_per_s"].is_null() {
            continue;
        }
        let rate = |of: &str| job[of]["iops"].as_f64().unwrap_or(0.0);
        let times = ["lat_ns", "clat_ns"].map(|name| &job["read"][name]["percentile"]["95.000000"]);
        let Some(ns) = times.into_iter().find_map(Json::as_f64) else { continue };
        points.push(Point { reads: rate("read"), writes: rate("write"), tail_us: ns / 1e3 });
    }
    if points.is_empty() {
        let message = "there is no load in it with a 95th percentile of reads; give what afar \
                       bench --sweep --json has written";
        return Err(source.wrong(&(0..0), message));
    }
    Ok(points)
}

/// The loads in CSV: reads and writes per second, and the 95th percentile of reads.
fn of_table(source: &Source) -> Result<Vec<Point>, DocumentError> {
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or_default();
    let header: Vec<&str> = header.cells().map(|(_, name)| name).collect();
    if header != ["reads", "writes", "p95"] {
        return Err(source.wrong(&(0..0), "begin it with reads,writes,p95"));
    }
    let mut points = Vec::new();
    for row in rows {
        let found: Vec<Value> = row
            .cells()
            .map(|(at, text)| Spanned::new(at..at + text.len(), Text(text.to_owned())))
            .collect();
        let [reads, writes, p95] = &found[..] else {
            return Err(source.wrong(&(row.at..row.at), "a row has 3 cells, as the first line has"));
        };
        let (reads, writes) = (rate(source, reads)?, rate(source, writes)?);
        points.push(Point { reads, writes, tail_us: tail(source, p95)? });
    }
    Ok(points)
}

/// A value of the file in requests per second.
fn rate(source: &Source, value: &Value) -> Result<f64, DocumentError> {
    source.value::<Count>(value).map(|count| count.get() as f64)
}

/// A latency of the file in microseconds; 0 is an error.
fn tail(source: &Source, value: &Value) -> Result<f64, DocumentError> {
    let time: Duration = source.value(value)?;
    if time.is_zero() {
        return Err(source.wrong(&value.span(), "a tail of nothing cannot be; write e.g. 1ms"));
    }
    Ok(time.as_ns_f64() / 1e3)
}

/// Tokens in thousands, as text.
fn kilo(tokens: f64) -> String {
    format!("{:.1}k", tokens / 1e3)
}

/// Whether a tenant may share the device.
const fn is_admitted(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Admitted(_))
}

/// Why a tenant may share the device, or why not, in words.
fn reason(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admitted(_) => "admitted".to_owned(),
        Verdict::Tail { least_us } => {
            format!("the least load that was measured has a tail of {least_us:.0} µs")
        }
        Verdict::Tokens { wanted, left } => format!(
            "{} tokens per second are left below the strictest tail, {} too few",
            kilo(*left),
            kilo(wanted - left)
        ),
        Verdict::Cores(most) => format!("the cores serve {most} tenants; add a core"),
        Verdict::Busy { load } => {
            format!("reads and writes would keep the device busy {load:.0} % of the time")
        }
        Verdict::Bursty => "a second bursty writer would be beside a promised tail".to_owned(),
    }
}

/// The readable answer: the tokens of each tenant, the verdicts, and how long requests wait.
fn text(device: &Device, applicants: &[Applicant], verdicts: &[Verdict]) -> String {
    let mut rows = vec![row(["tenant", "tokens/s", "p95", "tokens/s it allows"])];
    for applicant in applicants {
        let tail = applicant.tail_us;
        let allowed = tail.and_then(|tail| device.tokens(tail));
        rows.push(vec![
            applicant.name.clone(),
            kilo(device.cost(applicant.reads, applicant.writes)),
            tail.map_or_else(|| NONE.to_owned(), |tail| format!("{tail:.0} µs")),
            allowed.map_or_else(|| NONE.to_owned(), kilo),
        ]);
    }
    let mut text = format!("A write costs as much as {:.1} reads.\n\n", device.write_tokens);
    text += &table(&rows);
    text += "\n";
    for (applicant, verdict) in applicants.iter().zip(verdicts) {
        let no = if is_admitted(verdict) { "" } else { "no: " };
        text += &format!("{}: {no}{}\n", applicant.name, reason(verdict));
    }
    if let Some(found) = interference(device, applicants, verdicts) {
        let us = |time: Duration| format!("{:.1} µs", time.as_ns_f64() / 1e3);
        text += &format!(
            "\nWith those admitted the device is busy {:.0} % of the time; a request waits {} in \
             the mean,\nof which {} would be there if nobody wrote (M/G/1).\n",
            found.load * 100.0,
            us(found.wait),
            us(found.wait_of_reads)
        );
    }
    text
}

/// Reads and writes per second of all admitted tenants.
fn admitted(applicants: &[Applicant], verdicts: &[Verdict]) -> (f64, f64) {
    let all = applicants.iter().zip(verdicts);
    let inside = all.filter(|(_, verdict)| is_admitted(verdict));
    inside.fold((0.0, 0.0), |(reads, writes), (one, _)| (reads + one.reads, writes + one.writes))
}

/// How long requests of admitted tenants wait for one another; `None` if that is unknown.
fn interference(
    device: &Device,
    applicants: &[Applicant],
    verdicts: &[Verdict],
) -> Option<Interference> {
    let (reads, writes) = admitted(applicants, verdicts);
    device.interference(reads, writes).ok().flatten()
}

/// The picture of the measured loads, the curve, and the load of admitted tenants on it.
fn picture(
    device: &Device,
    points: &[Point],
    applicants: &[Applicant],
    verdicts: &[Verdict],
) -> String {
    let mut svg = Svg::new(640.0, 420.0);
    let tails = || points.iter().map(|point| point.tail_us);
    let low = tails().fold(f64::INFINITY, f64::min) * 0.9;
    let high = tails().fold(0.0, f64::max) * 1.1;
    let (reads, writes) = admitted(applicants, verdicts);
    let taken = device.cost(reads, writes);
    let most = device.curve.last().map_or(1.0, |(tokens, _)| *tokens).max(taken);
    let (end, ticks) = axis(most * 1.02, kilo);
    let (x, y) = (Scale::Linear(0.0, end), Scale::Logarithmic(low, high));
    let panel = Panel { left: 76.0, top: 52.0, width: 532.0, height: 300.0, x, y };
    svg.axes(&panel, ("tokens per second", &ticks), ("95th percentile, µs", &decades(low, high)));
    svg.band(panel.at(0.0, low), panel.at(taken, high), BLUE);
    let curve: Vec<(f64, f64)> = device.curve.iter().map(|&(x, y)| panel.at(x, y)).collect();
    svg.path(&curve, BLUE, "stroke-width=\"2\"");
    for point in points {
        let at = panel.at(device.cost(point.reads, point.writes), point.tail_us);
        svg.dot(at, ORANGE, point.writes > 0.0);
    }
    let promised = applicants.iter().filter_map(|one| one.tail_us);
    let strictest = promised.filter(|us| (low..high).contains(us)).reduce(f64::min);
    if let Some(us) = strictest {
        let dotted = "stroke-width=\"1\" stroke-dasharray=\"2 3\"";
        svg.line(panel.at(0.0, us), panel.at(end, us), GREY, dotted);
    }
    svg.frame(&panel);
    svg.key((76.0, 20.0), &[("measured, hollow with writes", ORANGE), ("curve", BLUE)]);
    let note = "pale: what those admitted take; dotted: the strictest promise";
    svg.tinted((76.0, 40.0), note, Anchor::Start, GREY);
    svg.finish("Tail of reads by load in tokens")
}

/// A row for each tenant.
fn csv(tenants: Vec<record::Tenant>) -> String {
    let leading = ["name", "tokens_per_sec", "p95_us", "admitted", "reason"];
    console::csv_of(&serde_json::json!(tenants), &leading)
}

/// The record of the answer.
fn recorded(device: &Device, applicants: &[Applicant], verdicts: &[Verdict]) -> record::Admission {
    let tenants = applicants.iter().zip(verdicts).map(|(applicant, verdict)| record::Tenant {
        name: applicant.name.clone(),
        tokens_per_sec: device.cost(applicant.reads, applicant.writes),
        p95_us: applicant.tail_us,
        admitted: is_admitted(verdict),
        reason: reason(verdict),
    });
    let curve = device.curve.iter();
    let curve = curve.map(|&(tokens_per_sec, p95_us)| record::Point { tokens_per_sec, p95_us });
    let interference =
        interference(device, applicants, verdicts).map(|found| record::Interference {
            load: found.load,
            wait_ns: found.wait.as_ns_f64(),
            wait_of_reads_ns: found.wait_of_reads.as_ns_f64(),
        });
    record::Admission {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        write_tokens: device.write_tokens,
        tenant_count_max: device.tenants_max.map(u64::from),
        curve: curve.collect(),
        tenants: tenants.collect(),
        interference,
    }
}
