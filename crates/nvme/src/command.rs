//! Decodes submission queue entries (Base 4.1.1; NVM Command Set 3); completion queue entries (Base
//! 4.2.1).

use super::instance::Instance;
use super::layout::entry::submission::{
    self, FABRICS, IN_CAPSULE, PSDT_SGL, PSDT_SGL_METADATA, TRANSPORT, UNSET,
};
use super::layout::entry::{admin as of_admin, completion, fabrics as of_fabrics, io as of_io};
use super::layout::registers::CC;
use super::status::Status;

/// The kind of a queue, which decides the meaning of opcodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// Queue 0.
    Admin,
    /// Any other.
    Io,
}

/// Where the data of a command is (Base 4.3.2; TCP 3.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// There is none.
    None,
    /// In the capsule, behind the entry.
    InCapsule {
        /// Its offset there; 0, since no controller here has an ICDOFF.
        offset: u64,
        /// How long it is; above 0.
        length: u32,
    },
    /// In PDUs of its own.
    Transport {
        /// How long it is; above 0.
        length: u32,
    },
}

/// The direction of a command's data (Base 4.1.1: the two lowest bits of an opcode).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// There is none.
    None,
    /// From the host.
    ToController,
    /// To the host.
    ToHost,
}

/// Whether a command is one of two fused commands (Base 3.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fused {
    /// A command by itself.
    No,
    /// The first of two.
    First,
    /// The second of two.
    Second,
}

/// A submission queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// Identifier, unique among those outstanding on its queue.
    pub cid: u16,
    /// Whether it is fused.
    pub fused: Fused,
    /// NSID; 0 for none, FFFFFFFFh for all.
    pub nsid: u32,
    /// Where its data is.
    pub data: Data,
    /// The direction of its data.
    pub direction: Direction,
    /// The command.
    pub command: Command,
}

/// A decoded command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// A command about the connection (Base 6).
    Fabrics(Fabrics),
    /// A command to the controller (Base 5).
    Admin(Admin),
    /// A command to a namespace (NVM Command Set 3).
    Io(Io),
}

/// A register of the controller (Base 3.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property {
    /// Its offset.
    pub offset: u32,
    /// Whether it has eight bytes; otherwise it has four.
    pub is_wide: bool,
}

/// Commands of the connection (Base 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fabrics {
    /// 00h.
    PropertySet {
        /// The property.
        property: Property,
        /// The new value.
        value: u64,
    },
    /// 01h.
    Connect {
        /// Format of the record; 0.
        format: u16,
        /// The queue; 0 for a new controller.
        queue: u16,
        /// Entries of the queue, less one.
        size: u16,
        /// CATTR.
        attributes: u8,
        /// KATO: milliseconds; 0 for no limit.
        keep_alive_ms: u32,
    },
    /// 04h.
    PropertyGet(Property),
    /// 05h and 06h.
    Authentication {
        /// Whether it is Send; otherwise it is Receive.
        is_send: bool,
        /// SECP.
        protocol: u8,
        /// SPSP, the first byte in the low bits.
        specific: u16,
        /// Bytes sent or requested.
        length: u32,
    },
    /// 08h.
    Disconnect,
}

/// Commands of the controller (Base 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admin {
    /// 02h.
    GetLogPage {
        /// LID.
        page: u8,
        /// LSP.
        specific: u8,
        /// RAE: the event is retained until the page is read without this bit.
        retains_event: bool,
        /// Bytes asked for; a multiple of 4, above 0.
        length: u64,
        /// LPO: the offset in the page.
        offset: u64,
        /// The offset counts entries, not bytes.
        is_index: bool,
    },
    /// 06h.
    Identify {
        /// CNS: the requested structure.
        structure: u8,
        /// CNTID.
        controller_id: u16,
        /// CSI.
        command_set: u8,
    },
    /// 08h.
    Abort {
        /// Queue of the command.
        queue: u16,
        /// The command.
        cid: u16,
    },
    /// 09h.
    SetFeatures {
        /// FID.
        feature: u8,
        /// SV: the value is to persist through resets.
        saves: bool,
        /// Dword 11.
        value: u32,
    },
    /// 0Ah.
    GetFeatures {
        /// FID.
        feature: u8,
        /// SEL: the current, default or saved value, or the feature's capabilities.
        select: u8,
        /// Dword 11.
        value: u32,
    },
    /// 0Ch.
    AsyncEventRequest,
    /// 18h.
    KeepAlive,
    /// 38h: resets another controller of the host (TP8028).
    CrossControllerReset(Instance),
}

/// Blocks of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: u64,
    /// How many: 1 to 65,536.
    pub count: u32,
    /// FUA: written data is on the medium when the command has ended.
    pub forced: bool,
}

