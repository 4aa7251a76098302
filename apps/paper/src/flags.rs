//! Flags of `afar reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use measure::{Duration, Fraction};

/// Measure a figure of a paper on this machine, beside the paper's numbers
///
/// Figures of DiME, and those of Gao et al. before the seventh, are runs of programs with far
/// memory, as afar sweep makes them; they are kept in the directory of the pictures, and figures
/// that are made of the same runs share them. Later figures of Gao et al. are simulated, as afar
/// sim does; for Fig. 8 programs run under what comes of that. For those of Guz et al. the drive
/// of the paper is emulated, with as large a share of its throughput as this machine can serve. It
/// is loaded in this process (local), and through a target on loopback ports that the command
/// starts and ends itself: over NVMe/TCP and over iSCSI.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ReproduceFlags {
    /// The figure
    #[arg(value_name = "FIGURE", value_enum)]
    pub(crate) figure: FigureName,

    /// Within two minutes: one short repetition of everything in place of three
    #[arg(long)]
    pub(crate) quick: bool,

    /// Directory of the picture and the record; created if missing
    #[arg(long, short, value_name = "DIR", default_value = "afar-reproduce")]
    pub(crate) output: PathBuf,

    /// Write the record here, too; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Share of the drive's throughput that is emulated [default: half of what this machine can
    /// serve, by a short run]
    #[arg(long, value_name = "SHARE")]
    pub(crate) scale: Option<Fraction>,

    /// Host and target look for what has ended for this long before they sleep: nearer to the
    /// paper's machines, which save no power, if nothing else runs here
    #[arg(long, value_name = "TIME", default_value = "0us")]
    pub(crate) busy_poll: Duration,

    /// For figures of Gao et al.: a Python 3 that has the module duckdb, without which the SQL
    /// workload is left out
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(crate) python: PathBuf,

    /// Have runs of programs count of which much memory stayed local; they are told apart
    #[arg(long)]
    pub(crate) allow_unmanaged: bool,

    /// How long each load runs
    #[arg(long, value_name = "TIME", hide = true)]
    pub(crate) runtime: Option<Duration>,

    /// No live line, no table; the files are written
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const NOTES: &str = "\
Ctrl-C ends it with what was measured until then. Runs of programs with far memory are kept: the
same command goes on from there, and runs nothing a second time.

Exit status: 0 it was measured, whether or not it agrees with the paper; 1 it failed; 2 bad usage;
130 interrupted.

Example: afar reproduce guz-fig7 --quick";

/// A figure of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureName {
    /// DiME (Buragohain et al. 2017), Fig. 3: delays that were asked for and delays that were seen
    DimeFig3,
    /// DiME, Table 1: what a fault takes with and without afar
    DimeTable1,
    /// DiME, Fig. 4: Redis and memcached over latency, bandwidth and local memory, and whether
    /// faults explain it
    DimeFig4,
    /// DiME, Fig. 5: Redis beside memcached, with memory of its own and with memory that both
    /// share; the latter needs root
    DimeFig5,
    /// Gao et al. 2016, Fig. 2: degradation of seven workloads by network, a quarter of the memory
    /// local
    GaoFig2,
    /// Gao et al. 2016, Fig. 3: degradation by bandwidth
    GaoFig3,
    /// Gao et al. 2016, Fig. 4: degradation by latency
    GaoFig4,
    /// Gao et al. 2016, Fig. 5: degradation by local memory
    GaoFig5,
    /// Gao et al. 2016, Fig. 6(a): degradation against swap bandwidth
    GaoFig6,
    /// Gao et al. 2016, Table 3: local memory with which degradation is under 5 %
    GaoTable3,
    /// Gao et al. 2016, §5.1 and Table 5: what swapping a page in costs before any network
    #[value(name = "gao-table5-swap-cost")]
    GaoTable5SwapCost,
    /// Gao et al. 2016, Fig. 7: slowdown of flows between blades by transport
    GaoFig7,
    /// Gao et al. 2016, Fig. 8: programs under the completion times of their own traffic, with and
    /// without queueing
    GaoFig8,
    /// Guz et al. 2017, Fig. 2: most throughput at every mix of reads and writes
    GuzFig2,
    /// Guz et al. 2017, Fig. 3: processors of the host in use at every mix of reads and writes
    GuzFig3,
    /// Guz et al. 2017, Fig. 5: throughput and processor time with fewer processors at the target
    GuzFig5,
    /// Guz et al. 2017, Fig. 6: latency against load
    GuzFig6,
    /// Guz et al. 2017, Fig. 7: distributions of latency under three loads
    GuzFig7,
    /// Guz et al. 2017, Fig. 8: what an unloaded read consists of
    GuzFig8,
    /// Klimovic et al. 2016, Fig. 3: throughput over iSCSI as the target is tuned, for 1, 3 and 6
    /// tenants; in two networks of its own, so it needs root, iproute2 and ethtool
    KlimovicFig3,
    /// Klimovic et al. 2016, what is behind Fig. 7: 1, 2 and 3 tenants of one drive whose writes
    /// come in bursts, and tenants that only read
    KlimovicSharing,
}

impl FigureName {
    /// As it is written.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
