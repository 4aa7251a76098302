//! Log pages (Base 5.1.12). A page is built whole and the requested part of it sent: its size
//! depends on the controller's data, never on the host's request.

use std::net::SocketAddr;

use wire::Le;

use super::connect::Nqn;
use super::layout::identify::list;
use super::layout::log::{ana, discovery, effects, firmware, health};

/// Bytes of the header of the discovery log page, and of each of its entries.
pub const DISCOVERY_BYTES: usize = discovery::BYTES;

/// Statistics and health of a controller, for the SMART / health page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Health {
    /// Bytes that hosts have read.
    pub bytes_read: u64,
    /// Bytes that hosts have written.
    pub bytes_written: u64,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Power-on hours.
    pub hours: u64,
    /// Whether the media are read-only.
    pub is_read_only: bool,
    /// Whether written data may have been lost.
    pub is_unreliable: bool,
}

/// The ANA state of a group of namespaces over one controller (Base 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AnaState {
    /// Accessible with the best performance.
    Optimized = 1,
    /// Accessible; other controllers may perform better.
    NonOptimized = 2,
    /// Not accessible now.
    Inaccessible = 3,
    /// Not accessible any more.
    PersistentLoss = 4,
    /// In transition between states.
    Change = 15,
}

/// An ANA group, for the ANA log page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnaGroup {
    /// Its number, from 1.
    pub id: u32,
    /// How often its state has changed.
    pub change_count: u64,
    /// Its state.
    pub state: AnaState,
    /// Its namespaces, in order.
    pub namespaces: Vec<u32>,
}

/// An entry of the discovery log page, to be encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryEntry {
    /// The subsystem.
    pub subsystem: Nqn,
    /// Its address.
    pub address: SocketAddr,
    /// Number of the port, the same for all subsystems at an address.
    pub port: u16,
    /// Whether it is this discovery subsystem itself.
    pub is_this_discovery: bool,
}

/// The decoded discovery log page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryPage {
    /// GENCTR: changes with the page.
    pub generation: u64,
    /// NUMREC: number of records of the whole page, even if only a part was read.
    pub record_count: u64,
    /// The records that were read.
    pub entries: Vec<FoundEntry>,
}

/// A decoded record of the discovery log page, for any transport. Non-printable characters of texts
/// are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEntry {
    /// TRTYPE.
    pub transport: u8,
    /// SUBTYPE.
    pub kind: u8,
    /// PORTID.
    pub port: u16,
    /// SUBNQN.
    pub subsystem: String,
    /// TRADDR.
    pub address: String,
    /// TRSVCID; for TCP, the port number.
    pub service: String,
}

/// The scope of a command or a feature (Base 5.1.12.1.6, 5.1.12.1.18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A namespace.
    Namespace,
    /// The controller.
    Controller,
}

impl Scope {
    // Its bit in an effects dword.
    const fn bit(self) -> u32 {
        match self {
            Self::Namespace => effects::OF_NAMESPACE,
            Self::Controller => effects::OF_CONTROLLER,
        }
    }
}

/// 00h (Base 5.1.12.1.1): supported log pages.
#[must_use]
pub fn write_supported(pages: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 1024];
    pages.iter().for_each(|&number| {
        effects::LID.nth(number.into()).put(&mut page, effects::SUPPORTED);
    });
    page
}

/// 12h (Base 5.1.12.1.18): supported features and their scopes.
#[must_use]
pub fn write_features(features: impl Iterator<Item = (u8, Scope)>) -> Vec<u8> {
    let mut page = vec![0; 1024];
    features.for_each(|(id, scope)| {
        effects::FID.nth(id.into()).put(&mut page, effects::SUPPORTED | scope.bit());
    });
    page
}

/// 01h: error information, always empty.
#[must_use]
pub fn write_errors() -> Vec<u8> {
    vec![0; 64]
}

