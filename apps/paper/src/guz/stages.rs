//! The stages of an unloaded read (Fig. 8), by times taken on its way.
//!
//! ```text
//! host: made ─► given to the kernel ─ ─ (wire) ─ ─► target: taken ─► device ─► due ─► noticed
//!                                    answer taken ◄─ ─ (wire) ─ ─ given to the kernel ◄──┘
//! ```
//!
//! The wire is the rest: both kernels' TCP, the loopback and the wake-ups of both threads; in what
//! is added, also the target's wake-up by its timer, as far as it is later than that of a local
//! load. NVMe/TCP and iSCSI have the same points, because both ends run the same loops. The
//! target's work on a command before its device begins is hidden behind the device, which is timed
//! from when the command was taken. The host decodes an answer when it makes the next read.

use console::layout::{NONE, row, table};
use serde::Serialize;

use super::super::report::Verdict;
use super::super::way::{PerWay, Way};
use super::ordering::Compared;
use super::paper;

/// Stages of an average unloaded read, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Read {
    /// The whole read.
    pub(super) mean_us: f64,
    /// Host: from making the request until the kernel has it.
    pub(super) host_us: f64,
    /// Device: from taking the command until the device has ended.
    pub(super) device_us: f64,
    /// From the end of the device until the target, or the local load, notices it.
    pub(super) late_us: f64,
    /// Target: from noticing until the kernel has the answer.
    pub(super) answer_us: f64,
}

/// What remote access adds to a read, by part, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Added {
    pub(super) host_us: f64,
    pub(super) target_us: f64,
    /// The rest, at least 0.
    pub(super) wire_us: f64,
    pub(super) all_us: f64,
}

impl Read {
    /// A local read: the device begins at once, and noticing its end ends the read.
    pub(super) const fn local(mean_us: f64, device_us: f64, late_us: f64) -> Self {
        Self { mean_us, host_us: 0.0, device_us, late_us, answer_us: 0.0 }
    }

    /// The part of the read that is in no stage.
    fn rest_us(&self) -> f64 {
        // Sums of rounded averages may be a little more than the whole.
        (self.mean_us - self.host_us - self.device_us - self.late_us - self.answer_us).max(0.0)
    }

    /// The average of repetitions, each with the same weight.
    pub(super) fn mean(reads: &[Self]) -> Self {
        let of = |stage: fn(&Self) -> f64| {
            reads.iter().map(stage).sum::<f64>() / reads.len().max(1) as f64
        };
        Self {
            mean_us: of(|read| read.mean_us),
            host_us: of(|read| read.host_us),
            device_us: of(|read| read.device_us),
            late_us: of(|read| read.late_us),
            answer_us: of(|read| read.answer_us),
        }
    }
}

/// What a way adds to a read, compared with local access.
pub(super) fn added(reads: &PerWay<Read>, way: Way) -> Added {
    let host_us = reads[way].host_us;
    // A timer is late for local access, too: the difference is the kernel's, so `late_us` is wire.
    let target_us = reads[way].answer_us;
    let all_us = reads[way].mean_us - reads.local.mean_us;
    Added { host_us, target_us, wire_us: (all_us - host_us - target_us).max(0.0), all_us }
}

/// Tables of the stages, and of what remote access adds.
pub(super) fn rows(reads: &PerWay<Read>) -> String {
    let mut rows = vec![row(["stages of an unloaded read, µs", "local", "NVMe/TCP", "iSCSI"])];
    let mut add = |name: &str, of: fn(&Read) -> f64| {
        let [local, nvme, iscsi] = reads.all().map(|read| format!("{:.1}", of(read)));
        rows.push(row([name, &local, &nvme, &iscsi]));
    };
    add("host, until the kernel has the command", |read| read.host_us);
    add("device, by the model", |read| read.device_us);
    add("device done, until that is noticed", |read| read.late_us);
    add("target, until the kernel has the answer", |read| read.answer_us);
    add("rest: kernels, wire, wake-ups", Read::rest_us);
    add("all", |read| read.mean_us);
    format!("{}\n{}", table(&rows), shares(reads))
}

