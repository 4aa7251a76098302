//! Names of links.

use netsim::{Fabric, Node};

/// The name of a link by its ends: `host 3 to switch 0`.
pub(crate) fn link_name(fabric: &Fabric, index: usize) -> String {
    let link = &fabric.topology.links()[index];
    format!("{} to {}", node(link.from), node(link.to))
}

/// The name of a host or a switch.
fn node(node: Node) -> String {
    match node {
        Node::Host(host) => format!("host {host}"),
        Node::Switch(switch) => format!("switch {switch}"),
    }
}
