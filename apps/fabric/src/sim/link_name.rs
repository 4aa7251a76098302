//! How links are called.

use netsim::{Fabric, Node};

/// How a link is called.
pub(crate) fn link_name(fabric: &Fabric, index: usize) -> String {
    let link = &fabric.topology.links()[index];
    format!("{} to {}", node(link.from), node(link.to))
}

fn node(node: Node) -> String {
    match node {
        Node::Host(host) => format!("host {host}"),
        Node::Switch(switch) => format!("switch {switch}"),
    }
}
