//! A remote fault at zero delay against this machine's own minor fault, as Table 1 of DiME.

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Bound, Found, Table, Verdict};
use crate::stats::{Quantile, Spread, float, quantile};
use crate::touch::{Drops, Touches};

const PAGES: u64 = 2048;
const LOCAL: &str = "2MiB";
/// What DiME adds to a fault, on average.
const EXTRA_MAX_NS: f64 = 78.0;

#[derive(Debug, Clone, Copy)]
enum Memory {
    Native(Drops),
    Far,
}

#[derive(Debug, Clone, Copy)]
struct Variant {
    write: bool,
    memory: Memory,
}

const MEMORIES: [Memory; 3] =
    [Memory::Native(Drops::Before), Memory::Native(Drops::Meanwhile), Memory::Far];

pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let rounds = context.size(16, 4);
    let variants: Vec<Variant> = [false, true]
        .into_iter()
        .flat_map(|write| MEMORIES.map(|memory| Variant { write, memory }))
        .collect();
    let medians = context.alternate("overhead, fault", &variants, |variant| {
        let touches = Touches { pages: PAGES, rounds, write: variant.write };
        let mut samples = match variant.memory {
            Memory::Far => touches.far(context, &["--local", LOCAL, "--policy", "fifo"])?.0,
            Memory::Native(drops) => touches.native(context, drops)?,
        };
        samples.sort_unstable();
        Ok(float(quantile(&samples, Quantile::P50)))
    })?;
    let read = Compared::of(&medians[..3]);
    let write = Compared::of(&medians[3..]);
    let header =
        ["fault, median ns", "minor, quiet", "minor", "remote, zero delay", "more", "ratio"];
    let mut table = Table::new(&header);
    table.row(read.row("read"));
    table.row(write.row("write"));
    let note = "minor: without afar, on a shared memory file watched for writes; another thread\n\
                \x20      drops the pages, 32 at a time, as afar does (quiet: itself, all before)\n\
                more, ratio: remote against minor\n\
                a remote write faults twice: to map the page, and for the write to be seen\n\
                DiME, published: 160 to 241 ns (protected page), 704 to 780 ns (new page)\n";
    Ok(Found {
        name: "fault",
        settings: json!({
            "page_count": PAGES,
            "local": LOCAL,
            "policy": "fifo",
            "touch_count": PAGES * rounds,
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

/// Medians of rounds with and without afar.
struct Compared {
    quiet: Spread,
    minor: Spread,
    remote: Spread,
    /// Of the medians; the extremes are those of the difference in one round.
    more: Spread,
    ratio: Spread,
}

impl Compared {
    /// Of the medians with [`MEMORIES`].
    fn of(medians: &[Vec<f64>]) -> Self {
        let [quiet, minor, remote] = medians else {
            unreachable!("one for each kind of memory");
        };
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let rounds = Spread::of(remote.iter().zip(minor).map(|(remote, minor)| remote - minor));
        let ratio = Spread::ratio(remote, minor);
        let (quiet, minor, remote) = (spread(quiet), spread(minor), spread(remote));
        Self {
            quiet,
            minor,
            remote,
            more: Spread { median: remote.median - minor.median, ..rounds },
            ratio,
        }
    }

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
    fn more_is_of_medians_and_its_extremes_of_rounds() {
        let medians = [vec![600.0; 3], vec![700.0, 720.0, 900.0], vec![760.0, 800.0, 910.0]];
        let compared = Compared::of(&medians);
        let more = compared.more;
        assert_eq!((more.median, more.min, more.max), (80.0, 10.0, 80.0));
    }
}
