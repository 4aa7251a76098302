//! A remote fault at zero delay against a minor fault of this machine (DiME, Table 1).

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Bound, Found, Table, Verdict};
use crate::stats::{Quantile, Spread, float, quantile};
use crate::touch::{Drops, Memory, Touches};

const PAGES: u16 = 2048;
const LOCAL: &str = "2MiB";
/// What DiME adds to a fault in the mean.
const EXTRA_MAX_NS: f64 = 78.0;

const MEMORIES: [Memory; 3] = [
    Memory::Native(Drops::Before),
    Memory::Native(Drops::Meanwhile),
    Memory::Far(&["--local", LOCAL, "--policy", "fifo"]),
];

/// Runs this part.
pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let turns = context.size(100, 10);
    let medians = context.alternate("overhead, fault", &[false, true], |&write| {
        let touches = Touches { pages: PAGES.into(), rounds: turns, write };
        let samples = touches.by_turns(context, &MEMORIES)?;
        Ok(Medians::of(&samples))
    })?;
    let read = Compared::of(&medians[0]);
    let write = Compared::of(&medians[1]);
    let header =
        ["fault, median ns", "minor, quiet", "minor", "remote, zero delay", "more", "ratio"];
    let mut table = Table::new(&header);
    table.row(read.row("read"));
    table.row(write.row("write"));
    let note = "minor: without afar, on a shared memory file watched for writes; another thread\n\
                \x20      drops the pages, 32 at a time, as afar does (quiet: itself, all before)\n\
                the three programs take turns of 2,048 faults; more is the median of the\n\
                differences of turns that follow one another, ratio that of their medians\n\
                a remote write faults twice: to map the page, and for the write to be seen\n\
                DiME, published: 160 to 241 ns (protected page), 704 to 780 ns (new page)\n";
    Ok(Found {
        name: "fault",
        settings: json!({
            "page_count": PAGES,
            "local": LOCAL,
            "policy": "fifo",
            "turn_count": turns,
            "touch_count": u64::from(PAGES) * turns,
        }),
        results: json!({"read": read.json(), "write": write.json()}),
        text: format!("{}{note}", table.text()),
        verdicts: vec![Verdict {
            what: "a remote read at zero delay costs more than a minor fault by".to_owned(),
            value: read.more.median,
            bound: Bound::AtMost(EXTRA_MAX_NS),
            unit: "ns",
        }],
    })
}

/// The medians of one round over the turns of three programs, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Medians {
    quiet: f64,
    minor: f64,
    remote: f64,
    /// Remote minus minor in the same turn.
    more: f64,
}

impl Medians {
    /// The medians of samples of each of [`MEMORIES`] over all turns.
    fn of(samples: &[Vec<u64>]) -> Self {
        let of_turns = |samples: &Vec<u64>| -> Vec<f64> {
            let of_turn = |turn: &[u64]| {
                let mut turn = turn.to_vec();
                turn.sort_unstable();
                float(quantile(&turn, Quantile::P50))
            };
            samples.chunks(usize::from(PAGES)).map(of_turn).collect()
        };
        let [quiet, minor, remote] = samples else {
            unreachable!("one for each kind of memory");
        };
        let [quiet, minor, remote] = [quiet, minor, remote].map(of_turns);
        let differences = remote.iter().zip(&minor).map(|(remote, minor)| remote - minor);
        let more = Spread::of(differences).median;
        let [quiet, minor, remote] = [quiet, minor, remote].map(|turns| Spread::of(turns).median);
        Self { quiet, minor, remote, more }
    }
}

/// The results of reads or of writes over rounds.
struct Compared {
    quiet: Spread,
    minor: Spread,
    remote: Spread,
    more: Spread,
    ratio: Spread,
}

impl Compared {
    /// Compares the medians of all rounds.
    fn of(rounds: &[Medians]) -> Self {
        let spread = |part: fn(&Medians) -> f64| Spread::of(rounds.iter().map(part));
        Self {
            quiet: spread(|round| round.quiet),
            minor: spread(|round| round.minor),
            remote: spread(|round| round.remote),
            more: spread(|round| round.more),
            ratio: spread(|round| round.remote / round.minor),
        }
    }

    /// The row of the table.
    fn row(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            self.quiet.show(0),
            self.minor.show(0),
            self.remote.show(0),
            self.more.show(0),
            format!("{:.3}", self.ratio.median),
        ]
    }

    /// The results for the record.
    fn json(&self) -> Value {
        json!({
            "quiet_minor_ns": self.quiet.json(),
            "minor_ns": self.minor.json(),
            "remote_ns": self.remote.json(),
            "more_ns": self.more.json(),
            "ratio": self.ratio.json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_of_turns_that_follow_one_another() {
        // The machine is slower in two turns of three, for both.
        let turns = |of_turns: [u64; 3]| -> Vec<u64> {
            of_turns.into_iter().flat_map(|ns| vec![ns; usize::from(PAGES)]).collect()
        };
        let samples = [turns([600; 3]), turns([700, 2000, 2100]), turns([760, 2070, 2190])];
        let medians = Medians::of(&samples);
        assert_eq!((medians.minor, medians.remote, medians.more), (2000.0, 2070.0, 70.0));
        let compared = Compared::of(&[medians, Medians { more: 90.0, ..medians }, medians]);
        let more = compared.more;
        assert_eq!((more.median, more.min, more.max), (70.0, 70.0, 90.0));
    }
}
