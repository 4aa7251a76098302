//! The rungs of the ladder of optimisations. Each of the paper's rungs includes those before it;
//! each further rung includes all of the paper's, but no other further one.

use serde::Serialize;

use super::paper;

/// A step of optimisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rung {
    OneWorker,
    ManyWorkers,
    Offloads,
    Jumbo,
    Affinity,
    Bbr,
    BusyPoll,
    ZeroCopy,
    Connections,
    Nvme,
}

/// All rungs from the bottom.
pub(super) const RUNGS: [Rung; 10] = [
    Rung::OneWorker,
    Rung::ManyWorkers,
    Rung::Offloads,
    Rung::Jumbo,
    Rung::Affinity,
    Rung::Bbr,
    Rung::BusyPoll,
    Rung::ZeroCopy,
    Rung::Connections,
    Rung::Nvme,
];
/// Numbers of tenants; each has a session or a controller of its own.
pub(super) const TENANTS: [usize; 3] = [1, 3, 6];
/// Connections of a session, or I/O queues of a host.
pub(super) const CONNECTIONS: u16 = 2;

/// A number of tenants in words.
pub(super) fn so_many(tenants: usize) -> String {
    format!("{tenants} tenant{}", if tenants == 1 { "" } else { "s" })
}

impl Rung {
    /// Whether it includes the optimisation of `other`.
    pub(super) fn has(self, other: Self) -> bool {
        self == other || (other <= Self::Affinity && self > other)
    }

    /// The rungs that it includes, the highest first.
    pub(super) fn below(self) -> impl Iterator<Item = Self> {
        let is_below = move |other: &Self| *other != self && self.has(*other);
        RUNGS.into_iter().rev().filter(is_below)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OneWorker => "one worker, nothing tuned",
            Self::ManyWorkers => "a worker for each processor",
            Self::Offloads => "TSO, GSO and GRO on",
            Self::Jumbo => "MTU 9000",
            Self::Affinity => "workers pinned, XPS, RPS",
            Self::Bbr => "bbr in place of cubic",
            Self::BusyPoll => "busy polling, 50 µs",
            Self::ZeroCopy => "sending without a copy",
            Self::Connections => "2 connections a session",
            Self::Nvme => "NVMe/TCP, 2 queues a host",
        }
    }

    /// Its short name for a picture.
    pub(super) const fn short(self) -> &'static str {
        match self {
            Self::OneWorker => "1 worker",
            Self::ManyWorkers => "workers",
            Self::Offloads => "offloads",
            Self::Jumbo => "MTU 9000",
            Self::Affinity => "affinity",
            Self::Bbr => "bbr",
            Self::BusyPoll => "polling",
            Self::ZeroCopy => "zero copy",
            Self::Connections => "2 conns",
            Self::Nvme => "NVMe",
        }
    }

    /// The paper's number for it as text; `None` if the paper has none.
    pub(super) fn paper(self, tenants: usize) -> Option<String> {
        let percent = |gain: f64| format!("{:+.0} %", (gain - 1.0) * 100.0);
        let of = |index: usize, gains: &[f64]| gains.get(index).copied().map(percent);
        match (self, tenants) {
            (Self::OneWorker, 1) => Some(format!("{:.1}k IOPS", paper::BASELINE_IOPS / 1e3)),
            (Self::ManyWorkers, 1) => of(0, &paper::MANY_WORKERS),
            (Self::ManyWorkers, 6) => of(1, &paper::MANY_WORKERS),
            (Self::Offloads, 1) => of(0, &paper::OFFLOADS),
            (Self::Offloads, 6) => of(1, &paper::OFFLOADS),
            (Self::Jumbo, _) => {
                let [least, most] = paper::JUMBO.map(percent);
                Some(format!("{least} to {most}"))
            }
            (Self::Affinity, _) => {
                let index = TENANTS.iter().position(|&count| count == tenants)?;
                of(index, &paper::AFFINITY)
            }
            _ => None,
        }
    }
}
