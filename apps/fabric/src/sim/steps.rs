//! A small run to step through: one page that needs nothing but a browser.
//!
//! What is on the page is data beside a program of its own (`steps.html`): who is connected to
//! whom, every packet, and every port it came to with when it came, left and arrived.

use std::collections::{BTreeMap, BTreeSet};

use measure::Instant;
use netsim::{Fabric, Fate, Flow, Hop, Node, PacketKind, Trace, TracedPacket};
use records::FlowRow;
use serde_json::{Value, json};

use super::link_name::link_name;

/// The most packets that a page shows.
pub(super) const PACKETS_MAX: u32 = 5000;
/// The most hosts and switches that a page shows.
const NODES_MAX: usize = 128;

const PAGE: &str = include_str!("steps.html");
/// The text of the page that its data replaces.
const PLACE: &str = "/*DATA*/null";

/// A run that is shown.
pub(super) struct Shown<'a> {
    pub(super) title: &'a str,
    pub(super) fabric: &'a Fabric,
    pub(super) flows: &'a [Flow],
    pub(super) rows: &'a [FlowRow],
    pub(super) trace: &'a Trace,
}

/// Hosts and switches by `key`, each with its distance from the hosts in links.
type Nodes = BTreeMap<(bool, u32), u32>;

/// The page of a run.
///
/// # Errors
/// If the run has more packets or nodes than a page shows.
pub(super) fn page(shown: &Shown<'_>) -> Result<String, String> {
    let remedy = "give fewer flows or smaller ones (--traffic FILE, --flows, --size)";
    let trace = shown.trace;
    let count = trace.packets.len() as u64 + trace.omitted_count;
    if count > u64::from(PACKETS_MAX) {
        return Err(format!(
            "{count} packets were sent, and a page shows at most {PACKETS_MAX}; {remedy}"
        ));
    }
    let used: BTreeSet<u32> = trace.hops.iter().map(|hop| hop.link).collect();
    let nodes = nodes(shown.fabric, &used);
    if nodes.len() > NODES_MAX {
        let count = nodes.len();
        return Err(format!(
            "{count} hosts and switches took part, and a page shows at most {NODES_MAX}; {remedy}"
        ));
    }
    // A title is a user's text: nothing in it may end the script.
    let text = data(shown, &nodes, &used).to_string().replace('<', "\\u003c");
    Ok(PAGE.replacen(PLACE, &text, 1))
}

/// The ends of the links in `used`, each with its distance from the hosts in links.
fn nodes(fabric: &Fabric, used: &BTreeSet<u32>) -> Nodes {
    let links = fabric.topology.links();
    let mut level = Nodes::new();
    for link in links {
        for node in [link.from, link.to] {
            let start = if matches!(node, Node::Host(_)) { 0 } else { u32::MAX };
            level.entry(key(node)).or_insert(start);
        }
    }
    loop {
        let mut has_changed = false;
        for link in links {
            let next = level[&key(link.from)].saturating_add(1);
            if let Some(there) = level.get_mut(&key(link.to)).filter(|there| **there > next) {
                *there = next;
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    let ends = used.iter().flat_map(|&link| {
        let link = &links[link as usize];
        [key(link.from), key(link.to)]
    });
    ends.map(|end| (end, level[&end])).collect()
}

/// Whether a node is a switch, and its number.
const fn key(node: Node) -> (bool, u32) {
    match node {
        Node::Host(host) => (false, host),
        Node::Switch(switch) => (true, switch),
    }
}

/// The data of the page; the script in `steps.html` says what each place of a list is.
fn data(shown: &Shown<'_>, nodes: &Nodes, used: &BTreeSet<u32>) -> Value {
    let Shown { title, fabric, flows, rows, trace } = *shown;
    let links = fabric.topology.links();
    let place = |node: Node| nodes.keys().position(|other| *other == key(node));
    let start = flows.iter().map(|flow| flow.start.as_ps()).min().unwrap_or(0);
    let node = |(&(is_switch, number), level): (&(bool, u32), &u32)| {
        let what = if is_switch { "switch" } else { "host" };
        json!([format!("{what} {number}"), level])
    };
    let link = |&link: &u32| {
        let one = &links[link as usize];
        json!([place(one.from), place(one.to), link_name(fabric, link as usize)])
    };
    let flow = |(flow, row): (&Flow, &FlowRow)| {
        let from = flow.start.as_ps() - start;
        json!([flow.src, flow.dst, flow.bytes, from, row.completion_ps, row.slowdown])
    };
    let packet = |one: &TracedPacket| {
        let at = one.sent.as_ps() - start;
        json!([one.flow, kind(one.kind), one.number, one.src, one.dst, one.bytes, at])
    };
    let hop = |hop: &Hop| {
        let since = |at: Instant| at.as_ps() - start;
        let (left, end) = match hop.fate {
            Fate::Crossed { left, arrived } => (Some(since(left)), since(arrived)),
            Fate::Dropped { at } => (None, since(at)),
        };
        let link = used.range(..hop.link).count();
        let (came, kind) = (since(hop.came), kind(hop.kind));
        json!([hop.packet, link, came, left, end, kind, hop.bytes, hop.is_marked])
    };
    json!({
        "title": title,
        "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
        "links": used.iter().map(link).collect::<Vec<_>>(),
        "flows": flows.iter().zip(rows).map(flow).collect::<Vec<_>>(),
        "packets": trace.packets.iter().map(packet).collect::<Vec<_>>(),
        "hops": trace.hops.iter().map(hop).collect::<Vec<_>>(),
    })
}

/// The word for a kind of packet.
const fn kind(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Data => "data",
        PacketKind::Ack => "ack",
        PacketKind::Request => "request",
        PacketKind::Grant => "grant",
        PacketKind::Header => "header",
        PacketKind::Nack => "nack",
        PacketKind::Returned => "returned",
        PacketKind::Read => "read",
    }
}