// The table of what remote access adds: parts and their shares, beside the paper's.
fn shares(reads: &PerWay<Read>) -> String {
    let head = ["added by remote access, µs", "NVMe/TCP", "share", "paper: NVMf", "share"];
    let mut rows = vec![[row(head), row(["iSCSI", "share", "paper: iSCSI"])].concat()];
    let [nvme, iscsi] = Way::REMOTE.map(|way| added(reads, way));
    let mut add = |name: &str, part: fn(&Added) -> f64, theirs: f64, their_iscsi: &str| {
        let share = |part: f64, all: f64| format!("{:.0} %", 100.0 * part / all.max(1e-9));
        let both = |ours: &Added| [format!("{:.1}", part(ours)), share(part(ours), ours.all_us)];
        let ([nvme, of_nvme], [iscsi, of_iscsi]) = (both(&nvme), both(&iscsi));
        let (paper, of_paper) = (format!("{theirs:.1}"), share(theirs, paper::ADDED_US));
        rows.push(row([name, &nvme, &of_nvme, &paper, &of_paper, &iscsi, &of_iscsi, their_iscsi]));
    };
    let elsewhere = paper::ADDED_NETWORK_US + paper::ADDED_ELSEWHERE_US;
    add("host", |added| added.host_us, paper::ADDED_HOST_US, NONE);
    add("target", |added| added.target_us, paper::ADDED_TARGET_US, NONE);
    add("network, kernels and elsewhere", |added| added.wire_us, elsewhere, NONE);
    let their_iscsi = format!("{:.1}", paper::ISCSI_ADDED_US);
    add("all", |added| added.all_us, paper::ADDED_US, &their_iscsi);
    table(&rows)
}

/// What the paper claims, and whether it holds here.
pub(super) fn verdicts(reads: &PerWay<Read>) -> Vec<Verdict> {
    let paper = format!("{:.1} µs to {:.1} µs", paper::ISCSI_ADDED_US, paper::ADDED_US);
    let ours = |way: Way| {
        let added = added(reads, way);
        added.host_us + added.target_us
    };
    let all = Compared {
        what: "what remote access adds to an unloaded read",
        is_rate: false,
        figures: PerWay::each(|way| added(reads, way).all_us),
        text: |us| format!("{us:.1} µs"),
        paper: &paper,
    };
    let software = Compared {
        what: "the part of host and target in that",
        figures: PerWay::each(ours),
        paper: "it is protocol and network stack that hinder it",
        ..all
    };
    vec![in_software(reads), all.verdict(), software.verdict()]
}

// Whether host and target are more than half of what NVMe/TCP adds, as in the paper.
fn in_software(reads: &PerWay<Read>) -> Verdict {
    let added = added(reads, Way::Nvme);
    let share = (added.host_us + added.target_us) / added.all_us.max(1e-9);
    let theirs = (paper::ADDED_HOST_US + paper::ADDED_TARGET_US) / paper::ADDED_US;
    Verdict::new(
        share > 0.5,
        format!(
            "of what NVMe/TCP adds, {:.0} % are in host and target and {:.0} % in kernels, wire \
             and wake-ups; in the paper, whose host and target are in the kernel, {:.0} % are in \
             host and target, more than half",
            share * 100.0,
            (1.0 - share) * 100.0,
            theirs * 100.0
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads() -> PerWay<Read> {
        let nvme =
            Read { mean_us: 120.0, host_us: 4.0, device_us: 83.5, late_us: 5.0, answer_us: 6.0 };
        let iscsi =
            Read { mean_us: 150.0, host_us: 6.0, device_us: 83.5, late_us: 5.0, answer_us: 9.0 };
        PerWay { local: Read::local(87.0, 83.5, 3.0), nvme, iscsi }
    }

    #[test]
    fn stages_add_up() {
        let reads = reads();
        assert!((reads.nvme.rest_us() - 21.5).abs() < 1e-9);
        assert!((reads.local.rest_us() - 0.5).abs() < 1e-9);
        let nvme = added(&reads, Way::Nvme);
        assert_eq!((nvme.host_us, nvme.target_us, nvme.all_us), (4.0, 6.0, 33.0));
        assert!((nvme.wire_us - 23.0).abs() < 1e-9);
        assert!((added(&reads, Way::Iscsi).wire_us - 48.0).abs() < 1e-9);
        assert_eq!(Read::mean(&[reads.nvme, reads.iscsi]).mean_us, 135.0);
    }

    #[test]
    fn software_is_most_or_is_not() {
        let mut reads = reads();
        let judged = in_software(&reads);
        assert!(!judged.holds && judged.claim.contains("30 % are in host and target"));
        reads.nvme.host_us = 20.0;
        assert!(in_software(&reads).holds);
    }

    #[test]
    fn iscsi_is_behind_in_all_or_in_a_part() {
        let mut reads = reads();
        let judged = verdicts(&reads);
        assert!(judged[1].holds && judged[1].claim.contains("63.0 µs to 33.0 µs, 1.91 of it"));
        assert!(judged[2].holds && judged[2].claim.contains("15.0 µs to 10.0 µs, 1.50 of it"));
        reads.iscsi.answer_us = 4.0;
        let judged = verdicts(&reads);
        assert!(judged[1].holds && !judged[2].holds, "{judged:?}");
    }

    #[test]
    fn tables_name_every_stage() {
        let shown = rows(&reads());
        for wanted in ["device, by the model", "21.5", "46.5", "11.7", "62.3", "paper: iSCSI"] {
            assert!(shown.contains(wanted), "{wanted} is missing in\n{shown}");
        }
    }
}
