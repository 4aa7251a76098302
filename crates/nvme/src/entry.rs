//! Encodes commands as submission queue entries (Base 4.1.1; NVM Command Set 3).

use super::command::{Admin, Command, Data, Fabrics, Fused, Io, Property, Range, Submission};
use super::layout::entry::{admin as of_admin, fabrics as of_fabrics, io as of_io, submission};

impl Submission {
    /// Encodes the entry.
    #[must_use]
    pub fn write(&self) -> [u8; 64] {
        use submission::*;
        let mut entry = [0; BYTES];
        PSDT.put(&mut entry, PSDT_SGL);
        let fused = match self.fused {
            Fused::No => 0,
            Fused::First => 1,
            Fused::Second => 2,
        };
        FUSE.put(&mut entry, fused);
        CID.put(&mut entry, self.cid);
        NSID.put(&mut entry, self.nsid);
        match self.data {
            Data::None => SGL_IDENTIFIER.put(&mut entry, TRANSPORT),
            Data::InCapsule { offset, length } => {
                SGL_ADDRESS.put(&mut entry, offset);
                SGL_LENGTH.put(&mut entry, length);
                SGL_IDENTIFIER.put(&mut entry, IN_CAPSULE);
            }
            Data::Transport { length } => {
                SGL_LENGTH.put(&mut entry, length);
                SGL_IDENTIFIER.put(&mut entry, TRANSPORT);
            }
        }
        match self.command {
            Command::Fabrics(command) => fabrics(command, &mut entry),
            Command::Admin(command) => admin(command, &mut entry),
            Command::Io(command) => io(command, &mut entry),
        }
        entry
    }
}

/// Sets the CID of an encoded entry.
pub(crate) fn put_cid(entry: &mut [u8; 64], cid: u16) {
    submission::CID.put(entry, cid);
}

// Encodes the property of Property Get and Set.
fn property(entry: &mut [u8; 64], Property { offset, is_wide }: Property) {
    of_fabrics::SIZE.put(entry, u8::from(is_wide));
    of_fabrics::OFST.put(entry, offset);
}

// Encodes a Fabrics command (Base 6).
fn fabrics(command: Fabrics, entry: &mut [u8; 64]) {
    use of_fabrics::*;
    submission::OPC.put(entry, submission::FABRICS);
    submission::NSID.put(entry, 0);
    match command {
        Fabrics::PropertySet { property: which, value } => {
            property(entry, which);
            VALUE.put(entry, value);
        }
        Fabrics::Connect { format, queue, size, attributes, keep_alive_ms } => {
            FCTYPE.put(entry, 0x01);
            RECFMT.put(entry, format);
            QID.put(entry, queue);
            SQSIZE.put(entry, size);
            CATTR.put(entry, attributes);
            KATO.put(entry, keep_alive_ms);
        }
        Fabrics::PropertyGet(which) => {
            FCTYPE.put(entry, 0x04);
            property(entry, which);
        }
        Fabrics::Authentication { is_send, protocol, specific, length } => {
            FCTYPE.put(entry, if is_send { 0x05 } else { 0x06 });
            SPSP.put(entry, specific);
            SECP.put(entry, protocol);
            TL.put(entry, length);
        }
        Fabrics::Disconnect => FCTYPE.put(entry, 0x08),
    }
}

// Encodes an admin command (Base 5).
fn admin(command: Admin, entry: &mut [u8; 64]) {
    use of_admin::*;
    let opcode = match command {
        Admin::GetLogPage { page, specific, retains_event, length, offset, is_index } => {
            let dwords = length / 4 - 1;
            let [low, high] = [dwords & 0xffff, dwords >> 16 & 0xffff]
                .map(|half| u16::try_from(half).unwrap_or(0));
            LID.put(entry, page);
            LSP.put(entry, specific);
            RAE.put(entry, retains_event);
            NUMDL.put(entry, low);
            NUMDU.put(entry, high);
            LPO.put(entry, offset);
            OT.put(entry, is_index);
            0x02
        }
        Admin::Identify { structure, controller_id, command_set } => {
            CNS.put(entry, structure);
            CNTID.put(entry, controller_id);
            CSI.put(entry, command_set);
            0x06
        }
        Admin::Abort { queue, cid } => {
            SQID.put(entry, queue);
            CID.put(entry, cid);
            0x08
        }
        Admin::SetFeatures { feature, saves, value } => {
            FID.put(entry, feature);
            SV.put(entry, saves);
            CDW11.put(entry, value);
            0x09
        }
        Admin::GetFeatures { feature, select, value } => {
            FID.put(entry, feature);
            SEL.put(entry, select);
            CDW11.put(entry, value);
            0x0a
        }
        Admin::AsyncEventRequest => 0x0c,
        Admin::KeepAlive => 0x18,
        Admin::CrossControllerReset(of) => {
            ICID.put(entry, of.controller);
            CIU.put(entry, of.uniquifier);
            CIRN.put(entry, of.random);
            0x38
        }
    };
    submission::OPC.put(entry, opcode);
}

// Encodes a range of blocks.
fn range(entry: &mut [u8; 64], range: Range) {
    of_io::SLBA.put(entry, range.first);
    // Its lowest 16 bits.
    of_io::NLB.put(entry, u16::try_from((range.count - 1) & 0xffff).unwrap_or(u16::MAX));
    of_io::FUA.put(entry, range.forced);
}

// Encodes an I/O command (NVM Command Set 3 and Base 7).
fn io(command: Io, entry: &mut [u8; 64]) {
    use of_io::*;
    use submission::OPC;
    let mut reservation = |opcode: u8, action: u8, ignores_key: bool, kind: u8| {
        OPC.put(entry, opcode);
        ACTION.put(entry, action);
        IEKEY.put(entry, ignores_key);
        RTYPE.put(entry, kind);
    };
    match command {
        Io::Flush => OPC.put(entry, 0x00),
        Io::Write(blocks) => {
            OPC.put(entry, 0x01);
            range(entry, blocks);
        }
        Io::Read(blocks) => {
            OPC.put(entry, 0x02);
            range(entry, blocks);
        }
        Io::Compare(blocks) => {
            OPC.put(entry, 0x05);
            range(entry, blocks);
        }
        Io::WriteZeroes { range: blocks, deallocates } => {
            OPC.put(entry, 0x08);
            range(entry, blocks);
            DEAC.put(entry, deallocates);
        }
        Io::DatasetManagement { range_count, deallocates } => {
            OPC.put(entry, 0x09);
            // 256 at most.
            NR.put(entry, u8::try_from((range_count.max(1) - 1) & 0xff).unwrap_or(u8::MAX));
            AD.put(entry, deallocates);
        }
        Io::Verify(blocks) => {
            OPC.put(entry, 0x0c);
            range(entry, blocks);
        }
        Io::ReservationRegister { action, ignores_key, persistence } => {
            reservation(0x0d, action, ignores_key, 0);
            CPTPL.put(entry, persistence);
        }
        Io::ReservationReport { length, is_extended } => {
            OPC.put(entry, 0x0e);
            NUMD.put(entry, u32::try_from(length / 4 - 1).unwrap_or(u32::MAX));
            EDS.put(entry, is_extended);
        }
        Io::ReservationAcquire { action, ignores_key, kind } => {
            reservation(0x11, action, ignores_key, kind);
        }
        Io::ReservationRelease { action, ignores_key, kind } => {
            reservation(0x15, action, ignores_key, kind);
        }
    }
}
