//! Reads of many sizes over a private virtual network: none may wait for a timer of TCP.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::process::{Job, find};
use crate::report::{Bound, Table, Verdict};
use crate::stats::Spread;

use super::part::Part;
use super::serve::{Load, Server, inside};

const ADDRESS: &str = "10.9.0.1";
/// Bound of the median time of a read: half of TCP's delayed acknowledgement of 40 ms.
const STALL_US: f64 = 20_000.0;
const SIZES: [u32; 7] = [512, 4096, 8192, 16 << 10, 64 << 10, 128 << 10, 1 << 20];

/// Two network namespaces with a veth pair between them. They vanish with the processes that hold
/// them.
struct Cable {
    ends: [Job; 2],
}

impl Cable {
    /// Creates the namespaces and the veth pair with addresses.
    fn new(context: &Context) -> Result<Self, Failure> {
        let unshare: Vec<OsString> = vec![find("unshare", "util-linux")?];
        let holder: Vec<OsString> =
            ["--net", "sleep", "infinity"].map(OsString::from).into_iter().collect();
        let command = [unshare, holder].concat();
        let ends = [Job::start(context, &command)?, Job::start(context, &command)?];
        // Until both have networks of their own.
        std::thread::sleep(Duration::from_millis(200));
        let cable = Self { ends };
        let [a, b] = cable.networks().map(|pid| pid.to_string());
        let words = ["link", "add", "cable", "netns", &a, "type", "veth", "peer", "cable"];
        let is_made = run_ip(&[&words[..], &["netns", &b]].concat())
            && cable.ip(0, &["addr", "add", &format!("{ADDRESS}/24"), "dev", "cable"])
            && cable.ip(1, &["addr", "add", "10.9.0.2/24", "dev", "cable"]);
        if !is_made {
            let refused = std::io::Error::other("it needs root, iproute2 and veth");
            return Err(Failure::file("make a network at", ADDRESS)(refused));
        }
        cable.set(1500, true)?;
        Ok(cable)
    }

    /// The processes that hold the namespaces.
    fn networks(&self) -> [u32; 2] {
        [self.ends[0].pid(), self.ends[1].pid()]
    }

    // Runs a command in one of the namespaces. Returns whether it succeeded.
    fn run(&self, end: usize, words: &[&str]) -> bool {
        let Ok(command) = inside(self.ends[end].pid()) else { return false };
        let Some((program, rest)) = command.split_first() else { return false };
        let output = Command::new(program).args(rest).args(words).output();
        output.is_ok_and(|output| output.status.success())
    }

    // Runs `ip` in one of the namespaces. Returns whether it succeeded.
    fn ip(&self, end: usize, words: &[&str]) -> bool {
        self.run(end, &[&["ip"], words].concat())
    }

    // Sets the MTU and the segmentation offloads of both ends.
    fn set(&self, mtu: u32, offloads: bool) -> Result<(), Failure> {
        let state = if offloads { "on" } else { "off" };
        for end in 0..self.ends.len() {
            let is_set = self.ip(end, &["link", "set", "cable", "mtu", &mtu.to_string(), "up"])
                && self.run(end, &["ethtool", "-K", "cable", "tso", state, "gso", state]);
            if !is_set {
                let refused = std::io::Error::other("ip and ethtool refuse");
                return Err(Failure::file("set MTU and offloads at", ADDRESS)(refused));
            }
        }
        Ok(())
    }
}

// Runs `ip` outside of the namespaces. Returns whether it succeeded.
fn run_ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
}

/// Runs this part.
///
/// # Errors
/// When the network cannot be created.
pub(super) fn run(context: &Context) -> Result<Part, Failure> {
    find("ip", "iproute2")?;
    find("ethtool", "ethtool")?;
    let cable = Cable::new(context)?;
    let [there, here] = cable.networks();
    let address = format!("{ADDRESS}:4420");
    let server = Server::start_in(context, there, "memory:1GiB", &address)?;
    std::thread::sleep(Duration::from_millis(300));
    let sizes: Vec<String> = SIZES.iter().map(|bytes| bytes.to_string()).collect();
    let mut header = vec!["one read at a time, median us"];
    header.extend(sizes.iter().map(String::as_str));
    let mut table = Table::new(&header);
    let (mut results, mut worst) = (Map::new(), 0.0_f64);
    for (mtu, offloads) in [(1500, true), (1500, false), (9000, true), (9000, false)] {
        cable.set(mtu, offloads)?;
        let name = format!("MTU {mtu}, {}", if offloads { "TSO" } else { "no TSO" });
        let runs = context.alternate(&name, &SIZES, |bytes| {
            let load = Load { depth: 1, jobs: 1, spins: false, bytes: *bytes };
            server.load_from(context, here, load).map(|run| run.p50_us)
        })?;
        let medians: Vec<f64> = runs.into_iter().map(|runs| Spread::of(runs).median).collect();
        worst = medians.iter().copied().fold(worst, f64::max);
        let cells = medians.iter().map(|us| format!("{us:.0}"));
        table.row([name.clone()].into_iter().chain(cells).collect());
        results.insert(name, json!(medians));
    }
    Ok(Part {
        text: table.text(),
        results: Value::Object(results),
        verdicts: vec![Verdict {
            what: "any size, any MTU: the longest median of a read".to_owned(),
            value: worst,
            bound: Bound::AtMost(STALL_US),
            unit: "us",
        }],
    })
}
