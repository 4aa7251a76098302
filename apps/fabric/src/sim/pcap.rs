//! Packets of a run as a capture that Wireshark opens (pcapng, draft-ietf-opsawg-pcapng).
//!
//! Every host is an interface. A packet is captured when its first bit leaves its host, outbound,
//! and when all of it has reached a host, inbound; one that a switch drops says so in a comment.
//!
//! A simulated packet has no bytes, so its headers are made up and its payload is left out of the
//! capture. The 40 B of header that a packet has in the simulation are IPv4, UDP and 12 B that
//! say what it is; Ethernet's 14 B come on top and take no time.
//!
//! ```text
//! Ethernet   02:00:00 and three bytes of the host's number
//! IPv4       10.0.0.1 and the host's number; ECN "congestion experienced" if marked
//! UDP        the flow's number, in the 14 low bits of 49152 + … at its source
//!            and 32768 + … at its destination: a conversation for each flow
//! 12 B       1, kind, marked, priority (at most 255); flow, number in its flow: 32 bits each
//! ```

use netsim::{Fabric, Fate, Flow, Hop, Node, PacketKind, Trace, TracedPacket};

/// What is captured of each packet.
const CAPTURED: u32 = ETHERNET + 20 + 8 + 12;
const ETHERNET: u32 = 14;
const PS_PER_NS: u64 = 1000;

/// Types of blocks and options.
const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const PACKET_FLAGS: u16 = 2;
const USER_APPLICATION: u16 = 4;
const TIME_RESOLUTION: u16 = 9;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// What the comment of the whole file says.
const MEANING: &str = "Simulated by afar sim; time is the network's, from 0. Headers are made up: \
    host H is 10.0.0.1 + H, flow F has the ports 49152 + F mod 16384 at its source and 32768 + \
    F / 16384 mod 16384 at its destination. UDP carries 12 bytes: version 1, kind (0 data, 1 ack, \
    2 request, 3 grant, 4 header of trimmed data, 5 nack, 6 returned header, 7 read), 1 if marked, \
    priority; flow; number in the flow (two words of 32 bits, highest byte first). Payload is not \
    captured; lengths count it.";

/// A packet at a host.
struct Record {
    at_ns: u64,
    host: u32,
    direction: u32,
    hop: Hop,
    comment: Option<String>,
}

