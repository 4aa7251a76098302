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

use std::time::Duration;

use etherparse::{EtherType, Ethernet2Header, IpEcn, Ipv4Header, UdpHeader, ip_number};
use netsim::{Fabric, Fate, Flow, Hop, Node, PacketKind, Trace, TracedPacket};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapResult};

/// Bytes that are captured of each packet.
const CAPTURED: u32 = ETHERNET + 20 + 8 + 12;
const ETHERNET: u32 = 14;
const PS_PER_NS: u64 = 1000;
/// The resolution of time: a second has ten to this power.
const NANOSECONDS: u8 = 9;

/// Values of a packet's flags.
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

/// The pcapng file, with the first `most` packets that were sent.
pub(super) fn file(
    fabric: &Fabric,
    flows: &[Flow],
    trace: &Trace,
    most: u32,
) -> PcapResult<Vec<u8>> {
    let mut records = records(fabric, trace, most);
    // The sort is stable: of equal times, the packet that ended first stays first.
    records.sort_by_key(|record| record.at_ns);
    let mut hosts: Vec<u32> = records.iter().map(|record| record.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let meaning = match omitted(trace, most) {
        0 => MEANING.to_owned(),
        count => format!("{MEANING} The {count} packets that were sent last are left out."),
    };
    let mut writer = PcapNgWriter::with_section_header(Vec::new(), section(meaning))?;
    for host in &hosts {
        writer.write_pcapng_block(interface(*host))?;
    }
    for record in &records {
        let packet = &trace.packets[record.hop.packet as usize];
        let place = hosts.binary_search(&record.host).unwrap_or(0);
        let bytes = headers(packet, &flows[packet.flow as usize], &record.hop);
        writer.write_pcapng_block(self::packet(place, record, bytes))?;
    }
    Ok(writer.into_inner())
}

/// How many packets the capture leaves out because it has the first `most` only.
pub(super) fn omitted(trace: &Trace, most: u32) -> u64 {
    let all = trace.packets.len() as u64 + trace.omitted_count;
    all.saturating_sub(most.into())
}

// A record for each time that one of the first `most` packets left a host or reached one. The one
// that leaves has the place of its later drop as a comment.
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

/// The headers of a captured packet, from Ethernet to the 12 B; see the module's description.
fn headers(packet: &TracedPacket, flow: &Flow, hop: &Hop) -> Vec<u8> {
    let TracedPacket { flow: number, priority, .. } = *packet;
    let is_returned = hop.kind == PacketKind::Returned;
    let (src, dst) = if is_returned { (packet.dst, packet.src) } else { (packet.src, packet.dst) };
    let at_source = 49_152 + low_bits(number);
    let at_destination = 32_768 + low_bits(number >> 14);
    let is_back = src == flow.dst;
    let ports = if is_back { [at_destination, at_source] } else { [at_source, at_destination] };
    let [source_port, destination_port] = ports;
    let ethernet =
        Ethernet2Header { source: mac(src), destination: mac(dst), ether_type: EtherType::IPV4 };
    let length = u16::try_from(hop.bytes).unwrap_or(u16::MAX);
    let [_, _, high, low] = packet.number.to_be_bytes();
    let mut ip = Ipv4Header {
        ecn: if hop.is_marked { IpEcn::CongestionExperienced } else { IpEcn::NotEct },
        total_len: length,
        identification: u16::from_be_bytes([high, low]),
        dont_fragment: true,
        time_to_live: 64,
        protocol: ip_number::UDP,
        source: address(src),
        destination: address(dst),
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    // UDP over IPv4 may do without a checksum.
    let length = length.saturating_sub(Ipv4Header::MIN_LEN_U16);
    let udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
    let mut bytes = Vec::with_capacity(CAPTURED as usize);
    bytes.extend(ethernet.to_bytes());
    bytes.extend(ip.to_bytes());
    bytes.extend(udp.to_bytes());
    let priority = u8::try_from(priority).unwrap_or(u8::MAX);
    bytes.extend([1, kind(hop.kind), hop.is_marked.into(), priority]);
    bytes.extend(number.to_be_bytes());
    bytes.extend(packet.number.to_be_bytes());
    bytes
}

/// The Ethernet address of a host.
fn mac(host: u32) -> [u8; 6] {
    let [_, b, c, d] = host.to_be_bytes();
    [2, 0, 0, b, c, d]
}

/// The IPv4 address of a host.
fn address(host: u32) -> [u8; 4] {
    (0x0A00_0001 + (host & 0x00FF_FFFF)).to_be_bytes()
}

/// The low 14 bits.
fn low_bits(number: u32) -> u16 {
    u16::try_from(number & 0x3FFF).unwrap_or(0)
}

/// The number that the 12 B have for a kind of packet.
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

/// The block that begins the file, with `meaning` as its comment.
fn section(meaning: String) -> SectionHeaderBlock<'static> {
    let application = concat!("afar ", env!("CARGO_PKG_VERSION"));
    // The section is of unspecified length.
    SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![
            SectionHeaderOption::Comment(meaning.into()),
            SectionHeaderOption::UserApplication(application.into()),
        ],
        ..SectionHeaderBlock::default()
    }
}

/// The block that describes a host as an interface.
fn interface(host: u32) -> InterfaceDescriptionBlock<'static> {
    InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: CAPTURED,
        options: vec![
            InterfaceDescriptionOption::IfName(format!("host {host}").into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    }
}

/// The block of one captured packet.
fn packet(interface: usize, record: &Record, bytes: Vec<u8>) -> EnhancedPacketBlock<'_> {
    let comment = record.comment.as_deref();
    let comment = comment.map(|comment| EnhancedPacketOption::Comment(comment.into()));
    EnhancedPacketBlock {
        interface_id: u32::try_from(interface).unwrap_or(u32::MAX),
        // In the file it is nanoseconds, whatever an interface says.
        timestamp: Duration::from_nanos(record.at_ns),
        original_len: ETHERNET + record.hop.bytes,
        data: bytes.into(),
        options: comment
            .into_iter()
            .chain([EnhancedPacketOption::Flags(record.direction)])
            .collect(),
    }
}
