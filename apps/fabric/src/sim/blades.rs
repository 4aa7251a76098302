//! Traffic of a disaggregated datacenter: what programs requested of memory and disks becomes
//! flows between compute, memory and disk blades (Gao et al. 2016, §4.1).
//!
//! ```text
//! record of faults, of block I/O ─► Transfer ─► node's own blade ─► cluster ─► hosts ─► Flow
//!                                                   └─ distributions by pair ─┘
//! ```
//!
//! A cluster of N nodes is N compute, N memory and N disk blades, each a host. Pages and sectors
//! are spread evenly over the blades of their kind. Nodes take records in turn, and every node of
//! every cluster is somewhere else in its record, so that none moves in step with another. In place
//! of records there may be a list of what the blades of one cluster moved.
//!
//! A flow to a compute blade is a read, which that blade requested; a flow from one is a write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use document::DocumentError;
use measure::{Duration, Instant};
use netsim::{Exchange, Fabric, Flow, Node};
use records::{FaultKind, FaultReader};
use workload::Draw;

use super::SimError;
use super::blocks;
use super::fitted::{self, Drawing, Pair};
use super::list;
use super::setting::Settings;
use super::transfer::{Place, Transfer};

const PAGE_BYTES: u64 = 4096;
/// Rows of a record that are read; a node needs no more for the flows of one run.
const ROWS_MAX: usize = 4_000_000;
/// Pages of 4 KiB in 2 MiB.
const SEGMENT_PAGES: u64 = 512;
/// Most nodes of a cluster.
const NODES_MAX: u32 = 1000;
/// The most copies of its flows that a pair draws.
const COPIES_MAX: u32 = 1000;

/// The first `flows` flows that records, or a list of moves, make on `fabric`, from time 0 on.
///
/// # Errors
/// If a record cannot be read, or clusters do not fit.
pub(super) fn flows(settings: &Settings, fabric: &Fabric) -> Result<Vec<Flow>, SimError> {
    let nodes = settings.number("nodes", 1, NODES_MAX)?;
    let replay = Replay {
        source: Source::read(settings, nodes)?,
        nodes,
        batch: document::delay(settings.text("batch"))
            .map_err(|error| settings.wrong("batch", error))?,
        speed: speed(settings)?,
    };
    let clusters = clusters(settings, fabric, nodes)?;
    let count = settings.number("flows", 1, u32::MAX)? as usize;
    let seed = settings.seed()?;
    let words = [("recorded", false), ("fitted", true)];
    let mut flows = match settings.choice("replay", &words)? {
        true => drawing(settings, seed)?.flows(&replay.fit(), &clusters, count),
        false => replay.recorded(&clusters, seed),
    };
    flows.sort_by_key(|flow| (flow.start, flow.src, flow.dst));
    flows.truncate(count);
    let first = flows.first().map_or(Instant::ZERO, |flow| flow.start);
    for flow in &mut flows {
        flow.start = Instant::ZERO.saturating_add(flow.start.saturating_since(first));
    }
    Ok(flows)
}

/// What a cluster moved.
enum Source {
    /// Records in order of time, which nodes take in turn; at least one, and none is empty.
    Records(Vec<Vec<Transfer>>),
    /// Flows between the blades of a cluster, in order of time; at least one.
    Moves(Vec<Flow>),
}

impl Source {
    /// Reads the list of moves if one is set, else the records.
    fn read(settings: &Settings, nodes: u32) -> Result<Self, SimError> {
        let file = settings.text("moves");
        if file.is_empty() {
            return Ok(Self::Records(records(settings)?));
        }
        if settings.is_given("faults") || settings.is_given("blocks") {
            let message = "they take the place of records; give either moves, or faults and blocks";
            return Err(settings.wrong("moves", message));
        }
        let mut flows = list::flows(Path::new(file), 3 * nodes)?;
        for flow in &mut flows {
            flow.exchange = match (flow.src < nodes, flow.dst < nodes) {
                (false, true) => Exchange::Read,
                (true, false) => Exchange::Write,
                // Between other blades the exchange is the one that the list says.
                _ => flow.exchange,
            };
        }
        flows.sort_by_key(|flow| flow.start);
        Ok(Self::Moves(flows))
    }
}

