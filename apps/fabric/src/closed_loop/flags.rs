//! Flags of `afar loop`.

use std::path::PathBuf;

use clap::Args;

/// Run a program under the delays that its own traffic makes
///
/// The program runs without delay and its page faults are recorded; they become traffic between
/// blades of a simulated network (afar sim, traffic blades); the completion times of that are the
/// delays of the next run, until two successive profiles of delays agree. Says how much slower the
/// program is in an idle network, and with queueing (Gao et al. 2016, Fig. 8).
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct LoopFlags {
    /// The program and the network, as TOML
    #[arg(value_name = "FILE")]
    pub(crate) experiment: PathBuf,

    /// Directory of records, profiles and the result; created if missing [default: FILE with the
    /// ending .loop]
    #[arg(long, short, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Have runs count of which much memory stayed local; the result says so
    #[arg(long)]
    pub(crate) allow_unmanaged: bool,

    /// Write the result as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each round; - is standard output, in place of the table
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
}

const OUTPUT: &str = "Output";

const NOTES: &str = "\
Example of a file:
  [program]
  command = [\"afar\", \"workload\", \"wordcount\", \"--size\", \"32MiB\"]
  local = \"25%\"
  of = \"peak\"                          # of the most it uses: the default; or live, or a size
  metric = \"wordcount: ([0-9.]+) s\"   # its own time; without it the wall time
  repetitions = 5                      # pairs of runs, under delays and without
  rounds = 8                           # at most
  agree = \"5%\"                         # mean and 99th percentile of two profiles
  attempts = 3                         # of a run, until it is not disturbed. It is if
  stolen_max = \"5%\"                    # other guests took more of its processor time,
  others_max = \"5%\"                    # other programs kept more of the processors busy
  [network]
  rate = \"40Gbps\"
  scale = \"datacenter\"

[network] has the knobs of afar sim, with _ for -.

Exit status: 0 delays and traffic agree; 1 they do not, or something failed; 2 bad usage; 4 a run of
the program is invalid (see afar run), and so is the result; 130 interrupted.";
