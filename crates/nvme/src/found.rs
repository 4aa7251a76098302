//! Decodes Identify data and log pages for a host (Base 5.1.13, 5.1.12; NVM Command Set 4.1.5). The
//! data is not trusted: any field may have any value.

use wire::{Opening, read_opening};

use super::identify::IDENTIFY_BYTES;
use super::instance::Instance;
use super::layout::identify::{controller, descriptor, list, namespace};
use super::layout::log::ana;
use super::log::{AnaGroup, AnaState, text};

/// A controller, decoded from CNS 01h (Base 5.1.13.2.1). Non-printable characters of texts are
/// replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundController {
    /// CNTLID, CIU and CIRN; the last two are 0 if the controller reports none.
    pub instance: Instance,
    /// CNTRLTYPE: 1 for I/O, 2 for discovery, 3 for administration.
    pub kind: u8,
    /// VER: major, minor and tertiary version of the specification, from the third byte on.
    pub version: u32,
    /// SN.
    pub serial: String,
    /// MN.
    pub model: String,
    /// FR.
    pub firmware: String,
    /// SUBNQN.
    pub subsystem: String,
    /// CMIC.
    pub sharing: u8,
    /// MDTS: a command transfers the smallest page size shifted by this at most; 0 for no limit.
    pub transfer_shift: u8,
    /// OAES.
    pub events: u32,
    /// ONCS.
    pub optional_commands: u16,
    /// VWC.
    pub volatile_cache: u8,
    /// KAS: granularity of keep-alive times, in 100 ms; 0 if keep-alive is not supported.
    pub keep_alive_steps: u16,
    /// CQT: milliseconds in which commands of a lost host end; 0 if not reported.
    pub quiesce_ms: u16,
    /// MAXCMD.
    pub commands_max: u16,
    /// NN: the highest namespace identifier.
    pub namespaces_max: u32,
    /// Its ANA properties; `None` without ANA.
    pub ana: Option<FoundAna>,
    /// Bytes of data in a command capsule of an I/O queue, as IOCCSZ says.
    pub capsule_bytes: u32,
    /// CCRL: resets of other controllers that this one takes at a time; 0 for none.
    pub resets_max: u8,
}

/// The ANA properties of a controller (Base 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundAna {
    /// ANATT: seconds that a transition may take.
    pub transition_s: u8,
    /// ANACAP.
    pub capabilities: u8,
    /// NANAGRPID: number of ANA groups.
    pub group_count: u32,
}

/// A namespace, decoded from CNS 00h (NVM Command Set 4.1.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundNamespace {
    /// NSZE; 0 for an inactive namespace.
    pub block_count: u64,
    /// NCAP.
    pub capacity_blocks: u64,
    /// NUSE.
    pub used_blocks: u64,
    /// LBADS of the current format: the size of a block as a power of two.
    pub block_shift: u8,
    /// MS of that format: bytes of metadata beside each block.
    pub metadata_bytes: u16,
    /// NMIC: several controllers may use it.
    pub is_shared: bool,
    /// RESCAP.
    pub reservation_kinds: u8,
    /// DLFEAT.
    pub deallocation: u8,
    /// NSATTR: it is currently write-protected.
    pub is_write_protected: bool,
    /// ANAGRPID: its ANA group; 0 for none.
    pub ana_group: u32,
    /// NGUID and EUI64; zeros for none.
    pub ids: NamespaceIds,
    /// The opening of its medium; `None` if its target reports none.
    pub opening: Option<Opening>,
}

/// The unique identifiers of a namespace; zeros for those that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceIds {
    /// NGUID.
    pub nguid: [u8; 16],
    /// EUI64.
    pub eui64: [u8; 8],
    /// UUID.
    pub uuid: [u8; 16],
}

/// The decoded ANA log page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnaPage {
    /// CHGC.
    pub change_count: u64,
    /// Its complete group descriptors.
    pub groups: Vec<AnaGroup>,
}

/// Bytes of the header of the ANA log page, and of a group descriptor without its namespaces.
pub const ANA_HEADER_BYTES: usize = ana::HEADER_BYTES;
/// See [`ANA_HEADER_BYTES`].
pub const ANA_GROUP_BYTES: usize = ana::GROUP_BYTES;