/// What one cluster moved, and how every cluster replays it.
struct Replay {
    source: Source,
    nodes: u32,
    batch: Duration,
    speed: f64,
}

impl Replay {
    /// The flows of all clusters as recorded; each part begins at a random place in its record.
    fn recorded(&self, clusters: &[Vec<u32>], seed: u64) -> Vec<Flow> {
        let mut draw = Draw::new(seed);
        let mut flows = Vec::new();
        for hosts in clusters {
            for part in 0..self.part_count() {
                let shift = draw.below(self.length_ps(part));
                flows.append(&mut self.part(hosts, part, shift));
            }
        }
        flows
    }

    /// The distributions of what each pair of blades in one cluster moved.
    fn fit(&self) -> Vec<Pair> {
        let blades: Vec<u32> = (0..3 * self.nodes).collect();
        let of = |part| {
            let length = faster(self.length_ps(part), self.speed).saturating_since(Instant::ZERO);
            // No two parts have a pair of blades in common.
            fitted::pairs(&self.part(&blades, part, 0), length)
        };
        (0..self.part_count()).flat_map(of).collect()
    }

    /// Parts of a cluster, each with its own place in time: the nodes, or the whole list.
    fn part_count(&self) -> u32 {
        match self.source {
            Source::Records(_) => self.nodes,
            Source::Moves(_) => 1,
        }
    }

    /// How long the record of a part is, in picoseconds as recorded.
    fn length_ps(&self, part: u32) -> u64 {
        let last = match &self.source {
            Source::Records(records) => of_node(records, part).last().map(|last| last.at_ps),
            Source::Moves(flows) => flows.last().map(|last| last.start.as_ps()),
        };
        last.unwrap_or(0) + 1
    }

    /// The flows of one part between `hosts`, moved by `shift` ps within its record, in order of
    /// time.
    fn part(&self, hosts: &[u32], part: u32, shift: u64) -> Vec<Flow> {
        let length = self.length_ps(part);
        let start = |at_ps: u64| faster((at_ps + shift) % length, self.speed);
        let mut moved: Vec<Flow> = match &self.source {
            Source::Records(records) => {
                let blades = Blades { hosts, nodes: self.nodes, node: part };
                let flow = |transfer: &Transfer| blades.flow(transfer, start(transfer.at_ps));
                of_node(records, part).iter().map(flow).collect()
            }
            Source::Moves(flows) => {
                let placed = |flow: &Flow| Flow {
                    start: start(flow.start.as_ps()),
                    src: hosts[flow.src as usize],
                    dst: hosts[flow.dst as usize],
                    ..*flow
                };
                flows.iter().map(placed).collect()
            }
        };
        moved.sort_by_key(|flow| flow.start);
        together(moved, self.batch)
    }
}

/// The record that a node takes.
fn of_node(records: &[Vec<Transfer>], node: u32) -> &[Transfer] {
    &records[node as usize % records.len()]
}

/// One node of a cluster, and the hosts its blades are: compute, memory, disk.
struct Blades<'a> {
    hosts: &'a [u32],
    nodes: u32,
    node: u32,
}

impl Blades<'_> {
    /// The flow of a transfer, from or to the blade that its address is on.
    fn flow(&self, transfer: &Transfer, start: Instant) -> Flow {
        let Transfer { place, address, address_end, bytes, is_read, .. } = *transfer;
        let blade = u128::from(address) * u128::from(self.nodes) / u128::from(address_end.max(1));
        let blade = u32::try_from(blade).unwrap_or(u32::MAX).min(self.nodes - 1);
        let other = match place {
            Place::Memory => self.nodes + blade,
            // The first sectors of different nodes are on different disks.
            Place::Disk => 2 * self.nodes + (blade + self.node) % self.nodes,
        };
        let [compute, other] = [self.node, other].map(|blade| self.hosts[blade as usize]);
        match is_read {
            true => Flow { start, src: other, dst: compute, bytes, exchange: Exchange::Read },
            false => Flow { start, src: compute, dst: other, bytes, exchange: Exchange::Write },
        }
    }
}

