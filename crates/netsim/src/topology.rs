//! Hosts, switches, the links between them, and the shortest ways between hosts.
//!
//! A link is one direction of a cable and belongs to the port that sends on it, so links and
//! ports have the same index. Link `h` is the one host `h` sends on.

use std::collections::VecDeque;

use measure::{BitsPerSec, Duration};

use crate::error::SimError;

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// A host, by index.
    Host(u32),
    /// A switch, by index.
    Switch(u32),
}

/// One direction of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// Bit rate.
    pub rate: BitsPerSec,
    /// Propagation delay, and the receiver's switching delay.
    pub delay: Duration,
}

/// The ports of a switch from which a destination is reached by a shortest way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Group {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// A network of hosts and switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    links: Vec<Link>,
    host_count: u32,
    /// A host beyond the others that schedules them (Fastpass).
    arbiter: Option<u32>,
    switch_count: u32,
    /// The switch of each host.
    edge: Vec<u32>,
    /// The port of that switch which leads to the host.
    last: Vec<u32>,
    /// By switch, then by the switch of the destination.
    groups: Vec<Group>,
    /// Ports of all groups; a group is a range of these.
    ports: Vec<u32>,
}

/// A leaf–spine network of equal racks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafSpine {
    /// Racks, each with a leaf switch.
    pub racks: u32,
    /// Hosts in a rack.
    pub hosts_per_rack: u32,
    /// Spine switches; each leaf has one link to each.
    pub spines: u32,
    /// Rate of a host's link.
    pub host_rate: BitsPerSec,
    /// Rate of a link between leaf and spine.
    pub spine_rate: BitsPerSec,
    /// Delays: host to leaf, leaf to spine, spine to leaf, leaf to host.
    pub delays: [Duration; 4],
}

impl LeafSpine {
    /// The network of Gao et al. §4: 9 racks of 16 hosts, 4 spines, full bisection.
    #[must_use]
    pub fn paper(host_rate: BitsPerSec, delays: [Duration; 4]) -> Self {
        Self {
            racks: 9,
            hosts_per_rack: 16,
            spines: 4,
            host_rate,
            spine_rate: BitsPerSec::new(host_rate.get().saturating_mul(4)),
            delays,
        }
    }
}

impl Topology {
    /// A network of `links`.
    ///
    /// # Errors
    /// If a host has not exactly one link each way, both with the same switch, or cannot reach
    /// another.
    pub fn new(mut links: Vec<Link>) -> Result<Self, SimError> {
        let count = |nodes: &mut dyn Iterator<Item = u32>| nodes.max().map_or(0, |max| max + 1);
        let ends = || links.iter().flat_map(|link| [link.from, link.to]);
        let host_count = count(&mut ends().filter_map(|node| match node {
            Node::Host(host) => Some(host),
            Node::Switch(_) => None,
        }));
        let switch_count = count(&mut ends().filter_map(|node| match node {
            Node::Switch(switch) => Some(switch),
            Node::Host(_) => None,
        }));
        links.sort_by_key(|link| match link.from {
            Node::Host(host) => (0, host),
            Node::Switch(_) => (1, 0),
        });
        let (edge, last) = attach(&links, host_count)?;
        let mut topology = Self {
            links,
            host_count,
            arbiter: None,
            switch_count,
            edge,
            last,
            groups: Vec::new(),
            ports: Vec::new(),
        };
        topology.find_ways()?;
        Ok(topology)
    }

    /// A network of `hosts` hosts on one switch.
    ///
    /// # Errors
    /// If there are fewer than two hosts.
    pub fn single_switch(hosts: u32, rate: BitsPerSec, delay: Duration) -> Result<Self, SimError> {
        let mut links = Vec::new();
        for host in 0..hosts {
            connect(&mut links, Node::Host(host), Node::Switch(0), rate, [delay, delay]);
        }
        Self::new(links)
    }

    /// A leaf–spine network. Switches are leaves, then spines.
    ///
    /// # Errors
    /// If it has no racks, hosts or spines.
    pub fn leaf_spine(shape: &LeafSpine) -> Result<Self, SimError> {
        Self::new(leaf_spine_links(shape))
    }

    /// The same network with an arbiter: one more host at `switch`, which no flow can name.
    ///
    /// # Errors
    /// If there is no such switch.
    pub fn with_arbiter(
        self,
        switch: u32,
        rate: BitsPerSec,
        delays: [Duration; 2],
    ) -> Result<Self, SimError> {
        if switch >= self.switch_count {
            return Err(SimError::NoSwitch { switch, count: self.switch_count });
        }
        let arbiter = self.host_count;
        let mut links = self.links;
        connect(&mut links, Node::Host(arbiter), Node::Switch(switch), rate, delays);
        let with = Self::new(links)?;
        Ok(Self { host_count: arbiter, arbiter: Some(arbiter), ..with })
    }

