//! Which of the networks that one can buy or build is fast enough.
//!
//! Their round trips are the estimates of Gao et al. (OSDI 2016, Table 4) without the page's own
//! time on the wire, which bandwidth stands for.

use results::Verdict;

use super::section::Table;
use super::words::time_ns;

/// A kind of network.
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

/// The note below the table.
pub(super) const NOTE: &str = "\
     Round trips of idle networks by the estimates of Gao et al. (OSDI 2016, Table 4), without \
     the page's time on the wire, with a lean driver where the operating system is in the path; \
     services over ordinary TCP sockets take tens of microseconds. Not known: nothing that was \
     tried decides it. Queueing comes on top: afar plan latency and afar loop say how much.";

/// What was found out about round trips under otherwise equal conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// The longest round trip that is good enough.
    pub(super) good: Option<f64>,
    /// The shortest that is not.
    pub(super) bad: Option<f64>,
}

impl Limits {
    /// The limits from verdicts on round trips in ns, in ascending order. A round trip is good if
    /// all shorter ones are, and the first `Beyond` is the shortest bad one.
    pub(super) fn of(tried: impl Iterator<Item = (f64, Verdict)>) -> Self {
        let mut limits = Self { good: None, bad: None };
        let mut is_open = true;
        for (ns, verdict) in tried {
            match verdict {
                Verdict::Within if is_open => limits.good = Some(ns),
                Verdict::Beyond => {
                    limits.bad = Some(ns);
                    break;
                }
                _ => is_open = false,
            }
        }
        limits
    }

    /// Whether a round trip is fast enough, in words.
    fn judge(self, ns: f64) -> &'static str {
        match self {
            Self { good: Some(good), .. } if ns <= good => "fast enough",
            Self { bad: Some(bad), .. } if ns >= bad => "too slow",
            _ => "not known",
        }
    }
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

/// Where each network is above columns of these round trips, from the shortest on, by its number;
/// those that are beyond the last column are left out.
pub(super) fn marks(columns_ns: Vec<f64>) -> Vec<(f64, String)> {
    let marks = (1..).zip(&NETWORKS).filter_map(|(number, network): (u32, _)| {
        let at = place(network.parts_ns.iter().sum(), &columns_ns)?;
        Some((at, number.to_string()))
    });
    marks.collect()
}

/// The names and round trips of the networks that [`marks`] numbers, in a sentence.
pub(super) fn marks_told() -> String {
    let names = (1..).zip(&NETWORKS).map(|(number, network): (u32, _)| {
        format!("{number}: {} ({})", network.name, time_ns(network.parts_ns.iter().sum()))
    });
    format!(" Above: idle networks. {}.", names.collect::<Vec<_>>().join("; "))
}

// The place of a round trip in columns, whose middles are at a half, by the logarithm; `None`
// beyond the last column.
fn place(ns: f64, columns_ns: &[f64]) -> Option<f64> {
    let beyond = columns_ns.iter().position(|column| *column > ns).unwrap_or(columns_ns.len());
    let left = beyond.saturating_sub(1).min(columns_ns.len().checked_sub(2)?);
    let [one, other] = [columns_ns[left], columns_ns[left + 1]].map(|column| column.max(1.0).ln());
    let at = left as f64 + 0.5 + (ns.ln() - one) / (other - one);
    (at < columns_ns.len() as f64).then(|| at.max(NEAR))
}

/// The place of networks that are faster than all columns.
const NEAR: f64 = 0.08;

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
        let tried = [
            (1_000.0, Verdict::Within),
            (3_000.0, Verdict::Within),
            (5_000.0, Verdict::Beyond),
            (9_000.0, Verdict::Within),
        ];
        let limits = Limits::of(tried.into_iter());
        assert_eq!(limits, Limits { good: Some(3_000.0), bad: Some(5_000.0) });
        let table = table(&[("25%".to_owned(), limits)]);
        let verdicts: Vec<&str> = table.rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(
            (verdicts[0], verdicts[2], verdicts[5]),
            ("fast enough", "not known", "too slow")
        );
        // What lies behind a doubt is not known, until something is too slow.
        for doubt in [Verdict::Undecided, Verdict::Disturbed, Verdict::Implausible] {
            let tried = [(1e3, Verdict::Within), (3e3, doubt), (4e3, Verdict::Within)];
            let limits = Limits::of(tried.into_iter().chain([(9e3, Verdict::Beyond)]));
            assert_eq!(limits, Limits { good: Some(1e3), bad: Some(9e3) });
        }
    }

    #[test]
    fn networks_are_marked_between_columns() {
        let at = |ns| place(ns, &[1_000.0, 10_000.0, 40_000.0]);
        assert_eq!(at(1_000.0), Some(0.5));
        assert!(at(3_162.0).is_some_and(|at| (at - 1.0).abs() < 0.01));
        assert_eq!((at(10.0), at(1e6), place(1.0, &[5.0])), (Some(NEAR), None, None));
        assert_eq!(marks(vec![1_000.0, 2_000.0]).len(), 2);
        assert!(
            marks_told().ends_with("6: one datacenter, operating system in the path (6.22 µs).")
        );
    }

    #[test]
    fn nothing_is_known_where_nothing_was_tried() {
        let limits = Limits::of(std::iter::empty());
        assert!(limits.judge(1.0).eq("not known"));
    }
}
