//! Leased memory of a target: which host has how much of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use results::live::{Lease, LeaseView};

use super::line::{Line, plain};

/// Leases, by subsystem and identifier of the namespace.
pub(super) type Leases = BTreeMap<(String, u32), Lease>;

/// Most views in the table of a namespace.
const VIEWS_SHOWN: usize = 8;
const MIB: f64 = 1048576.0;

/// Adds a metric to `leases`; `name` is the metric's name without `afar_view` in front.
pub(super) fn take(leases: &mut Leases, name: &str, line: &Line) {
    let Some(subsystem) = line.labels.get("subsystem") else { return };
    let Some(id) = line.number("namespace") else { return };
    let lease = leases.entry((subsystem.clone(), id)).or_default();
    match (name, line.labels.get("state").map(String::as_str)) {
        ("s", Some("held")) => lease.held = line.value,
        ("s", Some("lapsing")) => lease.lapsing = line.value,
        ("s_used_bytes", _) => lease.used_bytes = line.value,
        ("s_memory_bytes", _) => lease.total_bytes = line.value,
        ("_quota_bytes", _) => lease.quota_bytes = line.value,
        ("s_ended_total", _) => lease.ended = line.value,
        ("s_refused_writes_total", _) => lease.refused_writes = line.value,
        ("_bytes", _) => {
            let host = line.labels.get("host_id").cloned().unwrap_or_default();
            lease.views.insert(host, line.value);
        }
        _ => {}
    }
}

/// The leases, for the JSON.
pub(super) fn views(leases: &Leases) -> Vec<LeaseView> {
    let view = |((subsystem, namespace), lease): (&(String, u32), &Lease)| LeaseView {
        subsystem: subsystem.clone(),
        namespace: *namespace,
        lease: lease.clone(),
    };
    leases.iter().map(view).collect()
}

/// Appends, for each leased namespace, a line and a table of its largest views.
pub(super) fn add(text: &mut String, leases: &[LeaseView]) {
    for LeaseView { subsystem, namespace, lease } in leases {
        let _infallible = writeln!(
            text,
            "\nleased: {} namespace {namespace}: {:.1} of {:.1} MiB, {:.0} views held, {:.0} \
             lapsing, {:.0} ended, {:.0} writes refused",
            plain(subsystem),
            lease.used_bytes / MIB,
            lease.total_bytes / MIB,
            lease.held,
            lease.lapsing,
            lease.ended,
            lease.refused_writes,
        );
        let mut views: Vec<_> = lease.views.iter().collect();
        views.sort_by(|a, b| b.1.total_cmp(a.1));
        if !views.is_empty() {
            let _infallible = writeln!(text, "{:<32} {:>9} {:>9}", "HOST ID", "MiB", "QUOTA");
        }
        for (host, bytes) in views.iter().take(VIEWS_SHOWN) {
            let [used, quota] = [**bytes, lease.quota_bytes].map(|bytes| bytes / MIB);
            let host = plain(host);
            let _infallible = writeln!(text, "{host:<32} {used:>9.1} {quota:>9.1}");
        }
        if views.len() > VIEWS_SHOWN {
            let _infallible = writeln!(text, "and {} more", views.len() - VIEWS_SHOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_read_and_shown() {
        let of = "{subsystem=\"s\",namespace=\"1\"";
        let lines = [
            format!("afar_views{of},state=\"held\"}} 1"),
            format!("afar_views{of},state=\"lapsing\"}} 2"),
            format!("afar_views_used_bytes{of}}} 1048576"),
            format!("afar_views_memory_bytes{of}}} 4194304"),
            format!("afar_view_quota_bytes{of}}} 2097152"),
            format!("afar_views_ended_total{of}}} 5"),
            format!("afar_views_refused_writes_total{of}}} 6"),
            format!("afar_view_bytes{of},host=\"nqn.h\",host_id=\"0a0b\"}} 524288"),
        ];
        let mut leases = Leases::default();
        for line in &lines {
            let line = Line::read(line).expect("it is one");
            let name = line.name.strip_prefix("afar_view").expect("it is about views").to_owned();
            take(&mut leases, &name, &line);
        }
        let views = views(&leases);
        let mut text = String::new();
        add(&mut text, &views);
        let wanted = "\nleased: s namespace 1: 1.0 of 4.0 MiB, 1 views held, 2 lapsing, 5 ended, \
                      6 writes refused\n";
        assert!(text.starts_with(wanted), "{text}");
        assert!(
            text.contains("\n0a0b                                   0.5       2.0\n"),
            "{text}"
        );
        let json = serde_json::to_value(&views).expect("it is plain");
        assert_eq!(json[0]["views"]["0a0b"], 524288.0);
        assert_eq!(json[0]["subsystem"], "s");
    }
}
