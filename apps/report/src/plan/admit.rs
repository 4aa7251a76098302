//! Who may share a flash device.

use chart::{Axis, Kind, Look, Plot, Series};
use results::plan::admit::Admission;
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Picture, Section, Table};
use crate::words::{exact, list};

/// The section of a record `afar.plan.admit`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: Admission = results::read_body(value)?;
    let named = |admitted: bool| -> Vec<String> {
        let ours = record.tenants.iter().filter(|tenant| tenant.admitted == admitted);
        ours.map(|tenant| tenant.name.clone()).collect()
    };
    let mut answer = vec![match named(true).as_slice() {
        [] => "Nobody may share the device.".to_owned(),
        names => format!("{} may share the device.", list(names)),
    }];
    for tenant in record.tenants.iter().filter(|tenant| !tenant.admitted) {
        answer.push(format!("{} may not: {}.", tenant.name, tenant.reason));
    }
    let mut verdicts = Table::new(["tenant", "tokens_per_sec", "p95_us", "admitted", "reason"]);
    for tenant in &record.tenants {
        verdicts.push([
            tenant.name.clone(),
            exact(tenant.tokens_per_sec),
            tenant.p95_us.map_or_else(String::new, exact),
            if tenant.admitted { "yes" } else { "no" }.to_owned(),
            tenant.reason.clone(),
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
