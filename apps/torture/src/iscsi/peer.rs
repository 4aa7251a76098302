//! An initiator's end of a connection, which can send any bytes (RFC 7143).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nvme::data_digest;

use super::super::case::{Case, Seen, Trouble};
use super::super::wire::{Filled, Wire};
use super::bhs::{
    ASYNC, Bhs, COMMAND, DATA_IN, FINAL, IMMEDIATE, LOGIN_RESPONSE, LOGOUT_RESPONSE, NO_TAG,
    NOP_IN, NOP_OUT, R2T, READS, REJECT, RESPONSE, TASK_RESPONSE, TEXT_RESPONSE, WRITES, be32,
};

/// Longest wait for an ordinary answer.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// How long without an answer counts as no answer.
pub(super) const SILENCE: Duration = Duration::from_millis(300);

/// An initiator's end of a connection.
pub(super) struct Peer {
    pub(super) wire: Wire,
    /// Whether header and data digests were negotiated.
    pub(super) digests: [bool; 2],
    pub(super) cmd_sn: u32,
    pub(super) exp_stat_sn: u32,
    pub(super) max_cmd_sn: u32,
    pub(super) tsih: u16,
    pub(super) lun: [u8; 8],
    /// Keys and values of the target's login responses.
    pub(super) keys: BTreeMap<String, String>,
    next_itt: u32,
    /// R2Ts that were received and not answered.
    pub(super) asked: VecDeque<Asked>,
    /// The data of the last answer,
    pub(super) data: Vec<u8>,
    /// and its header.
    pub(super) last: [u8; 48],
}

/// The fields of an R2T.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) ttt: u32,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// The result of a wait for a PDU.
pub(super) enum Heard {
    Pdu { bhs: [u8; 48], data: Vec<u8> },
    Ended,
    Late,
}

impl Peer {
    /// Connects; nothing has been sent yet.
    pub(super) fn dial(case: &Case<'_>) -> Result<Self, Trouble> {
        Ok(Self {
            wire: Wire::dial(case)?,
            digests: [false; 2],
            cmd_sn: 1,
            exp_stat_sn: 0,
            max_cmd_sn: 1,
            tsih: 0,
            lun: case.site.iscsi().lun,
            keys: BTreeMap::new(),
            next_itt: 100,
            asked: VecDeque::new(),
            data: Vec::new(),
            last: [0; 48],
        })
    }

