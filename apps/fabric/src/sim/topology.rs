//! Who is connected to whom: a named shape, or a file of cables.
//!
//! ```toml
//! [[cable]]
//! from = "host 0-15"      # every one of these
//! to = "switch 0"         # with every one of those
//! rate = "40Gbps"
//! delay = "200ns"         # delay_back if the other way differs
//! ```

use std::path::Path;

use measure::{BitsPerSec, Duration};
use netsim::{LeafSpine, Link, Node, Topology};
use serde::Deserialize;

use super::SimError;
use super::setting::Settings;
use document::{Source, Value};

/// The most racks, hosts of a rack, spines, or hosts of a switch.
const MANY: u32 = 4096;
/// A fat tree of this arity has 65,536 hosts.
const ARITY_MAX: u32 = 64;
/// The most cables of a file: about as many as a fat tree of `ARITY_MAX` has.
const CABLES_MAX: usize = 200_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    cable: Vec<Cable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cable {
    from: Value,
    to: Value,
    rate: Value,
    delay: Value,
    delay_back: Option<Value>,
}

/// The network that settings describe.
///
/// # Errors
/// If the network cannot be built.
pub(super) fn topology(settings: &Settings) -> Result<Topology, SimError> {
    let built = match settings.text("topology") {
        "leaf-spine" => Topology::leaf_spine(&leaf_spine(settings)?),
        "single-switch" => {
            let hosts = settings.number("hosts", 2, MANY)?;
            Topology::single_switch(hosts, settings.value("rate")?, one_delay(settings)?)
        }
        "fat-tree" => {
            let arity = settings.number("arity", 2, ARITY_MAX)?;
            Topology::fat_tree(arity, settings.value("rate")?, one_delay(settings)?)
        }
        file if file.contains(['.', '/']) => Topology::new(cables(Path::new(file))?),
        other => {
            let message = format!(
                "there is no topology \"{other}\"; give single-switch, leaf-spine, fat-tree or a \
                 TOML file"
            );
            return Err(settings.wrong("topology", message));
        }
    };
    let knob = if settings.text("topology") == "fat-tree" { "arity" } else { "topology" };
    built.map_err(|error| settings.wrong(knob, error))
}

/// The leaf–spine network that settings describe.
///
/// # Errors
/// If a number, rate or delay is invalid.
pub(super) fn leaf_spine(settings: &Settings) -> Result<LeafSpine, SimError> {
    let [racks, hosts_per_rack, spines] =
        ["racks", "hosts-per-rack", "spines"].map(|name| settings.number(name, 1, MANY));
    let (racks, hosts_per_rack, spines) = (racks?, hosts_per_rack?, spines?);
    let host_rate: BitsPerSec = settings.value("rate")?;
    let spine_rate = if settings.is_given("spine-rate") {
        settings.value("spine-rate")?
    } else {
        let all = host_rate.get().saturating_mul(u64::from(hosts_per_rack));
        BitsPerSec::new((all / u64::from(spines)).max(1))
    };
    Ok(LeafSpine {
        racks,
        hosts_per_rack,
        spines,
        host_rate,
        spine_rate,
        delays: delays(settings)?,
    })
}

/// Delays of host to leaf, leaf to spine, spine to leaf, leaf to host.
fn delays(settings: &Settings) -> Result<[Duration; 4], SimError> {
    let text = settings.text("delay");
    let times: Result<Vec<Duration>, _> = text.split(',').map(document::delay).collect();
    match times.map_err(|error| settings.wrong("delay", error))?[..] {
        [one] => Ok([one; 4]),
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => Err(settings.wrong("delay", format!("\"{text}\": give one time, or four"))),
    }
}

/// The delay of every link; an error if several are set.
fn one_delay(settings: &Settings) -> Result<Duration, SimError> {
    let delays = delays(settings)?;
    if delays.iter().any(|delay| *delay != delays[0]) {
        let message = format!("every link of a {} is alike; give one", settings.text("topology"));
        return Err(settings.wrong("delay", message));
    }
    Ok(delays[0])
}

/// The links of a file of cables, two for each cable.
fn cables(path: &Path) -> Result<Vec<Link>, SimError> {
    let source = Source::read(path)?;
    let document: Document = source.parse()?;
    let mut links = Vec::new();
    for cable in &document.cable {
        let rate: BitsPerSec = source.value(&cable.rate)?;
        let there: Duration = source.value(&cable.delay)?;
        let back = cable.delay_back.as_ref().map_or(Ok(there), |back| source.value(back))?;
        let (ones, others) = (nodes(&source, &cable.from)?, nodes(&source, &cable.to)?);
        for &from in &ones {
            for &to in &others {
                links.push(Link { from, to, rate, delay: there });
                links.push(Link { from: to, to: from, rate, delay: back });
            }
        }
        if links.len() > 2 * CABLES_MAX {
            let message = format!("more than {CABLES_MAX} cables; take some away");
            return Err(source.wrong(&cable.to.span(), message).into());
        }
    }
    Ok(links)
}

/// The nodes that a text names: `host 3`, `switch 0-7`.
fn nodes(source: &Source, value: &Value) -> Result<Vec<Node>, SimError> {
    let text = &value.get_ref().0;
    let read = || {
        let (kind, numbers) = text.split_once(' ')?;
        let node: fn(u32) -> Node = match kind {
            "host" => Node::Host,
            "switch" => Node::Switch,
            _ => return None,
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let is_range = first <= last && last < u32::from(u16::MAX);
        is_range.then(|| (first..=last).map(node).collect())
    };
    read().ok_or_else(|| {
        let message = format!("\"{text}\": write host 3, or switch 0-7, up to 65534");
        source.wrong(&value.span(), message).into()
    })
}