impl FoundController {
    /// Decodes CNS 01h.
    #[must_use]
    pub fn read(data: &[u8; IDENTIFY_BYTES]) -> Self {
        use controller::*;
        let ana = (CMIC.get(data) & CMIC_ANA != 0).then(|| FoundAna {
            transition_s: ANATT.get(data),
            capabilities: ANACAP.get(data),
            group_count: NANAGRPID.get(data),
        });
        Self {
            instance: Instance {
                controller: CNTLID.get(data),
                uniquifier: CIU.get(data),
                random: CIRN.get(data),
            },
            kind: CNTRLTYPE.get(data),
            version: VER.get(data),
            serial: text(SN.get(data)),
            model: text(MN.get(data)),
            firmware: text(FR.get(data)),
            subsystem: text(SUBNQN.get(data)),
            sharing: CMIC.get(data),
            transfer_shift: MDTS.get(data),
            events: OAES.get(data),
            optional_commands: ONCS.get(data),
            volatile_cache: VWC.get(data),
            keep_alive_steps: KAS.get(data),
            quiesce_ms: CQT.get(data),
            commands_max: MAXCMD.get(data),
            namespaces_max: NN.get(data),
            ana,
            capsule_bytes: IOCCSZ
                .get(data)
                .saturating_sub(ENTRY_UNITS)
                .saturating_mul(CAPSULE_UNIT),
            resets_max: CCRL.get(data),
        }
    }

    /// ONCS: Dataset Management is supported.
    #[must_use]
    pub const fn has_dataset_management(&self) -> bool {
        self.optional_commands & controller::ONCS_DATASET_MANAGEMENT != 0
    }

    /// ONCS: Write Zeroes is supported.
    #[must_use]
    pub const fn has_write_zeroes(&self) -> bool {
        self.optional_commands & controller::ONCS_WRITE_ZEROES != 0
    }

    /// ONCS: reservations are supported.
    #[must_use]
    pub const fn has_reservations(&self) -> bool {
        self.optional_commands & controller::ONCS_RESERVATIONS != 0
    }

    /// VWC: writes may be lost at a power failure until they are flushed.
    #[must_use]
    pub const fn has_volatile_cache(&self) -> bool {
        self.volatile_cache & controller::VWC_PRESENT != 0
    }
}

impl FoundNamespace {
    /// Decodes CNS 00h.
    #[must_use]
    pub fn read(data: &[u8; IDENTIFY_BYTES]) -> Self {
        use namespace::*;
        let format = u16::from(FLBAS_LOW.get(data) | FLBAS_HIGH.get(data) << 4) * LBAF_BYTES;
        let (nguid, eui64) = (NGUID.get(data), EUI64.get(data));
        Self {
            block_count: NSZE.get(data),
            capacity_blocks: NCAP.get(data),
            used_blocks: NUSE.get(data),
            block_shift: LBADS.later(format).get(data),
            metadata_bytes: MS.later(format).get(data),
            is_shared: NMIC_SHARED.get(data),
            reservation_kinds: RESCAP.get(data),
            deallocation: DLFEAT.get(data),
            is_write_protected: NSATTR_PROTECTED.get(data),
            ana_group: ANAGRPID.get(data),
            ids: NamespaceIds { nguid, eui64, uuid: [0; 16] },
            opening: read_opening(&VS.get(data)),
        }
    }

    /// DLFEAT: deallocated blocks read as zeros.
    #[must_use]
    pub const fn reads_zeros(&self) -> bool {
        self.deallocation & namespace::DLFEAT_READ == namespace::DLFEAT_READS_ZEROS
    }

    /// DLFEAT: Write Zeroes may deallocate blocks.
    #[must_use]
    pub const fn zeroes_deallocate(&self) -> bool {
        self.deallocation & namespace::DLFEAT_WRITE_ZEROES != 0
    }
}