/// Commands of a namespace (NVM Command Set 3; reservations: Base 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// 00h.
    Flush,
    /// 01h.
    Write(Range),
    /// 02h.
    Read(Range),
    /// 05h.
    Compare(Range),
    /// 08h.
    WriteZeroes {
        /// Where.
        range: Range,
        /// DEAC: the blocks may be deallocated.
        deallocates: bool,
    },
    /// 09h.
    DatasetManagement {
        /// Ranges in its data: 1 to 256.
        range_count: u16,
        /// AD: the blocks are to be deallocated. Without it the ranges are hints.
        deallocates: bool,
    },
    /// 0Ch.
    Verify(Range),
    /// 0Dh.
    ReservationRegister {
        /// RREGA.
        action: u8,
        /// IEKEY.
        ignores_key: bool,
        /// CPTPL.
        persistence: u8,
    },
    /// 0Eh.
    ReservationReport {
        /// Bytes asked for; a multiple of 4, above 0.
        length: u64,
        /// EDS.
        is_extended: bool,
    },
    /// 11h.
    ReservationAcquire {
        /// RACQA.
        action: u8,
        /// IEKEY.
        ignores_key: bool,
        /// RTYPE.
        kind: u8,
    },
    /// 15h.
    ReservationRelease {
        /// RRELA.
        action: u8,
        /// IEKEY.
        ignores_key: bool,
        /// RTYPE.
        kind: u8,
    },
}

/// A completion queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// The command that has ended.
    pub cid: u16,
    /// Its status.
    pub status: Status,
    /// Dwords 0 and 1.
    pub result: u64,
    /// SQHD: how far the submission queue has been read.
    pub head: u16,
}

impl Property {
    /// CC, the controller's configuration.
    pub const CONFIGURATION: Self = Self { offset: CC, is_wide: false };
}

impl Submission {
    /// The CID of an entry, even if the entry is invalid.
    #[must_use]
    pub fn cid_of(entry: &[u8; 64]) -> u16 {
        submission::CID.get(entry)
    }

    /// Decodes an entry from a queue of `kind`.
    ///
    /// # Errors
    /// The status with which the command ends. Checks that depend on a namespace or on the
    /// controller's limits are left to the caller.
    pub fn read(kind: QueueKind, entry: &[u8; 64]) -> Result<Self, Status> {
        let fused = match submission::FUSE.get(entry) {
            0 => Fused::No,
            1 => Fused::First,
            2 => Fused::Second,
            _ => return Err(Status::INVALID_FIELD.do_not_retry()),
        };
        // No PRPs over fabrics (Base 4.1.1).
        if !matches!(submission::PSDT.get(entry), PSDT_SGL | PSDT_SGL_METADATA) {
            return Err(Status::INVALID_FIELD.do_not_retry());
        }
        let opcode = submission::OPC.get(entry);
        let command = match (opcode, kind) {
            (FABRICS, _) => Command::Fabrics(fabrics(entry)?),
            (opcode, QueueKind::Admin) => Command::Admin(admin(opcode, entry)?),
            (opcode, QueueKind::Io) => Command::Io(io(opcode, entry)?),
        };
        let data = data(entry)?;
        // A Fabrics command has its type in the place of NSID.
        let (nsid, coded) = match opcode {
            FABRICS => (0, of_fabrics::FCTYPE.get(entry) & 3),
            opcode => (submission::NSID.get(entry), opcode & 3),
        };
        let direction = match coded {
            _ if data == Data::None => Direction::None,
            1 => Direction::ToController,
            2 => Direction::ToHost,
            // Data for a command without data.
            _ => return Err(Status::INVALID_FIELD.do_not_retry()),
        };
        Ok(Self { cid: Self::cid_of(entry), fused, nsid, data, direction, command })
    }
}

// Decodes the SGL descriptor of an entry.
fn data(entry: &[u8; 64]) -> Result<Data, Status> {
    let length = submission::SGL_LENGTH.get(entry);
    match submission::SGL_IDENTIFIER.get(entry) {
        UNSET | IN_CAPSULE | TRANSPORT if length == 0 => Ok(Data::None),
        IN_CAPSULE => Ok(Data::InCapsule { offset: submission::SGL_ADDRESS.get(entry), length }),
        TRANSPORT => Ok(Data::Transport { length }),
        _ => Err(Status::SGL_TYPE_INVALID.do_not_retry()),
    }
}

