//! A host's end of a connection, which can send any bytes (NVMe/TCP 1.1).

use std::collections::VecDeque;
use std::time::Duration;

use nvme::data_digest;

use super::super::case::{Case, Seen, Trouble};
use super::super::wire::{Filled, Wire};
use super::sqe::Sqe;

pub(super) const IC_REQ: u8 = 0x00;
pub(super) const IC_RESP: u8 = 0x01;
pub(super) const H2C_TERM: u8 = 0x02;
pub(super) const C2H_TERM: u8 = 0x03;
pub(super) const CAPSULE: u8 = 0x04;
pub(super) const RESPONSE: u8 = 0x05;
pub(super) const H2C_DATA: u8 = 0x06;
pub(super) const C2H_DATA: u8 = 0x07;
pub(super) const R2T: u8 = 0x09;

/// Flags of the common header.
pub(super) const HDGST: u8 = 1 << 0;
pub(super) const DDGST: u8 = 1 << 1;
pub(super) const LAST: u8 = 1 << 2;
const SUCCESS: u8 = 1 << 3;

/// Longest wait for an ordinary answer.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// How long without an answer counts as no answer.
pub(super) const SILENCE: Duration = Duration::from_millis(300);
/// Longest wait for the end after C2HTermReq: a controller waits for its host to close, up to 30 s
/// (TCP 3.6.1).
const TERMINATION: Duration = Duration::from_secs(31);
/// Longest PDU that is accepted from a target.
const PDU_BYTES_MAX: usize = 32 << 20;

/// A host's end of a connection.
pub(super) struct Peer {
    pub(super) wire: Wire,
    /// Whether header and data digests were negotiated.
    pub(super) digests: [bool; 2],
    pub(super) cpda: u8,
    pub(super) maxh2c: u32,
    /// The controller ID that Connect returned.
    pub(super) controller: u16,
    pub(super) wants_proof: bool,
    pub(super) is_admin: bool,
    next_cid: u16,
    /// R2Ts that were received and not answered.
    pub(super) asked: VecDeque<Asked>,
    /// Data of the last command,
    pub(super) data: Vec<u8>,
    /// and dword 0 of its completion.
    pub(super) result: u32,
}

/// The fields of an R2T.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) cid: u16,
    pub(super) ttag: u16,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// The result of a wait for a PDU.
pub(super) enum Heard {
    Pdu { head: Vec<u8>, data: Vec<u8> },
    Ended,
    Late,
}

/// The parameters of a Connect command.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) queue: u16,
    pub(super) size: u16,
    pub(super) keep_alive_ms: u32,
    pub(super) controller: u16,
    pub(super) host_id: [u8; 16],
    pub(super) subsystem: Vec<u8>,
    pub(super) host: Vec<u8>,
}

/// An ICReq PDU with the digests of `digests` (bit 0: header, bit 1: data).
pub(super) fn ic_req(digests: u8) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    (bytes[0], bytes[2], bytes[4], bytes[11]) = (IC_REQ, 128, 128, digests);
    bytes
}

/// The little-endian 16-bit number at `at`; bytes beyond the end count as 0.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    u16::from_le_bytes([byte(at), byte(at + 1)])
}

/// The little-endian 32-bit number at `at`; bytes beyond the end count as 0.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

impl Said {
    /// A correct Connect of queue `queue` to `controller` (FFFFh for a new one).
    pub(super) fn of(case: &Case<'_>, queue: u16, controller: u16) -> Self {
        let place = case.site.nvme();
        Self {
            queue,
            size: 31,
            keep_alive_ms: 0,
            controller,
            host_id: *b"afar-torture-x01",
            subsystem: place.subsystem.clone().into_bytes(),
            host: format!("{}.hostile", place.host).into_bytes(),
        }
    }

    /// The data of the Connect command.
    pub(super) fn data(&self) -> Vec<u8> {
        let mut data = vec![0; 1024];
        data[..16].copy_from_slice(&self.host_id);
        data[16..18].copy_from_slice(&self.controller.to_le_bytes());
        for (at, name) in [(256, &self.subsystem), (512, &self.host)] {
            let length = name.len().min(256);
            data[at..at + length].copy_from_slice(&name[..length]);
        }
        data
    }

    /// The submission queue entry of the Connect command.
    pub(super) fn sqe(&self) -> Sqe {
        Sqe::fabrics(0x01)
            .in_capsule(1024)
            .word(42, self.queue)
            .word(44, self.size)
            .dword(48, self.keep_alive_ms)
    }
}

