//! Disks beside one another, under the same load.

use measure::Host;
use serde::{Deserialize, Serialize};

use crate::{Estimate, Record};

/// What `afar bench --json` writes of several disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskComparison {
    /// Version of the afar that wrote it.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// When the comparison began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The seed of the order within each block, and of the draws of each run.
    pub seed: u64,
    /// The machine that loaded the disks.
    pub host: Host,
    /// The load on every disk, in words.
    pub load: String,
    /// Blocks that were requested.
    pub repetitions: u64,
    /// Whole blocks: every disk has a run in each of them.
    pub block_count: u64,
    /// Whether the user ended the comparison before its last block.
    pub interrupted: bool,
    /// The error of a load that ended the comparison; missing if none failed.
    pub failure: Option<String>,
    /// The disks, in the order of the command line; the others are compared with the first.
    pub disks: Vec<ComparedDisk>,
}

/// A disk and what its runs come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComparedDisk {
    /// The letter of the disk in tables and pictures: `A` is the first.
    pub letter: String,
    /// The URI of the disk.
    pub uri: String,
    /// The figures of the disk over all blocks.
    pub figures: Vec<ComparedFigure>,
    /// The runs on the disk, one for each whole block.
    pub runs: Vec<DiskRun>,
    /// Runs that were disturbed by other programs or other guests.
    pub disturbed_count: u64,
    /// What disturbed the first disturbed run; missing if none was.
    pub first_disturbance: Option<String>,
}

/// A figure of a disk, and the same beside that of the first disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComparedFigure {
    /// The name of the figure.
    pub figure: DiskFigure,
    /// The median over the runs, with its interval.
    pub value: Estimate,
    /// The ratio to the first disk in the same block; missing for the first, or where its is 0.
    pub ratio: Option<Estimate>,
    /// The conclusion from the ratio; missing for the first disk.
    pub verdict: Option<DiskVerdict>,
}

/// One run on one disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskRun {
    /// The number of the block, from 1.
    pub block: u64,
    /// The place of the run in its block, from 1.
    pub turn: u64,
    /// Requests that were answered.
    pub request_count: u64,
    /// Requests of an open loop that were due and not sent.
    pub unmade_count: u64,
    /// Requests answered a second.
    pub iops: f64,
    /// Bytes moved a second.
    pub bytes_per_s: f64,
    /// The mean latency of a request, in microseconds.
    pub mean_us: f64,
    /// The median latency, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of the latency, in microseconds.
    pub p99_us: f64,
    /// The 99.9th percentile of the latency, in microseconds.
    pub p999_us: f64,
    /// Runs that this one replaces, because they were disturbed more.
    pub repeated_count: u64,
    /// What disturbed the run; missing if nothing did.
    pub disturbed: Option<String>,
}

/// By what disks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskFigure {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    BytesPerS,
    /// What a request takes in the mean.
    MeanUs,
    /// The median.
    P50Us,
    /// The 99th percentile.
    P99Us,
    /// The 99.9th percentile.
    P999Us,
}

/// What a disk is beside the first, by one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DiskVerdict {
    /// The whole interval is on the better side of 1.
    #[serde(rename = "faster")]
    Faster,
    /// The whole interval is on the worse side of 1.
    #[serde(rename = "slower")]
    Slower,
    /// The interval holds 1.
    #[serde(rename = "no difference")]
    Same,
    /// There are too few blocks for an interval.
    #[serde(rename = "undecided")]
    Undecided,
    /// Other programs or other guests took processor time from too many runs.
    #[serde(rename = "disturbed")]
    Disturbed,
}

impl Record for DiskComparison {
    const SCHEMA: &'static str = "afar.disks/1";
}

impl DiskFigure {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Iops, Self::BytesPerS, Self::MeanUs, Self::P50Us, Self::P99Us, Self::P999Us];

    /// The name of the figure in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::BytesPerS => "bytes_per_s",
            Self::MeanUs => "mean_us",
            Self::P50Us => "p50_us",
            Self::P99Us => "p99_us",
            Self::P999Us => "p999_us",
        }
    }

    /// The value of the figure in a run.
    #[must_use]
    pub const fn of(self, run: &DiskRun) -> f64 {
        match self {
            Self::Iops => run.iops,
            Self::BytesPerS => run.bytes_per_s,
            Self::MeanUs => run.mean_us,
            Self::P50Us => run.p50_us,
            Self::P99Us => run.p99_us,
            Self::P999Us => run.p999_us,
        }
    }

    /// Whether a larger value is better.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Iops | Self::BytesPerS)
    }

    /// The verdict on a disk by the ratio of its figure to the first disk's; `is_disturbed` if
    /// disturbed runs count in it.
    #[must_use]
    pub fn verdict(self, ratio: &Estimate, is_disturbed: bool) -> DiskVerdict {
        let is_more = match ratio.ends() {
            _ if is_disturbed => return DiskVerdict::Disturbed,
            None => return DiskVerdict::Undecided,
            Some((low, _)) if low > 1.0 => true,
            Some((_, high)) if high < 1.0 => false,
            Some(_) => return DiskVerdict::Same,
        };
        if is_more == self.is_rate() { DiskVerdict::Faster } else { DiskVerdict::Slower }
    }
}

impl DiskVerdict {
    /// The text of the verdict, as in the record.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "no difference",
            Self::Undecided => "undecided",
            Self::Disturbed => "disturbed",
        }
    }
}

impl ComparedDisk {
    /// A figure of the disk; `None` if it has no runs.
    #[must_use]
    pub fn figure(&self, figure: DiskFigure) -> Option<&ComparedFigure> {
        self.figures.iter().find(|one| one.figure == figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    fn ratio(low: f64, high: f64) -> Estimate {
        let interval = Some(Interval { low, high, level: 0.9375 });
        Estimate { median: f64::midpoint(low, high), interval, count: 5 }
    }

    #[test]
    fn a_verdict_follows_the_whole_interval_and_the_sense_of_the_figure() {
        let both = |low, high| {
            [DiskFigure::Iops, DiskFigure::P99Us].map(|of| of.verdict(&ratio(low, high), false))
        };
        assert_eq!(both(1.01, 1.2), [DiskVerdict::Faster, DiskVerdict::Slower]);
        assert_eq!(both(0.8, 0.99), [DiskVerdict::Slower, DiskVerdict::Faster]);
        assert_eq!(both(0.8, 1.0), [DiskVerdict::Same; 2]);
        assert_eq!(both(0.99, 1.2), [DiskVerdict::Same; 2]);
    }

    #[test]
    fn nothing_is_decided_by_few_or_disturbed_runs() {
        let few = Estimate { median: 0.5, interval: None, count: 4 };
        assert_eq!(DiskFigure::Iops.verdict(&few, false), DiskVerdict::Undecided);
        assert_eq!(DiskFigure::Iops.verdict(&ratio(0.4, 0.5), true), DiskVerdict::Disturbed);
    }
}