/// 02h (Base 5.1.12.1.3): SMART / health information.
#[must_use]
pub fn write_health(figures: &Health) -> Vec<u8> {
    use health::*;
    let mut page = vec![0; 512];
    CW_NDR.put(&mut page, figures.is_unreliable);
    CW_AMRO.put(&mut page, figures.is_read_only);
    // In kelvin: 27 °C, since no temperature is known. All spare blocks are available.
    CTEMP.put(&mut page, 300);
    AVSP.put(&mut page, 100);
    AVSPT.put(&mut page, 10);
    // Rounded up.
    let units = |bytes: u64| bytes.div_ceil(UNIT_BYTES);
    let counts: [(Le<u128>, u64); 5] = [
        (DUR, units(figures.bytes_read)),
        (DUW, units(figures.bytes_written)),
        (HRC, figures.reads),
        (HWC, figures.writes),
        (POH, figures.hours),
    ];
    counts.into_iter().for_each(|(field, count)| field.put(&mut page, count.into()));
    page
}

/// 03h (Base 5.1.12.1.4): one active firmware slot with this revision, cut to 8 characters.
#[must_use]
pub fn write_firmware(revision: &str) -> Vec<u8> {
    let mut page = vec![0; 512];
    firmware::AFI.put(&mut page, 1);
    firmware::FRS1.put(&mut page, revision.bytes());
    page
}

/// 04h (Base 5.1.12.1.5): changed namespaces, in order; only FFFFFFFFh if there are more than fit.
#[must_use]
pub fn write_changed_namespaces(changed: &[u32]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    let all = [u32::MAX];
    let told = if changed.len() > usize::from(list::ENTRIES) { &all } else { changed };
    for (index, nsid) in (0..).zip(told) {
        list::NSID.nth(index).put(&mut page, *nsid);
    }
    page
}

/// 05h (Base 5.1.12.1.6): supported opcodes, and which of them (`changing`) change blocks.
#[must_use]
pub fn write_effects(admin: &[u8], io: &[u8], changing: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    for &opcode in admin {
        let word = effects::SUPPORTED | Scope::Controller.bit();
        effects::ACS.nth(opcode.into()).put(&mut page, word);
    }
    for &opcode in io {
        let changes = if changing.contains(&opcode) { effects::CHANGES_BLOCKS } else { 0 };
        let word = effects::SUPPORTED | changes | Scope::Namespace.bit();
        effects::IOCS.nth(opcode.into()).put(&mut page, word);
    }
    page
}

/// 0Ch (Base 5.1.12.1.13): ANA groups; without their namespaces if `groups_only` (RGO).
#[must_use]
pub fn write_ana(groups: &[AnaGroup], change_count: u64, groups_only: bool) -> Vec<u8> {
    let mut page = vec![0; ana::HEADER_BYTES];
    ana::CHGC.put(&mut page, change_count);
    ana::NAGD.put(&mut page, u16::try_from(groups.len()).unwrap_or(u16::MAX));
    for group in groups {
        let namespaces = if groups_only { &[][..] } else { &group.namespaces };
        let mut descriptor = [0; ana::GROUP_BYTES];
        ana::AGID.put(&mut descriptor, group.id);
        ana::NNV.put(&mut descriptor, u32::try_from(namespaces.len()).unwrap_or(u32::MAX));
        ana::GROUP_CHGC.put(&mut descriptor, group.change_count);
        ana::ANAS.put(&mut descriptor, group.state as u8);
        page.extend_from_slice(&descriptor);
        for nsid in namespaces {
            let mut entry = [0; list::ENTRY_BYTES];
            list::NSID.put(&mut entry, *nsid);
            page.extend_from_slice(&entry);
        }
    }
    page
}

/// 70h (Base 5.1.12.3.1): discovery entries, with this generation.
#[must_use]
pub fn write_discovery(generation: u64, entries: &[DiscoveryEntry]) -> Vec<u8> {
    use discovery::*;
    let mut page = vec![0; BYTES * (entries.len() + 1)];
    GENCTR.put(&mut page, generation);
    NUMREC.put(&mut page, entries.len() as u64);
    for (entry, place) in entries.iter().zip(page.chunks_mut(BYTES).skip(1)) {
        TRTYPE.put(place, TCP);
        ADRFAM.put(place, if entry.address.is_ipv4() { 1 } else { 2 });
        SUBTYPE.put(place, if entry.is_this_discovery { THIS_DISCOVERY } else { NVM });
        // TREQ: no secure channel is needed. CNTLID: any controller. ASQSZ: 32 entries.
        TREQ.put(place, 2);
        PORTID.put(place, entry.port);
        CNTLID.put(place, 0xffff);
        ASQSZ.put(place, 32);
        // A host may stay connected to a discovery controller (EPCSD).
        EFLAGS.put(place, u16::from(entry.is_this_discovery) << 1);
        TRSVCID.put(place, entry.address.port().to_string().bytes());
        SUBNQN.put(place, entry.subsystem.as_str().bytes());
        TRADDR.put(place, entry.address.ip().to_string().bytes());
    }
    page
}