impl NamespaceIds {
    /// Adds the identifiers of CNS 03h (Base 5.1.13.2.3).
    #[must_use]
    pub fn with_descriptors(mut self, data: &[u8; IDENTIFY_BYTES]) -> Self {
        use descriptor::*;
        let mut rest = &data[..];
        while let Some((header, after)) = rest.split_at_checked(HEADER_BYTES) {
            let length = usize::from(NIDL.get(header));
            let Some((id, next)) = after.split_at_checked(length) else { break };
            match (NIDT.get(header), id) {
                // NIDL of 0 ends the list.
                (_, []) => break,
                (EUI64, id) if id.len() == 8 => self.eui64.copy_from_slice(id),
                (NGUID, id) if id.len() == 16 => self.nguid.copy_from_slice(id),
                (UUID, id) if id.len() == 16 => self.uuid.copy_from_slice(id),
                _ => {}
            }
            rest = next;
        }
        self
    }

    /// Whether the namespace has no identifiers.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Decodes CNS 02h: identifiers of namespaces, up to the first 0 (Base 5.1.13.2.2).
#[must_use]
pub fn read_namespace_list(data: &[u8; IDENTIFY_BYTES]) -> Vec<u32> {
    namespaces(data).take_while(|&nsid| nsid != 0).collect()
}

/// Decodes log page 0Ch, or the first part of it (Base 5.1.12.1.13); `None` without a whole header.
#[must_use]
pub fn read_ana(page: &[u8]) -> Option<AnaPage> {
    let (header, mut rest) = page.split_at_checked(ANA_HEADER_BYTES)?;
    let mut groups = Vec::new();
    for _ in 0..ana::NAGD.get(header) {
        let Some((group, after)) = rest.split_at_checked(ANA_GROUP_BYTES) else { break };
        let count = usize::try_from(ana::NNV.get(group)).unwrap_or(usize::MAX);
        let bytes = count.saturating_mul(list::ENTRY_BYTES);
        let Some((those, next)) = after.split_at_checked(bytes) else { break };
        groups.push(AnaGroup {
            id: ana::AGID.get(group),
            change_count: ana::GROUP_CHGC.get(group),
            state: AnaState::read(ana::ANAS.get(group)),
            namespaces: namespaces(those).collect(),
        });
        rest = next;
    }
    Some(AnaPage { change_count: ana::CHGC.get(header), groups })
}

// The identifiers of a namespace list.
fn namespaces(list: &[u8]) -> impl Iterator<Item = u32> {
    list.chunks_exact(list::ENTRY_BYTES).map(|entry| list::NSID.get(entry))
}

impl AnaState {
    // Decodes an ANA state; an unknown one counts as inaccessible.
    const fn read(number: u8) -> Self {
        match number {
            1 => Self::Optimized,
            2 => Self::NonOptimized,
            4 => Self::PersistentLoss,
            15 => Self::Change,
            _ => Self::Inaccessible,
        }
    }

    /// Its name, as in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimized => "optimized",
            Self::NonOptimized => "non-optimized",
            Self::Inaccessible => "inaccessible",
            Self::PersistentLoss => "persistent-loss",
            Self::Change => "change",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connect::Nqn;
    use super::super::identify::{
        ControllerData, ControllerKind, NamespaceData, write_namespace_list,
    };
    use super::super::log::write_ana;
    use super::*;

    #[test]
    fn a_controller_is_read_as_it_was_written() {
        let subsystem = Nqn::new("nqn.2026-11.example:disk").expect("it can be one");
        let written = ControllerData {
            kind: ControllerKind::Io,
            instance: Instance { controller: 7, uniquifier: 9, random: 1 << 63 },
            subsystem: &subsystem,
            serial: "S1",
            model: "afar",
            firmware: "0.1",
            transfer_shift: 5,
            commands_max: 128,
            namespaces_max: 1024,
            capsule_data_bytes: 8192,
            has_volatile_cache: true,
            has_reservations: false,
            event_requests: 3,
            ana_groups: 2,
            quiesce_ms: 2000,
            resets_max: 4,
        };
        let found = FoundController::read(&written.write());
        assert_eq!((found.instance, found.kind, found.transfer_shift), (written.instance, 1, 5));
        assert_eq!((found.quiesce_ms, found.resets_max), (2000, 4));
        assert_eq!((&*found.serial, &*found.model, &*found.firmware), ("S1", "afar", "0.1"));
        assert_eq!(found.subsystem, subsystem.as_str());
        assert_eq!((found.commands_max, found.namespaces_max), (128, 1024));
        assert_eq!((found.capsule_bytes, found.version >> 16), (8192, 2));
        assert!(found.has_dataset_management() && found.has_write_zeroes());
        assert!(found.has_volatile_cache());
        assert_eq!(found.ana.map(|ana| ana.group_count), Some(2));
        let found = FoundController::read(&ControllerData { ana_groups: 0, ..written }.write());
        assert_eq!(found.ana, None);
    }