impl Peer {
    /// Connects; nothing has been sent yet.
    pub(super) fn dial(case: &Case<'_>) -> Result<Self, Trouble> {
        Ok(Self {
            wire: Wire::dial(case)?,
            digests: [false; 2],
            cpda: 0,
            maxh2c: 0,
            controller: 0xffff,
            wants_proof: false,
            is_admin: true,
            next_cid: 0,
            asked: VecDeque::new(),
            data: Vec::new(),
            result: 0,
        })
    }

    /// Connects and exchanges ICReq and ICResp, with the digests that the target accepts.
    pub(super) fn greet(case: &Case<'_>, digests: u8) -> Result<Self, Trouble> {
        let mut peer = Self::dial(case)?;
        peer.send(&ic_req(digests));
        peer.greeted()?;
        Ok(peer)
    }

    /// Receives ICResp.
    pub(super) fn greeted(&mut self) -> Result<(), Trouble> {
        match self.hear(ANSWER) {
            Heard::Pdu { head, .. } if head[0] == IC_RESP && head.len() >= 16 => {
                (self.cpda, self.maxh2c) = (head[10], u32_at(&head, 12));
                self.digests = [head[11] & 1 != 0, head[11] & 2 != 0];
                Ok(())
            }
            _ => Err(Trouble::Failed("ICReq is not answered".to_owned())),
        }
    }

    /// Connects an admin queue and enables its controller.
    pub(super) fn admin(case: &Case<'_>, digests: u8) -> Result<Self, Trouble> {
        Self::admin_of(case, digests, &Said::of(case, 0, 0xffff))
    }

    /// As [`Peer::admin`], with the Connect of `said`.
    pub(super) fn admin_of(case: &Case<'_>, digests: u8, said: &Said) -> Result<Self, Trouble> {
        let mut peer = Self::greet(case, digests)?;
        // Controllers of peers that have just disconnected may still exist.
        for _ in 0..50 {
            match peer.connect(said) {
                Seen::Served => break,
                Seen::Status(_) => case.pause(Duration::from_millis(100))?,
                seen => return Err(Trouble::Failed(format!("Connect: {seen}"))),
            }
        }
        // CC: submission queue entries of 64 bytes, completion queue entries of 16, enabled.
        let enable = Sqe::fabrics(0x00).dword(44, 0x14).dword(48, 0x0046_0001);
        match peer.ask(enable, &[]) {
            Seen::Served => Ok(peer),
            seen => Err(Trouble::Failed(format!("enable the controller: {seen}"))),
        }
    }

    /// Connects an admin queue and an I/O queue. Returns the I/O queue first.
    pub(super) fn io(case: &Case<'_>, digests: u8) -> Result<(Self, Self), Trouble> {
        let admin = Self::admin(case, digests)?;
        let said = Said::of(case, 1, admin.controller);
        Ok((Self::io_of(case, digests, &said)?, admin))
    }

    /// Connects an I/O queue with the Connect of `said`.
    pub(super) fn io_of(case: &Case<'_>, digests: u8, said: &Said) -> Result<Self, Trouble> {
        let mut io = Self::greet(case, digests)?;
        io.is_admin = false;
        match io.connect(said) {
            Seen::Served => Ok(io),
            seen => Err(Trouble::Failed(format!("Connect of an I/O queue: {seen}"))),
        }
    }

    /// Sends a Connect command. Returns the target's reaction.
    pub(super) fn connect(&mut self, said: &Said) -> Seen {
        let seen = self.ask(said.sqe(), &said.data());
        if seen == Seen::Served && said.queue == 0 {
            self.controller = u16_at(&self.result.to_le_bytes(), 0);
            self.wants_proof = self.result >> 16 & 3 != 0;
        }
        seen
    }