    /// The same network with an arbiter at the first host's switch, connected like that host.
    pub(crate) fn with_arbiter_as_host(self) -> Result<Self, SimError> {
        let Link { rate, delay, .. } = self.links[0];
        let back = self.links[self.last[0] as usize].delay;
        let switch = self.edge[0];
        self.with_arbiter(switch, rate, [delay, back])
    }

    /// A fat tree of switches with `arity` ports: `arity`³/4 hosts, every link alike.
    ///
    /// # Errors
    /// If `arity` is odd or less than 2.
    pub fn fat_tree(arity: u32, rate: BitsPerSec, delay: Duration) -> Result<Self, SimError> {
        if arity < 2 || !arity.is_multiple_of(2) {
            return Err(SimError::Arity { arity });
        }
        let half = arity / 2;
        let edge = |pod: u32, index: u32| Node::Switch(pod * arity + index);
        let middle = |pod: u32, index: u32| Node::Switch(pod * arity + half + index);
        let core = |index: u32| Node::Switch(arity * arity + index);
        let mut links = Vec::new();
        let delays = [delay, delay];
        for pod in 0..arity {
            for low in 0..half {
                for port in 0..half {
                    let host = Node::Host((pod * half + low) * half + port);
                    connect(&mut links, host, edge(pod, low), rate, delays);
                    connect(&mut links, edge(pod, low), middle(pod, port), rate, delays);
                    connect(&mut links, middle(pod, low), core(low * half + port), rate, delays);
                }
            }
        }
        Self::new(links)
    }

    /// How many hosts there are; they are numbered from 0.
    #[must_use]
    pub const fn host_count(&self) -> u32 {
        self.host_count
    }

    /// The host that schedules the others; `None` without an arbiter.
    #[must_use]
    pub const fn arbiter(&self) -> Option<u32> {
        self.arbiter
    }

    /// Every link; the first are the hosts' own, in order.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links from `src` to `dst` on the first of the shortest ways.
    ///
    /// # Panics
    /// If one of them is not a host.
    #[must_use]
    pub fn path(&self, src: u32, dst: u32) -> Vec<Link> {
        let mut path = vec![self.links[src as usize]];
        while let Some(Link { to: Node::Switch(switch), .. }) = path.last() {
            let group = self.ways(*switch, dst);
            path.push(self.links[self.port(group, 0) as usize]);
        }
        path
    }

    /// How many shortest ways lead from `src` to `dst`; packets name them from 0.
    pub(crate) fn way_count(&self, src: u32, dst: u32) -> u16 {
        let mut count = 1_u32;
        let mut link = self.links[src as usize];
        while let Node::Switch(switch) = link.to {
            let group = self.ways(switch, dst);
            count = count.saturating_mul(group.count);
            link = self.links[self.port(group, 0) as usize];
        }
        u16::try_from(count).unwrap_or(u16::MAX).min(u16::MAX - 1)
    }

    /// The ports of `switch` from which `dst` is reached by a shortest way.
    #[inline]
    pub(crate) fn ways(&self, switch: u32, dst: u32) -> Group {
        let edge = self.edge[dst as usize];
        if edge == switch {
            return Group { first: self.last[dst as usize] | DIRECT, count: 1 };
        }
        self.groups[(switch * self.switch_count + edge) as usize]
    }

    /// How many switches there are.
    pub(crate) const fn switch_count(&self) -> u32 {
        self.switch_count
    }

    /// The port at place `choice` of `group`.
    #[inline]
    pub(crate) fn port(&self, group: Group, choice: u32) -> u32 {
        if group.first & DIRECT != 0 {
            return group.first & !DIRECT;
        }
        self.ports[(group.first + choice) as usize]
    }

    /// Fills `groups`, by a breadth-first search from each switch that has hosts.
    fn find_ways(&mut self) -> Result<(), SimError> {
        let switches = self.switch_count as usize;
        let mut incoming = vec![Vec::new(); switches];
        for (index, link) in (0_u32..).zip(&self.links) {
            if let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to) {
                incoming[to as usize].push((index, from));
            }
        }
        self.groups = vec![Group::default(); switches * switches];
        let mut edges = self.edge.clone();
        edges.sort_unstable();
        edges.dedup();
        for &edge in &edges {
            let distance = distances(&incoming, edge);
            let mut ways = vec![Vec::new(); switches];
            for (to, links) in incoming.iter().enumerate() {
                // `u32::MAX`, which has no successor, where there is no way.
                let Some(next) = distance[to].checked_add(1) else { continue };
                for &(port, from) in links {
                    if distance[from as usize] == next {
                        ways[from as usize].push(port);
                    }
                }
            }
            for (from, mut ports) in ways.into_iter().enumerate() {
                ports.sort_unstable();
                if ports.is_empty() && from != edge as usize && edges.contains(&from_u32(from)) {
                    return Err(SimError::Apart { from: from_u32(from), to: edge });
                }
                let group =
                    Group { first: from_u32(self.ports.len()), count: from_u32(ports.len()) };
                self.groups[from * switches + edge as usize] = group;
                self.ports.append(&mut ports);
            }
        }
        Ok(())
    }
}

