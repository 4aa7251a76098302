//! Which of the networks that one can buy or build is fast enough.
//!
//! Their round trips are the estimates of Gao et al. (OSDI 2016, Table 4) without the page's own
//! time on the wire, which bandwidth stands for.

use super::section::Table;
use super::words::time_ns;

/// A network as people speak of it.
struct Network {
    name: &'static str,
    /// Traversals of one round trip, in nanoseconds.
    parts_ns: &'static [f64],
}

/// Operating system, copies, switches, propagation: in order of their round trips.
const NETWORKS: [Network; 6] = [
    Network {
        name: "one rack, RDMA, network interface beside the processor",
        parts_ns: &[2.0 * 500.0, 2.0 * 240.0, 4.0 * 20.0],
    },
    Network { name: "one rack, RDMA", parts_ns: &[2.0 * 1000.0, 2.0 * 240.0, 4.0 * 20.0] },
    Network {
        name: "one datacenter, RDMA, network interface beside the processor",
        parts_ns: &[2.0 * 500.0, 6.0 * 240.0, 4.0 * 20.0, 4.0 * 200.0],
    },
    Network {
        name: "one datacenter, RDMA",
        parts_ns: &[2.0 * 1000.0, 6.0 * 240.0, 4.0 * 20.0, 4.0 * 200.0],
    },
    Network {
        name: "one rack, operating system in the path",
        parts_ns: &[2.0 * 950.0, 2.0 * 1000.0, 2.0 * 240.0, 4.0 * 20.0],
    },
    Network {
        name: "one datacenter, operating system in the path",
        parts_ns: &[2.0 * 950.0, 2.0 * 1000.0, 6.0 * 240.0, 4.0 * 20.0, 4.0 * 200.0],
    },
];

/// What is said below the table.
pub(super) const NOTE: &str = "\
     Round trips of idle networks by the estimates of Gao et al. (OSDI 2016, Table 4), without \
     the page's time on the wire, with a lean driver where the operating system is in the path; \
     services over ordinary TCP sockets take tens of microseconds. Not known: nothing that was \
     tried decides it. Queueing comes on top: afar plan latency and afar loop say how much.";

/// What was found out about round trips under otherwise equal conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// The longest round trip that is good enough, and whether there is no doubt about it.
    pub(super) good: Option<(f64, bool)>,
    /// The shortest that is not.
    pub(super) bad: Option<(f64, bool)>,
}

impl Limits {
    /// Of round trips in nanoseconds in their order: how sure it is that each is good enough.
    /// What lies beyond the first that is not counts as bad.
    pub(super) fn of(tried: impl Iterator<Item = (f64, Verdict)>) -> Self {
        let mut limits = Self { good: None, bad: None };
        for (ns, verdict) in tried {
            if verdict.is_good {
                limits.good = Some((ns, verdict.is_sure));
            } else {
                limits.bad = Some((ns, verdict.is_sure));
                break;
            }
        }
        limits
    }

    fn judge(self, ns: f64) -> &'static str {
        match self {
            Self { good: Some((good, sure)), .. } if ns <= good => match sure || ns < good / 2.0 {
                true => "fast enough",
                false => "probably fast enough",
            },
            Self { bad: Some((bad, sure)), .. } if ns >= bad => match sure || ns > bad * 2.0 {
                true => "too slow",
                false => "probably too slow",
            },
            _ => "not known",
        }
    }
}

/// Whether a slowdown is within the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) is_good: bool,
    /// Whether its whole interval is on that side.
    pub(super) is_sure: bool,
}

/// A row for each network, a column for each condition.
pub(super) fn table(conditions: &[(String, Limits)]) -> Table {
    let mut table = Table::new(["network", "round trip"]);
    table.columns.extend(conditions.iter().map(|(name, _)| name.clone()));
    for network in &NETWORKS {
        let ns: f64 = network.parts_ns.iter().sum();
        let mut row = vec![network.name.to_owned(), time_ns(ns)];
        row.extend(conditions.iter().map(|(_, limits)| limits.judge(ns).to_owned()));
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a page of 4096 bytes at 40 Gb/s.
    const TRANSMISSION_NS: f64 = 819.2;

    #[test]
    fn totals_are_those_of_table_4() {
        let totals = NETWORKS.map(|network| {
            let ns: f64 = network.parts_ns.iter().sum();
            format!("{:.2}", (ns + TRANSMISSION_NS) / 1e3)
        });
        assert_eq!(totals, ["2.38", "3.38", "4.14", "5.14", "5.28", "7.04"]);
    }

    #[test]
    fn networks_are_judged_by_what_was_tried_around_them() {
        let verdict = |is_good, is_sure| Verdict { is_good, is_sure };
        let tried = [
            (1_000.0, verdict(true, true)),
            (3_000.0, verdict(true, false)),
            (5_000.0, verdict(false, true)),
            (9_000.0, verdict(true, true)),
        ];
        let limits = Limits::of(tried.into_iter());
        assert_eq!(limits, Limits { good: Some((3_000.0, false)), bad: Some((5_000.0, true)) });
        let table = table(&[("25%".to_owned(), limits)]);
        let verdicts: Vec<&str> = table.rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(verdicts[0], "probably fast enough");
        assert!(verdicts[2].eq("not known"));
        assert_eq!(verdicts[5], "too slow");
    }

    #[test]
    fn nothing_is_known_where_nothing_was_tried() {
        let limits = Limits::of(std::iter::empty());
        assert!(limits.judge(1.0).eq("not known"));
    }
}