/// The file, with the first `most` packets.
pub(super) fn file(fabric: &Fabric, flows: &[Flow], trace: &Trace, most: u32) -> Vec<u8> {
    let mut records = records(fabric, trace, most);
    // Of equal times those first that ended first.
    records.sort_by_key(|record| record.at_ns);
    let mut hosts: Vec<u32> = records.iter().map(|record| record.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut file = Vec::new();
    let meaning = match omitted(trace, most) {
        0 => MEANING.to_owned(),
        count => format!("{MEANING} The {count} packets that were sent last are left out."),
    };
    section(&mut file, &meaning);
    for host in &hosts {
        interface(&mut file, *host);
    }
    for record in &records {
        let packet = &trace.packets[record.hop.packet as usize];
        let place = hosts.binary_search(&record.host).unwrap_or(0);
        let bytes = headers(packet, &flows[packet.flow as usize], &record.hop);
        self::packet(&mut file, place, record, &bytes);
    }
    file
}

/// Packets that are left out.
pub(super) fn omitted(trace: &Trace, most: u32) -> u64 {
    let all = trace.packets.len() as u64 + trace.omitted_count;
    all.saturating_sub(most.into())
}

fn records(fabric: &Fabric, trace: &Trace, most: u32) -> Vec<Record> {
    let links = fabric.topology.links();
    let mut dropped = vec![None; trace.packets.len()];
    for hop in trace.hops.iter().filter(|hop| matches!(hop.fate, Fate::Dropped { .. })) {
        dropped[hop.packet as usize] = Some(hop.link as usize);
    }
    let mut records = Vec::new();
    for &hop in trace.hops.iter().filter(|hop| hop.packet < most) {
        let Fate::Crossed { left, arrived } = hop.fate else { continue };
        let link = &links[hop.link as usize];
        if let Node::Host(host) = link.from {
            let comment = dropped[hop.packet as usize]
                .map(|link| format!("dropped at {}", super::link_name::link_name(fabric, link)));
            let at_ns = left.as_ps() / PS_PER_NS;
            records.push(Record { at_ns, host, direction: OUTBOUND, hop, comment });
        }
        if let Node::Host(host) = link.to {
            let at_ns = arrived.as_ps() / PS_PER_NS;
            records.push(Record { at_ns, host, direction: INBOUND, hop, comment: None });
        }
    }
    records
}

/// From Ethernet to the 12 B; see the module's description.
fn headers(packet: &TracedPacket, flow: &Flow, hop: &Hop) -> Vec<u8> {
    let TracedPacket { flow: number, priority, .. } = *packet;
    let is_returned = hop.kind == PacketKind::Returned;
    let (src, dst) = if is_returned { (packet.dst, packet.src) } else { (packet.src, packet.dst) };
    let at_source = 49_152 + low_bits(number);
    let at_destination = 32_768 + low_bits(number >> 14);
    let is_back = src == flow.dst;
    let ports = if is_back { [at_destination, at_source] } else { [at_source, at_destination] };
    let mut bytes = Vec::with_capacity(CAPTURED as usize);
    for host in [dst, src] {
        let [_, b, c, d] = host.to_be_bytes();
        bytes.extend([2, 0, 0, b, c, d]);
    }
    bytes.extend([8, 0]);
    let length = u16::try_from(hop.bytes).unwrap_or(u16::MAX);
    let ecn = if hop.is_marked { 3 } else { 0 };
    let [_, _, high, low] = packet.number.to_be_bytes();
    let mut ip = vec![0x45, ecn];
    ip.extend(length.to_be_bytes());
    ip.extend([high, low, 0x40, 0, 64, 17, 0, 0]);
    for host in [src, dst] {
        ip.extend((0x0A00_0001 + (host & 0x00FF_FFFF)).to_be_bytes());
    }
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(ip);
    for port in ports {
        bytes.extend(port.to_be_bytes());
    }
    bytes.extend(length.saturating_sub(20).to_be_bytes());
    // No sum: UDP over IPv4 may go without.
    bytes.extend([0, 0]);
    let priority = u8::try_from(priority).unwrap_or(u8::MAX);
    bytes.extend([1, kind(hop.kind), hop.is_marked.into(), priority]);
    bytes.extend(number.to_be_bytes());
    bytes.extend(packet.number.to_be_bytes());
    bytes
}

fn low_bits(number: u32) -> u16 {
    u16::try_from(number & 0x3FFF).unwrap_or(0)
}

const fn kind(kind: PacketKind) -> u8 {
    match kind {
        PacketKind::Data => 0,
        PacketKind::Ack => 1,
        PacketKind::Request => 2,
        PacketKind::Grant => 3,
        PacketKind::Header => 4,
        PacketKind::Nack => 5,
        PacketKind::Returned => 6,
        PacketKind::Read => 7,
    }
}

/// Of a header of IPv4 whose own sum is 0 (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(u16::MAX)
}

fn section(file: &mut Vec<u8>, meaning: &str) {
    let mut body = Vec::new();
    body.extend(0x1A2B_3C4D_u32.to_le_bytes());
    body.extend([1, 0, 0, 0]);
    // The length of the section is not said.
    body.extend(u64::MAX.to_le_bytes());
    option(&mut body, COMMENT, meaning.as_bytes());
    let application = concat!("afar ", env!("CARGO_PKG_VERSION"));
    option(&mut body, USER_APPLICATION, application.as_bytes());
    option(&mut body, 0, &[]);
    block(file, SECTION, &body);
}

fn interface(file: &mut Vec<u8>, host: u32) {
    let mut body = Vec::new();
    // Ethernet.
    body.extend([1, 0, 0, 0]);
    body.extend(CAPTURED.to_le_bytes());
    option(&mut body, NAME, format!("host {host}").as_bytes());
    // Nanoseconds.
    option(&mut body, TIME_RESOLUTION, &[9]);
    option(&mut body, 0, &[]);
    block(file, INTERFACE, &body);
}

fn packet(file: &mut Vec<u8>, interface: usize, record: &Record, bytes: &[u8]) {
    let mut body = Vec::new();
    body.extend(u32::try_from(interface).unwrap_or(u32::MAX).to_le_bytes());
    let at = record.at_ns.to_le_bytes();
    body.extend([&at[4..], &at[..4]].concat());
    body.extend(CAPTURED.to_le_bytes());
    body.extend((ETHERNET + record.hop.bytes).to_le_bytes());
    padded(&mut body, bytes);
    if let Some(comment) = &record.comment {
        option(&mut body, COMMENT, comment.as_bytes());
    }
    option(&mut body, PACKET_FLAGS, &record.direction.to_le_bytes());
    option(&mut body, 0, &[]);
    block(file, PACKET, &body);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    padded(body, value);
}

/// To whole words of 32 bits.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = u32::try_from(body.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
    file.extend(kind.to_le_bytes());
    file.extend(length);
    file.extend(body);
    file.extend(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071 §3, and a header of which the sum is known.
    #[test]
    fn sums_are_those_of_the_internet() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(checksum(&header), 0xb861);
    }
}