/// Decodes 70h, or the first part of it: all complete entries up to NUMREC; `None` without a whole
/// header.
#[must_use]
pub fn read_discovery(page: &[u8]) -> Option<DiscoveryPage> {
    use discovery::*;
    let (header, rest) = page.split_at_checked(BYTES)?;
    let (generation, record_count) = (GENCTR.get(header), NUMREC.get(header));
    let counted = usize::try_from(record_count).unwrap_or(usize::MAX);
    let places = rest.chunks_exact(BYTES).take(counted);
    let entries = places.map(|place| FoundEntry {
        transport: TRTYPE.get(place),
        kind: SUBTYPE.get(place),
        port: PORTID.get(place),
        subsystem: text(SUBNQN.get(place)),
        address: text(TRADDR.get(place)),
        service: text(TRSVCID.get(place)),
    });
    Some(DiscoveryPage { generation, record_count, entries: entries.collect() })
}

/// The text of a field that ends with NUL or spaces, with control characters replaced.
pub(super) fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    let text = String::from_utf8_lossy(&field[..end]);
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.trim_end_matches(' ').chars().map(printable).collect()
}

impl FoundEntry {
    /// The name of its transport (TRTYPE; Base 5.1.12.3.1).
    #[must_use]
    pub const fn transport_name(&self) -> &'static str {
        match self.transport {
            discovery::RDMA => "rdma",
            discovery::FC => "fc",
            discovery::TCP => "tcp",
            discovery::LOOP => "loop",
            _ => "unknown",
        }
    }

    /// Whether it is the discovery subsystem that was asked itself.
    #[must_use]
    pub const fn is_this_discovery(&self) -> bool {
        self.kind == discovery::THIS_DISCOVERY
    }

    /// The name of its SUBTYPE.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            discovery::OTHER_DISCOVERY => "another discovery subsystem",
            discovery::NVM => "nvm subsystem",
            discovery::THIS_DISCOVERY => "this discovery subsystem",
            _ => "unknown",
        }
    }
}