    /// Sends bytes. Returns whether all were sent; a failure shows in the next receive, too.
    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        self.wire.send(bytes, ANSWER)
    }

    /// The bytes of a PDU with the right length of `data`.
    pub(super) fn pdu(&self, bhs: &Bhs, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.raw(&bhs.length(length), &[], data)
    }

    /// The bytes of a PDU whose header lengths stay as they are, right or wrong.
    pub(super) fn raw(&self, bhs: &Bhs, additional: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = bhs.0.to_vec();
        bytes.extend_from_slice(additional);
        if self.digests[0] {
            let digest = data_digest(&bytes);
            bytes.extend_from_slice(&digest);
        }
        if !data.is_empty() {
            let mut data = data.to_vec();
            data.resize(data.len().next_multiple_of(4), 0);
            bytes.extend_from_slice(&data);
            if self.digests[1] {
                bytes.extend_from_slice(&data_digest(&data));
            }
        }
        bytes
    }

    /// A new initiator task tag.
    pub(super) const fn tag(&mut self) -> u32 {
        self.next_itt = self.next_itt.wrapping_add(1);
        self.next_itt
    }

    /// `bhs` with the next CmdSN and ExpStatSN.
    pub(super) fn numbered(&mut self, bhs: Bhs) -> Bhs {
        let numbered = bhs.word(24, self.cmd_sn).word(28, self.exp_stat_sn);
        if numbered.0[0] & IMMEDIATE == 0 {
            self.cmd_sn = self.cmd_sn.wrapping_add(1);
        }
        numbered
    }

    /// Sends a request with the next numbers and a new tag. Returns the tag.
    pub(super) fn submit(&mut self, bhs: Bhs, data: &[u8]) -> u32 {
        let itt = self.tag();
        let bhs = self.numbered(bhs.itt(itt));
        let bytes = self.pdu(&bhs, data);
        self.send(&bytes);
        itt
    }

    /// Sends a request. Returns the target's reaction.
    pub(super) fn ask(&mut self, bhs: Bhs, data: &[u8]) -> Seen {
        let itt = self.submit(bhs, data);
        self.end_of(itt, ANSWER)
    }

    /// As [`Peer::ask`], then checks that the connection lives.
    pub(super) fn try_out(&mut self, bhs: Bhs, data: &[u8]) -> Seen {
        let seen = self.ask(bhs, data);
        self.alive(seen)
    }

    /// A SCSI command that reads at most `bytes`.
    pub(super) fn reading(&self, cdb: &[u8], bytes: u32) -> Bhs {
        self.command(cdb, if bytes > 0 { READS } else { 0 }, bytes)
    }

    /// A SCSI command that writes `bytes`.
    pub(super) fn writing(&self, cdb: &[u8], bytes: u32) -> Bhs {
        self.command(cdb, WRITES, bytes)
    }

    /// A SCSI command with `flags` and ExpectedDataTransferLength `bytes`.
    pub(super) fn command(&self, cdb: &[u8], flags: u8, bytes: u32) -> Bhs {
        Bhs::new(COMMAND).byte(1, FINAL | flags).bytes(8, &self.lun).word(20, bytes).bytes(32, cdb)
    }

    /// An immediate NOP-Out.
    pub(super) fn ping(&self) -> Bhs {
        Bhs::new(NOP_OUT | IMMEDIATE).bytes(8, &self.lun)
    }

    /// Waits for the answer to the request `itt`; a Reject counts as its answer, too.
    pub(super) fn end_of(&mut self, itt: u32, time: Duration) -> Seen {
        self.data.clear();
        self.listen(itt, time, false)
    }

    // Waits for the answer to a request, or with `until_asked` for an R2T (returned as `Stalled`).
    fn listen(&mut self, itt: u32, time: Duration, until_asked: bool) -> Seen {
        loop {
            if until_asked && !self.asked.is_empty() {
                return Seen::Stalled;
            }
            let (bhs, data) = match self.hear(time) {
                Heard::Pdu { bhs, data } => (bhs, data),
                Heard::Ended => return Seen::Closed,
                Heard::Late => return Seen::Stalled,
            };
            let own = be32(&bhs, 16) == itt;
            match bhs[0] & 0x3f {
                REJECT => return Seen::Reject(bhs[2]),
                RESPONSE if own => return self.ended(&bhs, &data),
                DATA_IN if own => {
                    self.data.extend_from_slice(&data);
                    if bhs[1] & 1 != 0 {
                        return self.ended(&bhs, &[]);
                    }
                }
                TASK_RESPONSE if own => return Seen::Task(bhs[2]),
                NOP_IN | TEXT_RESPONSE | LOGOUT_RESPONSE if own && itt != NO_TAG => {
                    (self.data, self.last) = (data, bhs);
                    return Seen::Served;
                }
                RESPONSE | DATA_IN | TASK_RESPONSE | NOP_IN | TEXT_RESPONSE | LOGOUT_RESPONSE
                | ASYNC | R2T => {}
                opcode => return Seen::Wrong(format!("PDU with opcode {opcode:02x}h")),
            }
        }
    }

    // The reaction in a SCSI Response or the last Data-In, with sense code and qualifier.
    fn ended(&mut self, bhs: &[u8; 48], data: &[u8]) -> Seen {
        self.last = *bhs;
        match (bhs[0] & 0x3f, bhs[2], bhs[3]) {
            (RESPONSE, 1.., _) => Seen::Wrong(format!("response {:02x}h of the target", bhs[2])),
            (_, _, 0) => Seen::Served,
            (_, _, 2) => {
                let sense = data.get(2..).unwrap_or_default();
                let at = if sense.first().is_some_and(|code| code & 0x7f >= 0x72) { 2 } else { 12 };
                let byte = |at: usize| u16::from(sense.get(at).copied().unwrap_or(0));
                Seen::Check(byte(at) << 8 | byte(at + 1))
            }
            (_, _, status) => Seen::Scsi(status),
        }
    }

    /// Waits for the end of the connection, a Login Response or a Reject.
    pub(super) fn end(&mut self, time: Duration) -> Seen {
        loop {
            match self.hear(time) {
                Heard::Ended => return Seen::Closed,
                Heard::Late => return Seen::Stalled,
                Heard::Pdu { bhs, .. } if bhs[0] & 0x3f == LOGIN_RESPONSE => {
                    return self.refused(&bhs);
                }
                Heard::Pdu { bhs, .. } if bhs[0] & 0x3f == REJECT => return Seen::Reject(bhs[2]),
                Heard::Pdu { .. } => {}
            }
        }
    }

    /// The reaction in a Login Response; a status other than success must end the connection.
    pub(super) fn refused(&mut self, bhs: &[u8; 48]) -> Seen {
        let status = u16::from_be_bytes([bhs[36], bhs[37]]);
        match status {
            0 => Seen::Served,
            // A redirection counts like a rejection.
            _ if self.wire.ends(ANSWER) => Seen::Login(status),
            _ => Seen::Wrong(format!("L {status:04x}h, and the connection stays")),
        }
    }

    /// Waits for the R2T of the write `itt`.
    pub(super) fn asked(&mut self, itt: u32) -> Result<Asked, Trouble> {
        // The write must not end before its data.
        match self.listen(itt, ANSWER, true) {
            Seen::Stalled => {}
            seen => return Err(Trouble::Failed(format!("a write: {seen} before its data"))),
        }
        let asked = self.asked.pop_front();
        asked.ok_or_else(|| Trouble::Failed("data of a write is not asked for".to_owned()))
    }

    /// Checks by a NOP-Out that the connection lives after the reaction `seen`. Returns `seen`, or
    /// what is wrong.
    pub(super) fn alive(&mut self, seen: Seen) -> Seen {
        if matches!(seen, Seen::Closed | Seen::Login(_) | Seen::Wrong(_)) {
            return seen;
        }
        let (data, last) = (std::mem::take(&mut self.data), self.last);
        let ping = self.ping();
        let mut lives = self.ask(ping, &[]);
        // A rejected request may be rejected again late.
        for _ in 0..3 {
            if !matches!(lives, Seen::Reject(_)) {
                break;
            }
            let ping = self.ping();
            lives = self.ask(ping, &[]);
        }
        (self.data, self.last) = (data, last);
        match (seen, lives) {
            (Seen::Stalled, Seen::Served) => Seen::Ignored,
            (Seen::Stalled, dead) => dead,
            (seen, Seen::Served) => seen,
            (seen, dead) => Seen::Wrong(format!("{seen}, then {dead}")),
        }
    }

    /// Waits for the next PDU. Stores its numbers and R2Ts, and answers pings.
    pub(super) fn hear(&mut self, time: Duration) -> Heard {
        loop {
            let Some((bhs, data)) = (match self.next(time) {
                Ok(pdu) => Some(pdu),
                Err(Filled::Late) => return Heard::Late,
                Err(_) => None,
            }) else {
                return Heard::Ended;
            };
            let opcode = bhs[0] & 0x3f;
            let (itt, ttt) = (be32(&bhs, 16), be32(&bhs, 20));
            let has_status = match opcode {
                DATA_IN => bhs[1] & 1 != 0,
                R2T => false,
                NOP_IN => itt != NO_TAG,
                _ => true,
            };
            if has_status {
                self.exp_stat_sn = be32(&bhs, 24).wrapping_add(1);
            }
            if opcode != LOGIN_RESPONSE {
                self.max_cmd_sn = be32(&bhs, 32);
            }
            match opcode {
                NOP_IN if itt == NO_TAG && ttt != NO_TAG => {
                    let pong = self.ping().itt(NO_TAG).word(20, ttt);
                    let pong = self.numbered(pong);
                    let bytes = self.pdu(&pong, &[]);
                    self.send(&bytes);
                    continue;
                }
                R2T => {
                    let (offset, length) = (be32(&bhs, 40), be32(&bhs, 44));
                    self.asked.push_back(Asked { ttt, offset, length });
                }
                _ => {}
            }
            return Heard::Pdu { bhs, data };
        }
    }

    /// Receives a PDU: its header and its data.
    fn next(&mut self, time: Duration) -> Result<([u8; 48], Vec<u8>), Filled> {
        let enough = |filled| if filled == Filled::Enough { Ok(()) } else { Err(filled) };
        enough(self.wire.fill(48, time))?;
        let mut bhs = [0; 48];
        bhs.copy_from_slice(&self.wire.peek()[..48]);
        let bytes = |number: u32| usize::try_from(number).unwrap_or(0);
        let length = bytes(be32(&bhs, 4) & 0xff_ffff);
        let digest = |of: bool| if of { 4 } else { 0 };
        let begin = 48 + usize::from(bhs[4]) * 4 + digest(self.digests[0]);
        let trailer = digest(self.digests[1] && length > 0);
        let all = begin + length.next_multiple_of(4) + trailer;
        enough(self.wire.fill(all, ANSWER))?;
        let pdu = self.wire.take(all);
        Ok((bhs, pdu[begin..begin + length].to_vec()))
    }
}