    const NAMESPACE: NamespaceData = NamespaceData {
        block_count: 1 << 40,
        used_blocks: None,
        block_shift: 12,
        nguid: [3; 16],
        uuid: [5; 16],
        atomic_blocks: 0,
        optimal_write_blocks: 0,
        discards_to_zero: true,
        reservation_kinds: 0,
        ana_group: 9,
        is_shared: true,
        is_read_only: false,
        opening: [8; 16],
    };

    #[test]
    fn a_namespace_is_read_as_it_was_written() {
        let found = FoundNamespace::read(&NAMESPACE.write());
        assert_eq!((found.block_count, found.block_shift, found.ana_group), (1 << 40, 12, 9));
        assert_eq!((found.used_blocks, found.metadata_bytes), (1 << 40, 0));
        assert!(found.is_shared && found.reads_zeros() && found.zeroes_deallocate());
        assert_eq!(found.ids, NamespaceIds { nguid: [3; 16], ..NamespaceIds::default() });
        assert_eq!(found.opening, Some([8; 16]));
        let ids = found.ids.with_descriptors(&NAMESPACE.write_descriptors());
        assert_eq!(ids, NamespaceIds { nguid: [3; 16], uuid: [5; 16], eui64: [0; 8] });
        assert!(!ids.is_unknown() && NamespaceIds::default().is_unknown());
    }

    #[test]
    fn a_list_ends_with_its_first_zero() {
        assert_eq!(read_namespace_list(&write_namespace_list([1, 7, 9], 1)), [7, 9]);
        assert_eq!(read_namespace_list(&write_namespace_list(1..2000, 0)).len(), 1024);
    }

    #[test]
    fn access_states_are_read_as_they_were_written() {
        let group = |id, state, namespaces: &[u32]| AnaGroup {
            id,
            change_count: 5,
            state,
            namespaces: namespaces.to_vec(),
        };
        let groups = [
            group(1, AnaState::Optimized, &[1, 7]),
            group(2, AnaState::NonOptimized, &[]),
            group(3, AnaState::Change, &[2]),
            group(4, AnaState::PersistentLoss, &[3]),
        ];
        let bytes = write_ana(&groups, 9, false);
        let page = read_ana(&bytes).expect("it has a header");
        assert_eq!((page.change_count, &page.groups[..]), (9, &groups[..]));
        // As much as has come.
        assert_eq!(read_ana(&bytes[..bytes.len() - 1]).expect("a header").groups, groups[..3]);
        assert_eq!(read_ana(&bytes[..15]), None);
    }

    // Any bytes: what they say is bounded by how many there are.
    #[test]
    fn any_bytes_are_something() {
        let mut state = 7_u64;
        let mut data = [0; IDENTIFY_BYTES];
        for _ in 0..500 {
            for byte in &mut data {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = state.to_le_bytes()[7];
            }
            let controller = FoundController::read(&data);
            let texts = [controller.serial, controller.model, controller.firmware];
            assert!(!texts.iter().any(|text| text.chars().any(char::is_control)), "{texts:?}");
            let _any = FoundNamespace::read(&data).ids.with_descriptors(&data);
            assert!(read_namespace_list(&data).len() <= 1024);
            let page = read_ana(&data).expect("it has a header");
            assert!(page.groups.len() <= data.len() / ANA_GROUP_BYTES);
        }
    }
}
