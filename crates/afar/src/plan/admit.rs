//! `afar plan admit`: who may share a flash device.

use std::path::Path;
use std::process::ExitCode;

use measure::{Count, Duration};
use planner::device::{Applicant, Device, Point, Verdict};
use serde::Deserialize;
use serde_json::json;
use toml::Spanned;

use super::amounts::small;
use super::source::{Source, Value};
use super::{PlanError, json_text};
use crate::failure::Failure;
use crate::flags::AdmitFlags;
use crate::layout::{NONE, row, table};
use crate::output::Output;
use crate::terminal;

/// What files are begun with.
const EXAMPLE: &str = include_str!("../../../../examples/plan/admit.toml");
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
    points: Spanned<Vec<PointTable>>,
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
/// When the file cannot be, or a result cannot be written.
pub(super) fn admit(flags: &AdmitFlags) -> Result<ExitCode, Failure> {
    let Some(path) = flags.experiment.as_deref().filter(|_| !flags.print) else {
        terminal::answer(EXAMPLE).map_err(Failure::Stdout)?;
        return Ok(ExitCode::SUCCESS);
    };
    let (device, applicants) = read(path)?;
    let verdicts = device.admit(&applicants);
    let output = flags.json.as_deref().map(Output::open).transpose()?;
    if let Some(output) = output {
        output.write(&record(&device, &applicants, &verdicts))?;
    }
    if flags.json.as_ref().is_none_or(|path| path.as_os_str() != "-") {
        terminal::answer(&text(&device, &applicants, &verdicts)).map_err(Failure::Stdout)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<(Device, Vec<Applicant>), PlanError> {
    let source = Source::read(path)?;
    let document: Document = source.parse()?;
    let rate = |value: &Value| source.value::<Count>(value).map(|count| count.get() as f64);
    let tail = |value: &Value| {
        let time: Duration = source.value(value)?;
        if time.is_zero() {
            return Err(source.wrong(&value.span(), "a tail of nothing cannot be; write e.g. 1ms"));
        }
        Ok(time.as_ns_f64() / 1e3)
    };
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
    let mut points = Vec::new();
    for point in document.device.points.get_ref() {
        let (reads, writes) = (rate(&point.reads)?, rate(&point.writes)?);
        points.push(Point { reads, writes, tail_us: tail(&point.p95)? });
    }
    let device = Device::fit(&points, tenants_max)
        .map_err(|error| source.wrong(&document.device.points.span(), error.to_string()))?;
    let mut applicants = Vec::new();
    for tenant in &document.tenant {
        let of = |value: &Option<Value>| value.as_ref().map_or(Ok(0.0), rate);
        applicants.push(Applicant {
            name: tenant.name.clone(),
            reads: of(&tenant.reads)?,
            writes: of(&tenant.writes)?,
            tail_us: tenant.p95.as_ref().map(tail).transpose()?,
            bursty: tenant.bursty,
        });
    }
    Ok((device, applicants))
}

fn kilo(tokens: f64) -> String {
    format!("{:.1}k", tokens / 1e3)
}

/// A verdict as a phrase.
fn reason(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admitted(_) => "admitted".to_owned(),
        Verdict::Tail { least_us } => {
            format!("no: the least load that was measured has a tail of {least_us:.0} µs")
        }
        Verdict::Tokens { wanted, left } => format!(
            "no: {} tokens per second are left below the strictest tail, {} too few",
            kilo(*left),
            kilo(wanted - left)
        ),
        Verdict::Cores(most) => format!("no: the cores serve {most} tenants; add a core"),
        Verdict::Bursty => "no: a second bursty writer would be beside a promised tail".to_owned(),
    }
}

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
        text += &format!("{}: {}\n", applicant.name, reason(verdict));
    }
    text
}

fn record(device: &Device, applicants: &[Applicant], verdicts: &[Verdict]) -> String {
    let tenants = applicants.iter().zip(verdicts).map(|(applicant, verdict)| {
        json!({
            "name": applicant.name,
            "tokens_per_sec": device.cost(applicant.reads, applicant.writes),
            "p95_us": applicant.tail_us,
            "admitted": matches!(verdict, Verdict::Admitted(_)),
            "reason": reason(verdict),
        })
    });
    let curve = device.curve.iter();
    let curve = curve.map(|(tokens, us)| json!({"tokens_per_sec": tokens, "p95_us": us}));
    json_text(&json!({
        "schema": "afar.plan.admit/1",
        "version": env!("CARGO_PKG_VERSION"),
        "write_tokens": device.write_tokens,
        "tenant_count_max": device.tenants_max,
        "curve": curve.collect::<Vec<_>>(),
        "tenants": tenants.collect::<Vec<_>>(),
    }))
}
