//! Reads of every size over a network of its own: none may wait for a timer of TCP.

use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Bound, Table, Verdict};
use crate::stats::Spread;

use super::Part;
use super::serve::{Load, Server};

const ADDRESS: &str = "10.9.0.1";
/// A delayed acknowledgement is 40 ms.
const STALL_US: f64 = 20_000.0;
const SIZES: [u32; 7] = [512, 4096, 8192, 16 << 10, 64 << 10, 128 << 10, 1 << 20];

/// Two network namespaces with a cable between them, gone when dropped.
struct Cable {
    ends: [String; 2],
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
}

impl Cable {
    fn new() -> Result<Self, Failure> {
        let name = |end: &str| format!("afar-bench-{}-{end}", std::process::id());
        let cable = Self { ends: ["a", "b"].map(name) };
        let [a, b] = [cable.ends[0].as_str(), cable.ends[1].as_str()];
        let address = format!("{ADDRESS}/24");
        let is_made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&["-n", a, "link", "add", "cable", "type", "veth", "peer", "cable", "netns", b])
            && ip(&["-n", a, "addr", "add", &address, "dev", "cable"])
            && ip(&["-n", b, "addr", "add", "10.9.0.2/24", "dev", "cable"]);
        if !is_made {
            let refused = std::io::Error::other("it needs root, iproute2 and veth");
            return Err(Failure::file("make a network at", ADDRESS)(refused));
        }
        cable.set(1500, true);
        Ok(cable)
    }

    fn set(&self, mtu: u32, offloads: bool) {
        let state = if offloads { "on" } else { "off" };
        for end in &self.ends {
            ip(&["-n", end, "link", "set", "cable", "mtu", &mtu.to_string(), "up"]);
            let words =
                ["netns", "exec", end, "ethtool", "-K", "cable", "tso", state, "gso", state];
            ip(&words);
        }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in &self.ends {
            ip(&["netns", "del", end]);
        }
    }
}

/// # Errors
/// When there can be no such network.
pub(super) fn run(context: &Context) -> Result<Part, Failure> {
    crate::process::find("ethtool", "ethtool")?;
    let cable = Cable::new()?;
    let [there, here] = &cable.ends;
    let address = format!("{ADDRESS}:4420");
    let server = Server::start_in(context, there, "memory:1GiB", &address)?;
    std::thread::sleep(Duration::from_millis(300));
    let sizes: Vec<String> = SIZES.iter().map(|bytes| bytes.to_string()).collect();
    let mut header = vec!["one read at a time, median us"];
    header.extend(sizes.iter().map(String::as_str));
    let mut table = Table::new(&header);
    let (mut results, mut worst) = (Map::new(), 0.0_f64);
    for (mtu, offloads) in [(1500, true), (1500, false), (9000, true), (9000, false)] {
        cable.set(mtu, offloads);
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
