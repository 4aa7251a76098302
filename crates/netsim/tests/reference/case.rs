//! A case: flows, and what became of them under each transport.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

use measure::{BitsPerSec, Duration, Instant};
use netsim::{Fabric, Flow, Published, Switching};
use test_support::skip;

/// Where the round robin of the arbiter began.
const ARBITER_PHASE: u32 = 3;

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) flows: Vec<Flow>,
    /// Ideal times, µs.
    pub(crate) ideal_us: Vec<f64>,
    /// By transport, by flow.
    pub(crate) results: BTreeMap<String, Vec<Expected>>,
    phases: [Vec<u32>; 2],
}

#[derive(Clone, Copy)]
pub(crate) struct Expected {
    /// `None` if the flow never finished.
    pub(crate) fct_us: Option<f64>,
    pub(crate) drops: u32,
}

impl Case {
    /// Reads a case; `None`, loudly, without the results.
    pub(crate) fn read(name: &str) -> Option<Self> {
        let Some(directory) = std::env::var_os("AFAR_ORACLE_DIR") else {
            skip("oracle::network", "set AFAR_ORACLE_DIR to a directory with network/*.csv.gz");
            return None;
        };
        let directory = PathBuf::from(directory).join("network");
        let file = directory.join(format!("{name}.csv.gz"));
        let output = Command::new("gzip").arg("-dc").arg(&file).output().expect("gzip runs");
        assert!(output.status.success(), "{} can be read", file.display());
        let text = String::from_utf8(output.stdout).expect("a table is text");
        let phases = ["default", "fastpass"].map(|set| {
            let file = directory.join(format!("spray_phase_{set}.csv"));
            let text = std::fs::read_to_string(file).expect("phases can be read");
            text.lines().skip(1).map(|line| number(line.split(',').nth(1))).collect()
        });
        Some(Self::parse(name, &text, phases))
    }

    fn parse(name: &str, text: &str, phases: [Vec<u32>; 2]) -> Self {
        let mut lines = text.lines();
        let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let mut case = Self {
            name: name.to_owned(),
            flows: Vec::new(),
            ideal_us: Vec::new(),
            results: BTreeMap::new(),
            phases,
        };
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let field = |index: usize| fields.get(index).copied();
            case.flows.push(Flow {
                start: Instant::from_ps(number(field(1))),
                src: number(field(2)),
                dst: number(field(3)),
                bytes: number(field(5)),
                ..Flow::default()
            });
            case.ideal_us.push(number(field(6)));
            for (index, column) in columns.iter().enumerate() {
                let Some(transport) = column.strip_prefix("fct_us.") else { continue };
                let expected = Expected {
                    fct_us: fields[index].parse().ok(),
                    drops: number(field(index + 2)),
                };
                case.results.entry(transport.to_owned()).or_default().push(expected);
            }
        }
        case
    }

    /// The network of the case: the suffix of its name.
    pub(crate) fn fabric(&self, transport: Published) -> Fabric {
        let paper = [10, 400, 400, 210].map(Duration::from_ns);
        let shipped = [200; 4].map(Duration::from_ns);
        let (gbps, delays, switching) = match self.name.rsplit("__").next() {
            Some("f10") => (10, shipped, Switching::StoreAndForward),
            Some("f40") => (40, shipped, Switching::CutThrough),
            Some("d40") => (40, paper, Switching::CutThrough),
            Some("d100") => (100, paper, Switching::CutThrough),
            other => panic!("{other:?} is no network"),
        };
        let mut phases = self.phases[usize::from(transport == Published::Fastpass)].clone();
        if transport == Published::Fastpass {
            // The arbiter comes after the hosts; the tables do not list it.
            phases.push(ARBITER_PHASE);
        }
        transport
            .fabric(BitsPerSec::from_gbps(gbps), delays, switching, phases)
            .expect("it is the network of the paper")
    }
}

fn number<T: FromStr>(field: Option<&str>) -> T {
    let parsed = field.and_then(|text| text.parse().ok());
    parsed.expect("every field of a table but a completion time is a number")
}

/// The name of a transport in the tables.
pub(crate) fn name(transport: Published) -> &'static str {
    match transport {
        Published::PFabric => "pfabric",
        Published::PHost => "phost",
        Published::Fastpass => "fastpass",
        Published::Tcp => "tcp",
        Published::Dctcp => "dctcp",
    }
}
