//! What an unloaded read consists of (Fig. 8), by points of time on its way.
//!
//! ```text
//! host: made ─► given to the kernel ─ ─ (wire) ─ ─► target: taken ─► device ─► due ─► noticed
//!                                    answer taken ◄─ ─ (wire) ─ ─ given to the kernel ◄──┘
//! ```
//!
//! The wire is what is left: both kernels' TCP, the loopback and the waking of the two threads; of
//! what is added, also the waking of the target by its timer, as far as that is later than that of
//! a local load. The target's work on a command before its device begins is hidden behind the
//! device, which is timed from when the command was taken; and the host takes an answer apart when
//! it makes the next read.

use serde::Serialize;

use super::super::report::Verdict;
use super::paper;
use crate::layout::{NONE, row, table};

/// Averages over unloaded reads, local and remote.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Stages {
    pub(super) local: Read,
    pub(super) remote: Read,
}

/// See the module's description; in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Read {
    /// From end to end.
    pub(super) mean_us: f64,
    /// Made, until the kernel has it.
    pub(super) host_us: f64,
    /// Taken, until the device is done.
    pub(super) device_us: f64,
    /// Done, until somebody has noticed.
    pub(super) late_us: f64,
    /// Noticed, until the kernel has the answer.
    pub(super) answer_us: f64,
}

/// What remote access adds, stage by stage; in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Added {
    pub(super) host_us: f64,
    pub(super) target_us: f64,
    /// The rest, which is no less than nothing.
    pub(super) wire_us: f64,
    pub(super) all_us: f64,
}

impl Read {
    /// Without a network: the device begins at once, and noticing its end ends the read.
    pub(super) const fn local(mean_us: f64, device_us: f64, late_us: f64) -> Self {
        Self { mean_us, host_us: 0.0, device_us, late_us, answer_us: 0.0 }
    }

    /// What no stage explains.
    fn rest_us(&self) -> f64 {
        // Sums of rounded averages may be a little more than the whole.
        (self.mean_us - self.host_us - self.device_us - self.late_us - self.answer_us).max(0.0)
    }
}

impl Stages {
    pub(super) fn added(&self) -> Added {
        let host_us = self.remote.host_us;
        // A timer that fires late does so here as there: the difference is the kernel's, not ours.
        let target_us = self.remote.answer_us;
        let all_us = self.remote.mean_us - self.local.mean_us;
        Added { host_us, target_us, wire_us: (all_us - host_us - target_us).max(0.0), all_us }
    }
}

pub(super) fn rows(stages: &Stages) -> String {
    let mut rows = vec![row(["stages of an unloaded read, µs", "local", "NVMe/TCP"])];
    let (local, remote) = (&stages.local, &stages.remote);
    let mut add = |name: &str, of: fn(&Read) -> f64| {
        let [local, remote] = [local, remote].map(|read| format!("{:.1}", of(read)));
        rows.push(row([name, &local, &remote]));
    };
    add("host, until the kernel has the command", |read| read.host_us);
    add("device, by the model", |read| read.device_us);
    add("device done, until that is noticed", |read| read.late_us);
    add("target, until the kernel has the answer", |read| read.answer_us);
    add("rest: kernels, wire, wake-ups", Read::rest_us);
    add("all", |read| read.mean_us);
    let added = stages.added();
    let mut shares = vec![row(["added by remote access, µs", "here", "share", "paper", "share"])];
    let mut add = |name: &str, ours: f64, theirs: f64| {
        let share = |part: f64, all: f64| format!("{:.0} %", 100.0 * part / all.max(1e-9));
        shares.push(row([
            name,
            &format!("{ours:.1}"),
            &share(ours, added.all_us),
            &format!("{theirs:.1}"),
            &share(theirs, paper::ADDED_US),
        ]));
    };
    add("host", added.host_us, paper::ADDED_HOST_US);
    add("target", added.target_us, paper::ADDED_TARGET_US);
    let elsewhere = paper::ADDED_NETWORK_US + paper::ADDED_ELSEWHERE_US;
    add("network, kernels and elsewhere", added.wire_us, elsewhere);
    add("all", added.all_us, paper::ADDED_US);
    shares.push(row(["iSCSI, all", NONE, NONE, "62.3", ""]));
    format!("{}\n{}", table(&rows), table(&shares))
}

/// Whether software of ours (host and target) is most of what is added, as it is in the paper.
pub(super) fn verdict(stages: &Stages) -> Verdict {
    let added = stages.added();
    let share = (added.host_us + added.target_us) / added.all_us.max(1e-9);
    let theirs = (paper::ADDED_HOST_US + paper::ADDED_TARGET_US) / paper::ADDED_US;
    Verdict::new(
        share > 0.5,
        format!(
            "of what remote access adds, {:.0} % are in host and target and {:.0} % in kernels, \
             wire and wake-ups; in the paper, whose host and target are in the kernel, {:.0} % are \
             in host and target, more than half",
            share * 100.0,
            (1.0 - share) * 100.0,
            theirs * 100.0
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages() -> Stages {
        let remote =
            Read { mean_us: 120.0, host_us: 4.0, device_us: 83.5, late_us: 5.0, answer_us: 6.0 };
        Stages { local: Read::local(87.0, 83.5, 3.0), remote }
    }

    #[test]
    fn stages_add_up() {
        let stages = stages();
        assert!((stages.remote.rest_us() - 21.5).abs() < 1e-9);
        assert!((stages.local.rest_us() - 0.5).abs() < 1e-9);
        let added = stages.added();
        assert_eq!((added.host_us, added.target_us, added.all_us), (4.0, 6.0, 33.0));
        assert!((added.wire_us - 23.0).abs() < 1e-9);
    }

    #[test]
    fn software_is_most_or_is_not() {
        let mut stages = stages();
        assert!(!verdict(&stages).holds);
        assert!(verdict(&stages).claim.contains("30 % are in host and target"));
        stages.remote.host_us = 20.0;
        assert!(verdict(&stages).holds);
    }

    #[test]
    fn tables_name_every_stage() {
        let shown = rows(&stages());
        for wanted in ["device, by the model", "21.5", "11.7", "iSCSI, all"] {
            assert!(shown.contains(wanted), "{wanted} is missing in\n{shown}");
        }
    }
}
