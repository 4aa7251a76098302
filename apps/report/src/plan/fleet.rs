//! What a fleet's tenants want, hour by hour.

use chart::{Axis, Kind, Look, Plot, Series};
use results::plan::fleet::{Dimension, FleetDemand};
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Picture, Section, Table};
use crate::words::{exact, percent};
use console::layout::count;

/// The section of a record `afar.plan.fleet`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: FleetDemand = results::read_body(value)?;
    let wanted: Vec<&Dimension> = record.dimensions.iter().filter(|one| one.max > 0.0).collect();
    let mut answer = vec![format!(
        "{} tenants on {} machines over {} hours; hour {} is the busiest.",
        count(record.tenant_count),
        count(record.machine_count),
        count(record.hour_count),
        record.busiest_hour
    )];
    answer.extend(wanted.iter().map(|one| {
        let share = percent(one.mean / one.max);
        format!("Of {}, the mean is {share} of the peak.", one.dimension)
    }));
    let mut table = Table::new(["hour"]);
    table.columns.extend(wanted.iter().map(|one| one.dimension.clone()));
    let hours = wanted.iter().map(|one| one.hours.len()).max().unwrap_or(0);
    for hour in 0..hours {
        let mut row = vec![hour.to_string()];
        row.extend(
            wanted
                .iter()
                .map(|one| one.hours.get(hour).map_or_else(String::new, |sum| exact(*sum))),
        );
        table.rows.push(row);
    }
    let series = wanted.iter().map(|one| {
        let points = one.hours.iter().enumerate();
        let points = points.map(|(hour, sum)| (hour as f64, sum / one.max * 100.0));
        Series::new(one.dimension.clone(), Look::Curve, points.collect())
    });
    let title = "Demand by the hour".to_owned();
    Ok(Section {
        title: "A fleet's demand".to_owned(),
        kind: "plan fleet",
        answer,
        pictures: vec![Picture {
            name: "demand".to_owned(),
            title: title.clone(),
            caption: "Of all tenants together, by the peak of each dimension.".to_owned(),
            chart: Chart::Plot(Plot {
                title,
                x: Axis::new("hour", Kind::Linear),
                y: Axis::new("% of the peak", Kind::Linear).showing(&[0.0, 100.0]),
                series: series.collect(),
                bounds: Vec::new(),
                marks: Vec::new(),
            }),
            table,
        }],
        ..Section::default()
    })
}