/// Marks a group that is one port and not a range.
const DIRECT: u32 = 1 << 31;

/// The `u32` of an index of ports.
fn from_u32(index: usize) -> u32 {
    u32::try_from(index).expect("a network has fewer than 2³¹ ports")
}

/// The number of links from each switch to `edge`; `u32::MAX` where there is no way.
fn distances(incoming: &[Vec<(u32, u32)>], edge: u32) -> Vec<u32> {
    let mut distance = vec![u32::MAX; incoming.len()];
    distance[edge as usize] = 0;
    let mut next = VecDeque::from([edge]);
    while let Some(switch) = next.pop_front() {
        for &(_, from) in &incoming[switch as usize] {
            if distance[from as usize] == u32::MAX {
                distance[from as usize] = distance[switch as usize] + 1;
                next.push_back(from);
            }
        }
    }
    distance
}

/// The switch of each host, and the port that leads from that switch to the host.
fn attach(links: &[Link], host_count: u32) -> Result<(Vec<u32>, Vec<u32>), SimError> {
    if host_count < 2 {
        return Err(SimError::Hosts { count: host_count });
    }
    let mut edge = vec![None; host_count as usize];
    let mut last = vec![None; host_count as usize];
    for (index, link) in (0_u32..).zip(links) {
        let (place, end) = match (link.from, link.to) {
            (Node::Host(host), Node::Switch(switch)) => (&mut edge[host as usize], switch),
            (Node::Switch(_), Node::Host(host)) => (&mut last[host as usize], index),
            (Node::Host(host), Node::Host(_)) => return Err(SimError::Attached { host }),
            (Node::Switch(_), Node::Switch(_)) => continue,
        };
        if place.replace(end).is_some() {
            let ((Node::Host(host), _) | (_, Node::Host(host))) = (link.from, link.to) else {
                continue;
            };
            return Err(SimError::Attached { host });
        }
    }
    let mut attached = (Vec::new(), Vec::new());
    for (host, ends) in (0_u32..).zip(edge.into_iter().zip(last)) {
        let (Some(edge), Some(last)) = ends else { return Err(SimError::Attached { host }) };
        if links[last as usize].from != Node::Switch(edge) {
            return Err(SimError::Attached { host });
        }
        attached.0.push(edge);
        attached.1.push(last);
    }
    Ok(attached)
}

/// The links of a leaf–spine network.
fn leaf_spine_links(shape: &LeafSpine) -> Vec<Link> {
    let [up, across, down, out] = shape.delays;
    let mut links = Vec::new();
    for rack in 0..shape.racks {
        for place in 0..shape.hosts_per_rack {
            let host = Node::Host(rack * shape.hosts_per_rack + place);
            connect(&mut links, host, Node::Switch(rack), shape.host_rate, [up, out]);
        }
        for spine in 0..shape.spines {
            let spine = Node::Switch(shape.racks + spine);
            connect(&mut links, Node::Switch(rack), spine, shape.spine_rate, [across, down]);
        }
    }
    links
}

/// Adds a cable: a link each way, with delays there and back.
fn connect(links: &mut Vec<Link>, one: Node, other: Node, rate: BitsPerSec, delays: [Duration; 2]) {
    links.push(Link { from: one, to: other, rate, delay: delays[0] });
    links.push(Link { from: other, to: one, rate, delay: delays[1] });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_that_only_reach_one_another_lead_nowhere() {
        let (rate, delays) = (BitsPerSec::from_gbps(10), [Duration::from_ns(1); 2]);
        let two_parts = |cables: &[(u32, u32)]| {
            let mut links = Vec::new();
            for (host, switch) in [(0, 0), (1, 1)] {
                connect(&mut links, Node::Host(host), Node::Switch(switch), rate, delays);
            }
            for &(one, other) in cables {
                connect(&mut links, Node::Switch(one), Node::Switch(other), rate, delays);
            }
            Topology::new(links).map(|topology| topology.path(0, 1).len())
        };
        assert_eq!(two_parts(&[(0, 3), (2, 1)]), Err(SimError::Apart { from: 1, to: 0 }));
        assert_eq!(two_parts(&[(0, 3), (2, 1), (3, 2)]), Ok(5));
    }
}
