//! Who may share a flash device.

use chart::{Axis, Kind, Look, Plot, Series};
use serde::Deserialize;
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Picture, Section, Table};
use crate::words::{exact, list};

/// `afar.plan.admit/1`.
#[derive(Deserialize)]
struct Record {
    write_tokens: f64,
    curve: Vec<Measured>,
    tenants: Vec<Tenant>,
}

#[derive(Deserialize)]
struct Measured {
    tokens_per_sec: f64,
    p95_us: f64,
}

#[derive(Deserialize)]
struct Tenant {
    name: String,
    tokens_per_sec: f64,
    p95_us: Option<f64>,
    admitted: bool,
    reason: Value,
}

impl Tenant {
    fn reason(&self) -> String {
        self.reason.as_str().unwrap_or_default().to_owned()
    }
}

/// Reads `afar.plan.admit/1`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: Record = serde_json::from_value(value)?;
    let named = |admitted: bool| -> Vec<String> {
        let ours = record.tenants.iter().filter(|tenant| tenant.admitted == admitted);
        ours.map(|tenant| tenant.name.clone()).collect()
    };
    let mut answer = vec![match named(true).as_slice() {
        [] => "Nobody may share the device.".to_owned(),
        names => format!("{} may share the device.", list(names)),
    }];
    for tenant in record.tenants.iter().filter(|tenant| !tenant.admitted) {
        answer.push(format!("{} may not: {}.", tenant.name, tenant.reason()));
    }
    let mut verdicts = Table::new(["tenant", "tokens_per_sec", "p95_us", "admitted", "reason"]);
    for tenant in &record.tenants {
        verdicts.push([
            tenant.name.clone(),
            exact(tenant.tokens_per_sec),
            tenant.p95_us.map_or_else(String::new, exact),
            if tenant.admitted { "yes" } else { "no" }.to_owned(),
            tenant.reason(),
        ]);
    }
    let mut table = Table::new(["tokens_per_sec", "p95_us"]);
    for point in &record.curve {
        table.push([exact(point.tokens_per_sec), exact(point.p95_us)]);
    }
    let points = record.curve.iter().map(|one| (one.tokens_per_sec, one.p95_us)).collect();
    let admitted = record.tenants.iter().filter(|tenant| tenant.admitted);
    let load: f64 = admitted.clone().map(|tenant| tenant.tokens_per_sec).sum();
    let strictest = admitted.filter_map(|tenant| tenant.p95_us).reduce(f64::min);
    let title = "Tail of reads by load".to_owned();
    Ok(Section {
        title: "Who may share a flash device".to_owned(),
        kind: "plan admit",
        answer,
        facts: vec![("a write costs as many reads".to_owned(), exact(record.write_tokens))],
        verdicts: Some(verdicts),
        pictures: vec![Picture {
            name: "tail".to_owned(),
            title: title.clone(),
            caption: "A token is what a read costs the device.".to_owned(),
            chart: Chart::Plot(Plot {
                title,
                x: Axis::new("tokens per second", Kind::Linear).showing(&[0.0]),
                y: Axis::new("p95 of reads, µs", Kind::Either),
                series: vec![Series::new("the device", Look::Line, points)],
                bounds: strictest
                    .map(|us| (us, "strictest promise".to_owned()))
                    .into_iter()
                    .collect(),
                marks: vec![(load, "those admitted".to_owned())],
            }),
            table,
        }],
        ..Section::default()
    })
}
