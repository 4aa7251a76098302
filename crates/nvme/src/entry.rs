//! What a host asks for, written as a submission queue entry (Base 4.1.1; NVM Command Set 3).

use wire::put;

use super::command::{Admin, Command, Data, Fabrics, Fused, Io, Property, Range, Submission};

/// SGLs are used, for data and for nothing else (Base 4.1.1: PSDT).
const SGL: u8 = 1 << 6;
/// Data block in the capsule, at an offset (Base 4.3.2).
const IN_CAPSULE: u8 = 0x01;
/// Data block that PDUs of its own move (TCP 3.3.3).
const TRANSPORT: u8 = 0x5a;
const FABRICS: u8 = 0x7f;

impl Submission {
    /// As it lies on the wire.
    #[must_use]
    pub fn write(&self) -> [u8; 64] {
        let mut entry = [0; 64];
        entry[1] = SGL
            | match self.fused {
                Fused::No => 0,
                Fused::First => 1,
                Fused::Second => 2,
            };
        put(&mut entry, 2, &self.cid.to_le_bytes());
        put(&mut entry, 4, &self.nsid.to_le_bytes());
        match self.data {
            Data::None => entry[39] = TRANSPORT,
            Data::InCapsule { offset, length } => {
                put(&mut entry, 24, &offset.to_le_bytes());
                put(&mut entry, 32, &length.to_le_bytes());
                entry[39] = IN_CAPSULE;
            }
            Data::Transport { length } => {
                put(&mut entry, 32, &length.to_le_bytes());
                entry[39] = TRANSPORT;
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

fn dword(entry: &mut [u8; 64], number: usize, value: u32) {
    put(entry, number * 4, &value.to_le_bytes());
}

fn property(entry: &mut [u8; 64], Property { offset, is_wide }: Property) {
    entry[40] = u8::from(is_wide);
    put(entry, 44, &offset.to_le_bytes());
}

// Base 6.
fn fabrics(command: Fabrics, entry: &mut [u8; 64]) {
    entry[0] = FABRICS;
    entry[4..8].fill(0);
    match command {
        Fabrics::PropertySet { property: which, value } => {
            property(entry, which);
            put(entry, 48, &value.to_le_bytes());
        }
        Fabrics::Connect { format, queue, size, attributes, keep_alive_ms } => {
            entry[4] = 0x01;
            put(entry, 40, &format.to_le_bytes());
            put(entry, 42, &queue.to_le_bytes());
            put(entry, 44, &size.to_le_bytes());
            entry[46] = attributes;
            put(entry, 48, &keep_alive_ms.to_le_bytes());
        }
        Fabrics::PropertyGet(which) => {
            entry[4] = 0x04;
            property(entry, which);
        }
        Fabrics::Authentication { is_send, protocol, specific, length } => {
            entry[4] = if is_send { 0x05 } else { 0x06 };
            put(entry, 41, &specific.to_le_bytes());
            entry[43] = protocol;
            put(entry, 44, &length.to_le_bytes());
        }
        Fabrics::Disconnect => entry[4] = 0x08,
    }
}

// Base 5.
fn admin(command: Admin, entry: &mut [u8; 64]) {
    match command {
        Admin::GetLogPage { page, specific, retains_event, length, offset, is_index } => {
            entry[0] = 0x02;
            let dwords = length / 4 - 1;
            let [low, high] = [dwords & 0xffff, dwords >> 16 & 0xffff]
                .map(|half| u32::try_from(half).unwrap_or(0));
            let kind = u32::from(page) | u32::from(specific) << 8 | u32::from(retains_event) << 15;
            dword(entry, 10, kind | low << 16);
            dword(entry, 11, high);
            put(entry, 48, &offset.to_le_bytes());
            dword(entry, 14, u32::from(is_index) << 23);
        }
        Admin::Identify { structure, controller_id, command_set } => {
            entry[0] = 0x06;
            dword(entry, 10, u32::from(structure) | u32::from(controller_id) << 16);
            dword(entry, 11, u32::from(command_set) << 24);
        }
        Admin::Abort { queue, cid } => {
            entry[0] = 0x08;
            dword(entry, 10, u32::from(queue) | u32::from(cid) << 16);
        }
        Admin::SetFeatures { feature, saves, value } => {
            entry[0] = 0x09;
            dword(entry, 10, u32::from(feature) | u32::from(saves) << 31);
            dword(entry, 11, value);
        }
        Admin::GetFeatures { feature, select, value } => {
            entry[0] = 0x0a;
            dword(entry, 10, u32::from(feature) | u32::from(select) << 8);
            dword(entry, 11, value);
        }
        Admin::AsyncEventRequest => entry[0] = 0x0c,
        Admin::KeepAlive => entry[0] = 0x18,
    }
}

fn range(entry: &mut [u8; 64], range: Range, flags: u32) {
    put(entry, 40, &range.first.to_le_bytes());
    dword(entry, 12, (range.count - 1) & 0xffff | u32::from(range.forced) << 30 | flags);
}

// NVM Command Set 3 and Base 7.
fn io(command: Io, entry: &mut [u8; 64]) {
    let mut reservation = |opcode: u8, action: u8, ignores_key: bool, kind: u8| {
        entry[0] = opcode;
        entry[40] = action | u8::from(ignores_key) << 3;
        entry[41] = kind;
    };
    match command {
        Io::Flush => entry[0] = 0x00,
        Io::Write(blocks) => {
            entry[0] = 0x01;
            range(entry, blocks, 0);
        }
        Io::Read(blocks) => {
            entry[0] = 0x02;
            range(entry, blocks, 0);
        }
        Io::Compare(blocks) => {
            entry[0] = 0x05;
            range(entry, blocks, 0);
        }
        Io::WriteZeroes { range: blocks, deallocates } => {
            entry[0] = 0x08;
            range(entry, blocks, u32::from(deallocates) << 25);
        }
        Io::DatasetManagement { range_count, deallocates } => {
            entry[0] = 0x09;
            dword(entry, 10, u32::from(range_count.max(1) - 1) & 0xff);
            dword(entry, 11, u32::from(deallocates) << 2);
        }
        Io::Verify(blocks) => {
            entry[0] = 0x0c;
            range(entry, blocks, 0);
        }
        Io::ReservationRegister { action, ignores_key, persistence } => {
            reservation(0x0d, action, ignores_key, 0);
            entry[43] = persistence << 6;
        }
        Io::ReservationReport { length, is_extended } => {
            entry[0] = 0x0e;
            dword(entry, 10, u32::try_from(length / 4 - 1).unwrap_or(u32::MAX));
            dword(entry, 11, u32::from(is_extended));
        }
        Io::ReservationAcquire { action, ignores_key, kind } => {
            reservation(0x11, action, ignores_key, kind);
        }
        Io::ReservationRelease { action, ignores_key, kind } => {
            reservation(0x15, action, ignores_key, kind);
        }
    }
}