// Decodes a Fabrics command (Base 6), by type.
fn fabrics(entry: &[u8; 64]) -> Result<Fabrics, Status> {
    use of_fabrics::*;
    let property = || match SIZE.get(entry) {
        size @ (0 | 1) => Ok(Property { offset: OFST.get(entry), is_wide: size == 1 }),
        _ => Err(Status::INVALID_FIELD.do_not_retry()),
    };
    Ok(match FCTYPE.get(entry) {
        0x00 => Fabrics::PropertySet { property: property()?, value: VALUE.get(entry) },
        0x01 => Fabrics::Connect {
            format: RECFMT.get(entry),
            queue: QID.get(entry),
            size: SQSIZE.get(entry),
            attributes: CATTR.get(entry),
            keep_alive_ms: KATO.get(entry),
        },
        0x04 => Fabrics::PropertyGet(property()?),
        send_or_receive @ (0x05 | 0x06) => Fabrics::Authentication {
            is_send: send_or_receive == 0x05,
            protocol: SECP.get(entry),
            specific: SPSP.get(entry),
            length: TL.get(entry),
        },
        0x08 => Fabrics::Disconnect,
        _ => return Err(Status::INVALID_FIELD.do_not_retry()),
    })
}

// Decodes an admin command (Base 5), by opcode.
fn admin(opcode: u8, entry: &[u8; 64]) -> Result<Admin, Status> {
    use of_admin::*;
    Ok(match opcode {
        0x02 => {
            // NUMD counts dwords, less one.
            let dwords = u64::from(NUMDU.get(entry)) << 16 | u64::from(NUMDL.get(entry));
            Admin::GetLogPage {
                page: LID.get(entry),
                specific: LSP.get(entry),
                retains_event: RAE.get(entry),
                length: (dwords + 1) * 4,
                offset: LPO.get(entry),
                is_index: OT.get(entry),
            }
        }
        0x06 => Admin::Identify {
            structure: CNS.get(entry),
            controller_id: CNTID.get(entry),
            command_set: CSI.get(entry),
        },
        0x08 => Admin::Abort { queue: SQID.get(entry), cid: CID.get(entry) },
        0x09 => Admin::SetFeatures {
            feature: FID.get(entry),
            saves: SV.get(entry),
            value: CDW11.get(entry),
        },
        0x0a => Admin::GetFeatures {
            feature: FID.get(entry),
            select: SEL.get(entry),
            value: CDW11.get(entry),
        },
        0x0c => Admin::AsyncEventRequest,
        0x18 => Admin::KeepAlive,
        0x38 => Admin::CrossControllerReset(Instance {
            controller: ICID.get(entry),
            uniquifier: CIU.get(entry),
            random: CIRN.get(entry),
        }),
        _ => return Err(Status::INVALID_OPCODE.do_not_retry()),
    })
}

// Decodes an I/O command (NVM Command Set 3 and Base 7), by opcode.
fn io(opcode: u8, entry: &[u8; 64]) -> Result<Io, Status> {
    use of_io::*;
    let range = Range {
        first: SLBA.get(entry),
        count: u32::from(NLB.get(entry)) + 1,
        forced: FUA.get(entry),
    };
    let (action, ignores_key) = (ACTION.get(entry), IEKEY.get(entry));
    let kind = RTYPE.get(entry);
    Ok(match opcode {
        0x00 => Io::Flush,
        0x01 => Io::Write(range),
        0x02 => Io::Read(range),
        0x05 => Io::Compare(range),
        0x08 => Io::WriteZeroes { range, deallocates: DEAC.get(entry) },
        0x09 => Io::DatasetManagement {
            range_count: u16::from(NR.get(entry)) + 1,
            deallocates: AD.get(entry),
        },
        0x0c => Io::Verify(range),
        0x0d => Io::ReservationRegister { action, ignores_key, persistence: CPTPL.get(entry) },
        0x0e => Io::ReservationReport {
            length: (u64::from(NUMD.get(entry)) + 1) * 4,
            is_extended: EDS.get(entry),
        },
        0x11 => Io::ReservationAcquire { action, ignores_key, kind },
        0x15 => Io::ReservationRelease { action, ignores_key, kind },
        _ => return Err(Status::INVALID_OPCODE.do_not_retry()),
    })
}

impl Completion {
    /// Encodes the entry.
    #[must_use]
    pub fn write(&self) -> [u8; 16] {
        use completion::*;
        let mut entry = [0; BYTES];
        RESULT.put(&mut entry, self.result);
        SQHD.put(&mut entry, self.head);
        CID.put(&mut entry, self.cid);
        STATUS.put(&mut entry, self.status.bits() << PHASE_BITS);
        entry
    }

    /// Decodes an entry.
    #[must_use]
    pub fn read(entry: &[u8; 16]) -> Self {
        use completion::*;
        Self {
            cid: CID.get(entry),
            status: Status::from_bits(STATUS.get(entry) >> PHASE_BITS),
            result: RESULT.get(entry),
            head: SQHD.get(entry),
        }
    }
}
