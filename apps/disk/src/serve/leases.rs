//! Metrics of leased memory.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use target::{Namespace, Observer, ViewsSeen};

use super::families::{About, COUNTER, GAUGE, family};

/// A leased namespace and its views.
struct Row {
    subsystem: String,
    id: u32,
    seen: ViewsSeen,
}

impl Row {
    fn labels(&self) -> impl EncodeLabelSet {
        ([("subsystem", self.subsystem.as_str())], [("namespace", self.id)])
    }
}

// All leased namespaces.
fn rows(observer: &Observer) -> Vec<Row> {
    let mut rows = Vec::new();
    for subsystem in &*observer.subsystems() {
        let row = |one: &Arc<Namespace>| {
            let (subsystem, id) = (subsystem.nqn.as_str().to_owned(), one.id);
            one.views().map(|seen| Row { subsystem, id, seen })
        };
        rows.extend(subsystem.namespaces().iter().filter_map(row));
    }
    rows
}

/// Writes the families of leased namespaces; none if there are no such namespaces.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, observer: &Observer) -> fmt::Result {
    let rows = rows(observer);
    if rows.is_empty() {
        return Ok(());
    }
    let help = "Views of leased memory: their hosts are connected, or their leases run out.";
    let samples = rows.iter().flat_map(|row| {
        let held = row.seen.views.iter().filter(|view| view.is_held).count();
        let states = [("held", held), ("lapsing", row.seen.views.len() - held)];
        states.map(|(state, count)| ((row.labels(), [("state", state)]), count as u64))
    });
    family(encoder, ("afar_views", GAUGE, help), samples)?;
    let help = "Bytes that a view has in memory.";
    let samples = rows.iter().flat_map(|row| {
        row.seen.views.iter().map(|view| {
            let id = u128::from_be_bytes(view.host_id);
            let host = ([("host", view.host.as_str())], [("host_id", format!("{id:032x}"))]);
            ((row.labels(), host), view.used_bytes)
        })
    });
    family(encoder, ("afar_view_bytes", GAUGE, help), samples)?;
    let help = "How long a view outlives the last connection of its host.";
    let samples = rows.iter().map(|row| (row.labels(), row.seen.lease.as_ns() as f64 / 1e9));
    family(encoder, ("afar_view_lease_seconds", GAUGE, help), samples)?;
    let mut of = |about: About, read: fn(&ViewsSeen) -> u64| {
        family(encoder, about, rows.iter().map(|row| (row.labels(), read(&row.seen))))
    };
    of(("afar_view_quota_bytes", GAUGE, "Bytes of a view at most."), |seen| seen.quota_bytes)?;
    let help = "Bytes that all views may have in memory.";
    of(("afar_views_memory_bytes", GAUGE, help), |seen| seen.total_bytes)?;
    let help = "Bytes that all views have in memory.";
    of(("afar_views_used_bytes", GAUGE, help), |seen| seen.used_bytes)?;
    let help = "Leases that have ended while their views had bytes.";
    of(("afar_views_ended", COUNTER, help), |seen| seen.ended)?;
    let help = "Bytes that those views had.";
    of(("afar_views_freed_bytes", COUNTER, help), |seen| seen.ended_bytes)?;
    let help = "Writes that have found no memory.";
    of(("afar_views_refused_writes", COUNTER, help), |seen| seen.refused)
}