/// Merges what a pair of hosts moves within `batch` of a flow into that flow. `flows` are in
/// order of time.
fn together(flows: Vec<Flow>, batch: Duration) -> Vec<Flow> {
    if batch.is_zero() {
        return flows;
    }
    let mut merged: Vec<Flow> = Vec::new();
    let mut open = BTreeMap::<(u32, u32, Exchange), usize>::new();
    for flow in flows {
        let pair = (flow.src, flow.dst, flow.exchange);
        match open.get(&pair).map(|&index| &mut merged[index]) {
            Some(before) if flow.start.saturating_since(before.start) <= batch => {
                before.bytes += flow.bytes;
            }
            _ => {
                open.insert(pair, merged.len());
                merged.push(flow);
            }
        }
    }
    merged
}

/// Reads all records, each in order of time; an error if there is none, or one is empty.
fn records(settings: &Settings) -> Result<Vec<Vec<Transfer>>, SimError> {
    let names = |knob: &str| -> Vec<String> {
        settings.text(knob).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let (memory, disk) = (names("faults"), names("blocks"));
    let count = memory.len().max(disk.len());
    if count == 0 {
        let message = "blades need records of what programs did; add --faults FILE (of afar run \
                       --record), --blocks FILE (of trace: in afar serve) or --moves FILE (a list)";
        return Err(settings.wrong("traffic", message));
    }
    let mut records = vec![Vec::new(); count];
    for (record, name) in records.iter_mut().zip(&memory) {
        record.append(&mut faults(Path::new(name))?);
    }
    for (record, name) in records.iter_mut().zip(&disk) {
        record.append(&mut blocks::read(Path::new(name))?);
    }
    for (record, name) in records.iter_mut().zip(memory.iter().chain(&disk)) {
        if record.is_empty() {
            let message = "nothing was moved; record a run with less local memory".to_owned();
            return Err(SimError::at(name.as_str(), message));
        }
        record.sort_by_key(|transfer| transfer.at_ps);
    }
    Ok(records)
}

/// Reads the pages that were fetched or written back from a record of page faults.
fn faults(path: &Path) -> Result<Vec<Transfer>, SimError> {
    let unreadable = |source| DocumentError::Unreadable { path: path.to_owned(), source };
    let wrong = |source| DocumentError::Table { place: path.display().to_string(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut reader = FaultReader::new(file).map_err(wrong)?;
    let mut moved = Vec::new();
    // Segments of 2 MiB in use: blades hold these, and not the addresses in between.
    let mut used = BTreeMap::<u32, BTreeSet<u64>>::new();
    let mut last = BTreeMap::<u32, u64>::new();
    while let Some(group) = reader.next_group().map_err(wrong)? {
        for fault in group {
            used.entry(fault.process_slot).or_default().insert(fault.page / SEGMENT_PAGES);
            let last = last.entry(fault.process_slot).or_default();
            *last = (*last).max(fault.page);
            let is_read = match fault.kind {
                FaultKind::Fetch | FaultKind::Prefetch => true,
                FaultKind::WriteBack => false,
                FaultKind::FirstTouch | FaultKind::Soft | FaultKind::Arrived | FaultKind::Freed => {
                    continue;
                }
            };
            if moved.len() < ROWS_MAX {
                moved.push((fault.time_ns, fault.process_slot, fault.page, is_read));
            }
        }
    }
    let used: BTreeMap<u32, Vec<u64>> =
        used.into_iter().map(|(slot, segments)| (slot, segments.into_iter().collect())).collect();
    let place = |slot: u32, page: u64| {
        let segments = used.get(&slot).map_or(&[][..], Vec::as_slice);
        let before = segments.partition_point(|&segment| segment < page / SEGMENT_PAGES) as u64;
        before * SEGMENT_PAGES + page % SEGMENT_PAGES
    };
    let transfer = |(time_ns, slot, page, is_read): (u64, u32, u64, bool)| {
        let end = last.get(&slot).map_or(1, |&last| place(slot, last) + 1);
        Transfer {
            at_ps: time_ns.saturating_mul(1000),
            place: Place::Memory,
            address: place(slot, page),
            address_end: end,
            bytes: PAGE_BYTES,
            is_read,
        }
    };
    Ok(moved.into_iter().map(transfer).collect())
}

/// The hosts of each cluster, of one rack or of the whole network.
fn clusters(settings: &Settings, fabric: &Fabric, nodes: u32) -> Result<Vec<Vec<u32>>, SimError> {
    let size = 3 * nodes as usize;
    let is_rack = settings.choice("scale", &[("rack", true), ("datacenter", false)])?;
    let hosts = fabric.topology.host_count();
    let all: Vec<Vec<u32>> = if is_rack {
        let mut racks = BTreeMap::<u32, Vec<u32>>::new();
        for (host, link) in (0..hosts).zip(fabric.topology.links()) {
            if let Node::Switch(switch) = link.to {
                racks.entry(switch).or_default().push(host);
            }
        }
        let cut = |rack: Vec<u32>| rack.chunks_exact(size).map(<[u32]>::to_vec).collect::<Vec<_>>();
        racks.into_values().flat_map(cut).collect()
    } else {
        let mut draw = Draw::new(settings.seed()?.wrapping_add(1));
        let mut order: Vec<u32> = (0..hosts).collect();
        for last in (1..order.len()).rev() {
            let other = usize::try_from(draw.below(last as u64 + 1)).unwrap_or(0);
            order.swap(last, other);
        }
        order.chunks_exact(size).map(<[u32]>::to_vec).collect()
    };
    let fit = u32::try_from(all.len()).unwrap_or(u32::MAX);
    if fit == 0 {
        let message = format!(
            "a cluster of {nodes} nodes has {size} blades, and no {} has as many hosts; give fewer",
            settings.text("scale")
        );
        return Err(settings.wrong("nodes", message));
    }
    let wanted = match settings.is_given("clusters") {
        true => settings.number("clusters", 1, fit)?,
        false => fit,
    };
    Ok(all.into_iter().take(wanted as usize).collect())
}

// How flows are drawn from records: `copies`, `begin`, and the seed.
fn drawing(settings: &Settings, seed: u64) -> Result<Drawing, SimError> {
    Ok(Drawing {
        seed,
        copies: settings.number("copies", 1, COPIES_MAX)?,
        is_together: settings.choice("begin", &[("anywhere", false), ("together", true)])?,
    })
}

// `speed`: how much faster than recorded the programs run.
fn speed(settings: &Settings) -> Result<f64, SimError> {
    let text = settings.text("speed");
    let speed = text.parse().ok().filter(|speed: &f64| (1e-3..=1e6).contains(speed));
    speed.ok_or_else(|| {
        settings.wrong("speed", format!("\"{text}\": give a factor from 0.001 to 1000000"))
    })
}

/// A recorded time when programs run `speed` times as fast.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is positive, and one that is too long is the longest"
)]
fn faster(at_ps: u64, speed: f64) -> Instant {
    Instant::from_ps((at_ps as f64 / speed).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spread_over_the_blades_of_their_kind() {
        let hosts: Vec<u32> = (100..106).collect();
        let blades = Blades { hosts: &hosts, nodes: 2, node: 1 };
        let flow = |place, address, is_read| {
            let transfer =
                Transfer { at_ps: 0, place, address, address_end: 10, bytes: 4096, is_read };
            let flow = blades.flow(&transfer, Instant::ZERO);
            (flow.src, flow.dst)
        };
        assert_eq!(flow(Place::Memory, 0, true), (102, 101));
        assert_eq!(flow(Place::Memory, 5, true), (103, 101));
        assert_eq!(flow(Place::Memory, 9, false), (101, 103));
        assert_eq!(flow(Place::Disk, 0, true), (105, 101));
        assert_eq!(flow(Place::Disk, 9, false), (101, 104));
    }

    #[test]
    fn pages_of_a_batch_are_one_flow() {
        let start = |ns: u64| Instant::from_ps(ns * 1000);
        let at = |ns, src| Flow { start: start(ns), src, dst: 9, bytes: 1, ..Flow::default() };
        let flows = vec![at(0, 1), at(5, 2), at(8, 1), at(10, 1), at(11, 1)];
        let sums = |batch| {
            let merged = together(flows.clone(), Duration::from_ns(batch));
            merged.iter().map(|flow| (flow.src, flow.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(sums(10), [(1, 3), (2, 1), (1, 1)]);
        assert_eq!(sums(0).len(), 5);
    }
}
