//! Flags of `afar torture`.

use std::path::PathBuf;

use clap::Args;
use measure::Duration;

use client::InitiatorFlags;
use document::seed;

/// Send a target what no host would, and say whether it reacts as it should
///
/// Malformed, misplaced, oversized and abandoned messages, case by case, to any target of NVMe/TCP
/// or iSCSI; a host that behaves well reads meanwhile. docs/torture.md has the cases and the
/// reaction that is expected of each.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct TortureFlags {
    /// nvme+tcp://HOST:PORT/NQN/NSID (port 4420 and namespace 1 if they are left out) or
    /// iscsi://USER@HOST:PORT/IQN/LUN (nobody, port 3260, logical unit 0)
    #[arg(value_name = "ADDRESS", required_unless_present = "list")]
    pub(crate) address: Option<String>,

    /// Try the cases that may write, too: what is on the disk is lost. Without it they are skipped
    #[arg(long, help_heading = CASES)]
    pub(crate) allow_writes: bool,

    /// Only these cases: N8,N53
    #[arg(long = "case", value_name = "LIST", value_delimiter = ',', help_heading = CASES)]
    #[arg(conflicts_with = "list")]
    pub(crate) cases: Vec<String>,

    /// A hundredth of the repetitions of cases that repeat
    #[arg(long, help_heading = CASES)]
    pub(crate) quick: bool,

    /// Seed of every draw
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = CASES)]
    #[arg(value_parser = seed)]
    pub(crate) seed: u64,

    /// How long the target has to let a peer go that stalls: more than its own limit
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = CASES)]
    pub(crate) patience: Duration,

    /// List the cases and send nothing
    #[arg(long, help_heading = CASES)]
    pub(crate) list: bool,

    /// The list as a table of Markdown
    #[arg(long, requires = "list", help_heading = CASES)]
    pub(crate) markdown: bool,

    /// The disk that the well-behaved host reads; another one of the same target is better where
    /// resets and reservations are tried [default: ADDRESS]
    #[arg(long, value_name = "URI", help_heading = BESIDE)]
    pub(crate) neighbour: Option<String>,

    /// The target's process, whose memory is told [default: whoever listens there, if that is this
    /// machine]
    #[arg(long, value_name = "PID", help_heading = BESIDE)]
    pub(crate) pid: Option<u32>,

    /// Who this host says it is over NVMe/TCP
    #[arg(long, value_name = "NQN", help_heading = BESIDE)]
    #[arg(default_value = "nqn.2026-11.local.afar:torture")]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) initiator: InitiatorFlags,

    /// Write everything that was seen as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each case, with units in the names of columns; - is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
}

const CASES: &str = "Cases";
const BESIDE: &str = "Beside them";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
With --allow-writes the disk must be one whose contents nobody needs: blocks are overwritten and
discarded, reservations taken and cleared, formats asked for.

Reactions: served (answered well), ignored (nothing is said), T (C2HTermReq with a status), S (the
command ends with a status), C (the connection is closed), L (Login Response with a status), R
(Reject with a reason), CHECK (CHECK CONDITION), TM (task management response). After served,
ignored, S, R, CHECK and TM the connection must live; after T and L it must end.

A case that the target has no part for (digests, CHAP) is not offered, and never as stated.

Exit status: 0 every case that was tried is as stated; 1 some are not, or the target cannot be
reached; 2 bad usage; 130 it was interrupted, and what was seen until then is written.

Example: afar torture nvme+tcp://127.0.0.1/nqn.2026-11.local.afar:0923dd2db942:disk \\
           --allow-writes --quick";