/// `length` bytes of a page from `offset` on, with zeros behind its end; `None` if `offset` is
/// behind the end. The caller bounds `length` by what a command may transfer.
#[must_use]
pub fn part(page: &[u8], offset: u64, length: usize) -> Option<Vec<u8>> {
    let offset = usize::try_from(offset).ok()?;
    let rest = page.get(offset..)?;
    let mut part = rest[..length.min(rest.len())].to_vec();
    part.resize(length, 0);
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_counts_in_its_own_units() {
        let health = Health { bytes_read: 512_001, reads: 9, hours: 2, ..Health::default() };
        let page = write_health(&health);
        assert_eq!((page[32], page[48], page[64], page[128]), (2, 0, 9, 2));
        assert_eq!((page[0], page[3]), (0, 100));
        assert_eq!(write_health(&Health { is_read_only: true, ..health })[0], 8);
        assert_eq!(write_health(&Health { is_unreliable: true, ..health })[0], 4);
    }

    #[test]
    fn changes_that_do_not_fit_are_all() {
        let page = write_changed_namespaces(&[1, 0x0203]);
        assert_eq!(page[..12], [1, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0]);
        let many: Vec<u32> = (1..=1025).collect();
        assert_eq!(write_changed_namespaces(&many)[..8], [255, 255, 255, 255, 0, 0, 0, 0]);
        assert_eq!(write_changed_namespaces(&many[1..])[4092..], 1025_u32.to_le_bytes());
    }

    #[test]
    fn effects_are_by_opcode() {
        let page = write_effects(&[0x06], &[0x01, 0x02], &[0x01]);
        assert_eq!((page[0x06 * 4], page[1024 + 4], page[1024 + 8]), (1, 3, 1));
        assert_eq!((page[0x06 * 4 + 2], page[1024 + 6], page[1024 + 10]), (0x20, 0x10, 0x10));
        assert_eq!(page.iter().filter(|byte| **byte != 0).count(), 6);
    }

    #[test]
    fn groups_follow_one_another() {
        let group = |id, state, namespaces: &[u32]| AnaGroup {
            id,
            change_count: 5,
            state,
            namespaces: namespaces.to_vec(),
        };
        let groups =
            [group(1, AnaState::Optimized, &[1, 7]), group(2, AnaState::Inaccessible, &[])];
        let page = write_ana(&groups, 9, false);
        assert_eq!((page.len(), page[0], page[8]), (16 + 32 + 8 + 32, 9, 2));
        assert_eq!((page[16], page[20], page[24], page[32]), (1, 2, 5, 1));
        assert_eq!((page[48], page[52], page[56], page[72]), (1, 7, 2, 3));
        assert_eq!(write_ana(&groups, 9, true).len(), 16 + 32 + 32);
    }

    #[test]
    fn discovery_says_where_things_are() {
        let entry = |address: &str, is_this_discovery| DiscoveryEntry {
            subsystem: Nqn::new("nqn.x").expect("it can be one"),
            address: address.parse().expect("it is one"),
            port: 1,
            is_this_discovery,
        };
        let page = write_discovery(3, &[entry("10.0.2.2:4420", false), entry("[::1]:8009", true)]);
        assert_eq!((page.len(), page[0], page[8]), (3 * 1024, 3, 2));
        let [first, second] = [&page[1024..2048], &page[2048..]];
        assert_eq!((&first[..3], &second[..3]), (&[3, 1, 2][..], &[3, 2, 3][..]));
        assert_eq!((first[10], second[10]), (0, 2), "EPCSD");
        assert_eq!((&first[6..8], &first[32..37]), (&[255, 255][..], &b"4420 "[..]));
        assert_eq!((&first[256..262], &first[512..521]), (&b"nqn.x\0"[..], &b"10.0.2.2 "[..]));
        assert_eq!((&second[32..37], &second[512..516]), (&b"8009 "[..], &b"::1 "[..]));
    }

    #[test]
    fn discovery_is_read_as_it_was_written() {
        let entries: Vec<DiscoveryEntry> = (0..5)
            .map(|number| DiscoveryEntry {
                subsystem: Nqn::new(&format!("nqn.2026-11.x:{number}")).expect("it can be one"),
                address: SocketAddr::from(([10, 0, 0, number], 4420 + u16::from(number))),
                port: u16::from(number),
                is_this_discovery: number == 4,
            })
            .collect();
        let bytes = write_discovery(9, &entries);
        let page = read_discovery(&bytes).expect("it has a header");
        assert_eq!((page.generation, page.record_count, page.entries.len()), (9, 5, 5));
        for (written, found) in entries.iter().zip(&page.entries) {
            assert_eq!(found.subsystem, written.subsystem.as_str());
            assert_eq!(found.address, written.address.ip().to_string());
            assert_eq!(found.service, written.address.port().to_string());
            assert_eq!((found.port, found.transport_name()), (written.port, "tcp"));
            assert_eq!(found.is_this_discovery(), written.is_this_discovery);
        }
        // As much as has come.
        let part = read_discovery(&bytes[..3 * 1024 - 1]).expect("it has a header");
        assert_eq!((part.record_count, part.entries.len()), (5, 1));
        assert_eq!(read_discovery(&bytes[..1023]), None);
    }

    #[test]
    fn any_bytes_are_a_page_with_printable_text() {
        let mut state = 7_u64;
        let mut bytes = vec![0; 4 * 1024 + 500];
        for round in 0..200 {
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = state.to_le_bytes()[7];
            }
            let page = read_discovery(&bytes).expect("it has a header");
            assert!(page.entries.len() <= 3, "{round}");
            for entry in &page.entries {
                let texts = [&entry.subsystem, &entry.address, &entry.service];
                assert!(!texts.iter().any(|text| text.chars().any(char::is_control)), "{entry:?}");
            }
        }
        bytes[8..16].fill(0);
        assert!(read_discovery(&bytes).expect("it has a header").entries.is_empty());
    }

    #[test]
    fn parts_end_with_zeros_and_begin_within() {
        let page = [1, 2, 3];
        assert_eq!(part(&page, 1, 4), Some(vec![2, 3, 0, 0]));
        assert_eq!(part(&page, 3, 2), Some(vec![0, 0]));
        assert_eq!((part(&page, 4, 1), part(&page, u64::MAX, 1)), (None, None));
    }
}