    /// Sends bytes. Returns whether all were sent; a failure shows in the next receive, too.
    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        self.wire.send(bytes, ANSWER)
    }

    /// The bytes of a correct PDU; `fields` is the header from byte 8 on.
    pub(super) fn pdu(&self, kind: u8, flags: u8, fields: &[u8], data: &[u8]) -> Vec<u8> {
        let [header_digest, data_digests] = self.digests;
        let mut bytes = vec![kind, flags, 0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(fields);
        let hlen = bytes.len();
        let end = hlen + if header_digest { 4 } else { 0 };
        let unit = 4 * (usize::from(self.cpda) + 1);
        let begin = if data.is_empty() { end } else { end.next_multiple_of(unit) };
        let after = if data_digests && !data.is_empty() { 4 } else { 0 };
        bytes[1] |= if header_digest { HDGST } else { 0 } | if after > 0 { DDGST } else { 0 };
        bytes[2] = low(hlen);
        bytes[3] = if data.is_empty() { 0 } else { low(begin) };
        put_length(&mut bytes, begin + data.len() + after);
        self.seal(&mut bytes);
        bytes.resize(begin, 0);
        bytes.extend_from_slice(data);
        if after > 0 {
            bytes.extend_from_slice(&data_digest(data));
        }
        bytes
    }

    /// Appends the header digest if it was negotiated.
    fn seal(&self, bytes: &mut Vec<u8>) {
        if self.digests[0] {
            let digest = data_digest(bytes);
            bytes.extend_from_slice(&digest);
        }
    }

    /// A command capsule with `data` in it.
    pub(super) fn capsule(&self, sqe: &Sqe, data: &[u8]) -> Vec<u8> {
        self.pdu(CAPSULE, 0, &sqe.0, data)
    }

    /// H2CData for an R2T with `data` at `offset`; `last` sets LAST_PDU.
    pub(super) fn h2c(&self, asked: Asked, offset: u32, data: &[u8], last: bool) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.pdu(H2C_DATA, if last { LAST } else { 0 }, &h2c_fields(asked, offset, length), data)
    }

    /// Sends a command with a new identifier. Returns the identifier.
    pub(super) fn submit(&mut self, sqe: Sqe, data: &[u8]) -> u16 {
        self.next_cid = self.next_cid.wrapping_add(1) & 0x7fff;
        let cid = self.next_cid;
        let bytes = self.capsule(&sqe.cid(cid), data);
        self.send(&bytes);
        cid
    }

    /// Sends a command. Returns the target's reaction.
    pub(super) fn ask(&mut self, sqe: Sqe, data: &[u8]) -> Seen {
        let cid = self.submit(sqe, data);
        self.end_of(cid, ANSWER)
    }

    /// As [`Peer::ask`], then checks that the connection lives.
    pub(super) fn try_out(&mut self, case: &Case<'_>, sqe: Sqe, data: &[u8]) -> Seen {
        let cid = self.submit(sqe, data);
        let seen = self.end_of(cid, ANSWER);
        self.alive(case, seen)
    }

    /// Waits for the completion of the command `cid`.
    pub(super) fn end_of(&mut self, cid: u16, time: Duration) -> Seen {
        self.data.clear();
        self.listen(cid, time, false)
    }

    // Waits for the completion of a command, or with `until_asked` for an R2T (returned as
    // `Stalled`).
    fn listen(&mut self, cid: u16, time: Duration, until_asked: bool) -> Seen {
        loop {
            if until_asked && !self.asked.is_empty() {
                return Seen::Stalled;
            }
            let (head, data) = match self.hear(time) {
                Heard::Pdu { head, data } => (head, data),
                Heard::Ended => return Seen::Closed,
                Heard::Late => return Seen::Stalled,
            };
            let own = u16_at(&head, 8) == cid;
            match head[0] {
                RESPONSE if u16_at(&head, 20) == cid => {
                    self.result = u32_at(&head, 8);
                    return match u16_at(&head, 22) >> 1 & 0x7ff {
                        0 => Seen::Served,
                        status => Seen::Status(status),
                    };
                }
                C2H_TERM => return self.terminated(&head),
                C2H_DATA if own => {
                    self.data.extend_from_slice(&data);
                    if head[1] & SUCCESS != 0 {
                        return Seen::Served;
                    }
                }
                R2T => {
                    let asked = Asked {
                        cid: u16_at(&head, 8),
                        ttag: u16_at(&head, 10),
                        offset: u32_at(&head, 12),
                        length: u32_at(&head, 16),
                    };
                    self.asked.push_back(asked);
                }
                RESPONSE | C2H_DATA => {}
                kind => return Seen::Wrong(format!("PDU of type {kind:02x}h")),
            }
        }
    }

    /// Waits for the end of the connection or C2HTermReq.
    pub(super) fn end(&mut self, time: Duration) -> Seen {
        loop {
            match self.hear(time) {
                Heard::Ended => return Seen::Closed,
                Heard::Late => return Seen::Stalled,
                Heard::Pdu { head, .. } if head[0] == C2H_TERM => return self.terminated(&head),
                Heard::Pdu { .. } => {}
            }
        }
    }

    // The reaction in a C2HTermReq, which the end of the connection must follow.
    fn terminated(&mut self, head: &[u8]) -> Seen {
        self.wire.finish();
        match self.wire.ends(TERMINATION) {
            true => Seen::Term(u16_at(head, 8)),
            false => Seen::Wrong(format!("T{}, and the connection stays", u16_at(head, 8))),
        }
    }

    /// Waits for the R2T of the command `cid`.
    pub(super) fn asked(&mut self, cid: u16) -> Result<Asked, Trouble> {
        // The write must not end before its data.
        match self.listen(cid, ANSWER, true) {
            Seen::Stalled => {}
            seen => return Err(Trouble::Failed(format!("a write: {seen} before its data"))),
        }
        let asked = self.asked.pop_front();
        asked.ok_or_else(|| Trouble::Failed("data of a write is not asked for".to_owned()))
    }

    /// Checks by a command that the connection lives after the reaction `seen`. Returns `seen`, or
    /// what is wrong.
    pub(super) fn alive(&mut self, case: &Case<'_>, seen: Seen) -> Seen {
        if !matches!(seen, Seen::Served | Seen::Status(_) | Seen::Stalled) {
            return seen;
        }
        let ping = match self.is_admin {
            // The register VS.
            true => Sqe::fabrics(0x04).dword(44, 0x08),
            false => read(case, 0, 1),
        };
        let (data, result) = (std::mem::take(&mut self.data), self.result);
        let lives = self.ask(ping, &[]);
        (self.data, self.result) = (data, result);
        match (seen, lives) {
            (Seen::Stalled, Seen::Served) => Seen::Ignored,
            (Seen::Stalled, Seen::Stalled) => Seen::Stalled,
            (Seen::Stalled, dead) => dead,
            (seen, Seen::Served) => seen,
            (seen, dead) => Seen::Wrong(format!("{seen}, then {dead}")),
        }
    }

    /// Waits for the next PDU.
    pub(super) fn hear(&mut self, time: Duration) -> Heard {
        match self.wire.fill(8, time) {
            Filled::Enough => {}
            Filled::Ended => return Heard::Ended,
            Filled::Late => return Heard::Late,
        }
        let common = self.wire.peek();
        let (flags, hlen, pdo) = (common[1], usize::from(common[2]), usize::from(common[3]));
        let length = usize::try_from(u32_at(common, 4)).unwrap_or(usize::MAX);
        if length > PDU_BYTES_MAX || length < hlen.max(24) {
            return Heard::Ended;
        }
        match self.wire.fill(length, ANSWER) {
            Filled::Enough => {}
            Filled::Ended => return Heard::Ended,
            Filled::Late => return Heard::Late,
        }
        let pdu = self.wire.take(length);
        let after = if flags & DDGST != 0 { 4 } else { 0 };
        let end = length.saturating_sub(after);
        let data = if pdo >= hlen && pdo < end { pdu[pdo..end].to_vec() } else { Vec::new() };
        Heard::Pdu { head: pdu[..hlen.max(24).min(length)].to_vec(), data }
    }
}

/// A Read of `count` blocks from `first` on.
pub(super) fn read(case: &Case<'_>, first: u64, count: u16) -> Sqe {
    let bytes = case.site.block_bytes * u32::from(count);
    let nsid = case.site.nvme().nsid;
    Sqe::new(super::sqe::READ).nsid(nsid).blocks(first, count - 1).moved(bytes)
}

/// The header of H2CData from byte 8 on.
pub(super) fn h2c_fields(asked: Asked, offset: u32, length: u32) -> Vec<u8> {
    let mut fields = Vec::new();
    fields.extend_from_slice(&asked.cid.to_le_bytes());
    fields.extend_from_slice(&asked.ttag.to_le_bytes());
    fields.extend_from_slice(&offset.to_le_bytes());
    fields.extend_from_slice(&length.to_le_bytes());
    fields.extend_from_slice(&[0; 4]);
    fields
}

/// Replaces PLEN.
pub(super) fn put_length(pdu: &mut [u8], length: usize) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    pdu[4..8].copy_from_slice(&length.to_le_bytes());
}

/// The lowest byte of a number.
fn low(number: usize) -> u8 {
    number.to_le_bytes()[0]
}
