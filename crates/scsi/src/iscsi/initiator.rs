//! An initiator's end of a session in full feature phase, of one connection or several (RFC 7143
//! 4.2, 11).
//!
//! Invariants:
//! - A command ends once, and succeeds only if every byte of its data has come intact.
//! - An answer that fits no request ends the session.

use crate::{Residual, Sense, Status};

use super::decoder::Decoder;
use super::discovery::{self, TargetRecord};
use super::keys::Parameters;
use super::login::Link;
use super::pdu::{
    AsyncMessage, DataIn, DataOut, Digests, Header, NO_TAG, Numbers, ScsiCommand, ScsiResponse,
    TaskRequest, TextRequest, TextResponse, trailer,
};

/// A command that has not ended: its initiator task tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

/// The direction and length of a command's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer<'a> {
    /// No data.
    None,
    /// These bytes, to the target; [`Answer::Wants`] requests those that were not sent at once.
    Send(&'a [u8]),
    /// So many bytes, from the target.
    Receive(u32),
}

/// A command to submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Logical unit.
    pub lun: [u8; 8],
    /// See [`crate::Command`].
    pub cdb: [u8; 16],
    /// Its data.
    pub transfer: Transfer<'a>,
}

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The command.
    pub tag: Tag,
    /// Its status; `None` if that is unknown, or the target could not execute the command.
    pub status: Option<Status>,
    /// Its sense data.
    pub sense: Option<Sense>,
    /// Bytes that were not transferred, or would have been.
    pub residual: Residual,
    /// Whether all data from the target is intact and complete.
    pub is_intact: bool,
}

impl Ended {
    /// Whether the command succeeded.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.status == Some(Status::Good) && self.is_intact
    }
}

/// A message of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The target requests data of a command (R2T): [`Initiator::send_data`].
    Wants {
        /// The command.
        tag: Tag,
        /// Offset in the command's data.
        offset: u32,
        /// Bytes.
        length: u32,
    },
    /// Data of a command, at this offset.
    Data(Tag, u32, &'a [u8]),
    /// A command has ended.
    Ended(Ended),
    /// The answer to SendTargets.
    Targets(Vec<TargetRecord>),
    /// A task management request was answered.
    Managed {
        /// Tag of the request.
        tag: Tag,
        /// See [`super::Session::answer_management`].
        response: u8,
    },
    /// A logout was answered: close the connection.
    LoggedOut {
        /// 0 if the logout succeeded.
        response: u8,
    },
    /// An asynchronous message.
    Event(AsyncMessage),
    /// The answer to a ping.
    Pong,
    /// A PDU of this end was rejected.
    Rejected {
        /// The reason (11.17.1).
        reason: u8,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Outstanding {
    pub(super) tag: Tag,
    pub(super) connection: u16,
    pub(super) lun: [u8; 8],
    pub(super) sends: u32,
    pub(super) receives: u32,
    /// Bytes that have come; or for a write, that were sent or requested.
    pub(super) moved: u32,
    pub(super) data_sn: u32,
    pub(super) r2t_sn: u32,
    /// Target transfer tags of open R2Ts, and their offsets.
    pub(super) wanted: Vec<(u32, u32)>,
    pub(super) is_intact: bool,
}

/// The owner of the PDU data that is coming.
#[derive(Debug, Clone, Copy)]
pub(super) enum Coming {
    Nobody,
    Data { tag: Tag, offset: u32, status: Option<DataIn> },
    Response(ScsiResponse),
    Text(TextResponse),
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) decoder: Decoder,
    pub(super) digests: Digests,
    pub(super) exp_stat_sn: u32,
    pub(super) peer_data_bytes: u32,
    pub(super) coming: Coming,
    pub(super) gathered: Vec<u8>,
    pub(super) is_asking: bool,
}

/// See the module's description.
#[derive(Debug)]
pub struct Initiator {
    pub(super) parameters: Parameters,
    pub(super) connections: Vec<Option<Connection>>,
    /// Outstanding commands, by the lower half of their tags.
    pub(super) commands: Vec<Option<Outstanding>>,
    pub(super) free: Vec<u16>,
    pub(super) generation: u16,
    pub(super) cmd_sn: u32,
    pub(super) max_cmd_sn: u32,
}

impl Initiator {
    /// A session with its first connection, which is number 0, for `depth` commands at a time.
    #[must_use]
    pub fn new(depth: u16, link: Link) -> Self {
        let mut session = Self {
            parameters: link.parameters,
            connections: Vec::new(),
            commands: vec![None; usize::from(depth)],
            free: (0..depth).rev().collect(),
            generation: 0,
            cmd_sn: link.cmd_sn,
            max_cmd_sn: link.max_cmd_sn,
        };
        session.join(link);
        session
    }

    /// Adds a connection. Returns its number in the session.
    pub fn join(&mut self, link: Link) -> u16 {
        self.connections.push(Some(Connection {
            decoder: link.decoder,
            digests: link.digests,
            exp_stat_sn: link.stat_sn,
            peer_data_bytes: link.parameters.peer_data_bytes,
            coming: Coming::Nobody,
            gathered: Vec::new(),
            is_asking: false,
        }));
        u16::try_from(self.connections.len() - 1).unwrap_or(u16::MAX)
    }

    /// Commands that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.commands.len() - self.free.len()
    }

    /// CmdSN of the next command: the login of another connection begins with it.
    #[must_use]
    pub const fn cmd_sn(&self) -> u32 {
        self.cmd_sn
    }

    /// Whether a place is free and the target's command window is open.
    #[must_use]
    pub const fn can_submit(&self) -> bool {
        let ahead = self.max_cmd_sn.wrapping_sub(self.cmd_sn);
        !self.free.is_empty() && ahead < 1 << 31
    }

    fn connection(&self, number: u16) -> Option<&Connection> {
        self.connections.get(usize::from(number))?.as_ref()
    }

    pub(super) fn connection_mut(&mut self, number: u16) -> Option<&mut Connection> {
        self.connections.get_mut(usize::from(number))?.as_mut()
    }

    /// Appends a command for a connection, with its unsolicited data. Returns its tag; `None` if
    /// [`Self::can_submit`] is false.
    pub fn submit(&mut self, number: u16, request: Request<'_>, out: &mut Vec<u8>) -> Option<Tag> {
        if !self.can_submit() {
            return None;
        }
        let (peer, digests, exp_stat_sn) = {
            let connection = self.connection(number)?;
            (connection.peer_data_bytes, connection.digests, connection.exp_stat_sn)
        };
        let place = self.free.pop()?;
        self.generation = (self.generation + 1) & 0x7fff;
        let tag = Tag(u32::from(self.generation) << 16 | u32::from(place));
        let (data, receives) = match request.transfer {
            Transfer::None => (&[][..], 0),
            Transfer::Send(data) => (data, 0),
            Transfer::Receive(bytes) => (&[][..], bytes),
        };
        let sends = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let first = self.parameters.first_burst_bytes.min(sends);
        let at_once = if self.parameters.immediate_data { first.min(peer) } else { 0 };
        let follows = if self.parameters.initial_r2t { 0 } else { first - at_once };
        let command = ScsiCommand {
            is_immediate: false,
            is_final: follows == 0,
            reads: receives > 0,
            writes: sends > 0,
            attribute: 1,
            lun: request.lun,
            itt: tag.0,
            expected_bytes: sends + receives,
            numbers: Numbers { cmd_sn: self.cmd_sn, exp_stat_sn },
            cdb: request.cdb,
        };
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        let (now, later) = data.split_at(at_once as usize);
        Header::Command(command).encode(digests, now.len(), out);
        out.extend_from_slice(now);
        trailer(now, digests, out);
        self.commands[usize::from(place)] = Some(Outstanding {
            tag,
            connection: number,
            lun: request.lun,
            sends,
            receives,
            moved: at_once + follows,
            data_sn: 0,
            r2t_sn: 0,
            wanted: Vec::new(),
            is_intact: true,
        });
        self.send_pieces(tag, [NO_TAG, at_once], &later[..follows as usize], out);
        Some(tag)
    }

    /// Appends the data of an [`Answer::Wants`], whole and in the order of requests, for the
    /// command's connection.
    pub fn send_data(&mut self, tag: Tag, offset: u32, data: &[u8], out: &mut Vec<u8>) {
        let Some(command) = self.command_mut(tag) else { return };
        let asked = command.wanted.iter().position(|one| one.1 == offset);
        let Some((ttt, _)) = asked.map(|index| command.wanted.remove(index)) else { return };
        self.send_pieces(tag, [ttt, offset], data, out);
    }

    // Appends data as Data-Out PDUs for one R2T, or unsolicited.
    fn send_pieces(&self, tag: Tag, [ttt, offset]: [u32; 2], data: &[u8], out: &mut Vec<u8>) {
        let Some(command) = self.command(tag) else { return };
        let Some(connection) = self.connection(command.connection) else { return };
        let most = connection.peer_data_bytes.max(512) as usize;
        let (mut at, count) = (offset, data.len().div_ceil(most));
        for (data_sn, piece) in (0..).zip(data.chunks(most)) {
            let header = DataOut {
                is_final: data_sn as usize + 1 == count,
                lun: if ttt == NO_TAG { [0; 8] } else { command.lun },
                itt: tag.0,
                ttt,
                exp_stat_sn: connection.exp_stat_sn,
                data_sn,
                offset: at,
            };
            Header::DataOut(header).encode(connection.digests, piece.len(), out);
            out.extend_from_slice(piece);
            trailer(piece, connection.digests, out);
            at = at.saturating_add(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        }
    }

    /// The sequence numbers for an immediate request on a connection, and its digests.
    pub(super) fn numbers(&self, number: u16) -> Option<(Numbers, Digests)> {
        let connection = self.connection(number)?;
        let numbers = Numbers { cmd_sn: self.cmd_sn, exp_stat_sn: connection.exp_stat_sn };
        Some((numbers, connection.digests))
    }

    /// Appends an immediate task management request (11.5.1), for the connection of the referenced
    /// command; its answer bears `tag`, which is no command's. Commands that it aborts are not
    /// answered: call [`Initiator::forget`].
    pub fn manage(
        &mut self,
        number: u16,
        tag: Tag,
        [function, lun]: [u8; 2],
        referenced: Option<Tag>,
        out: &mut Vec<u8>,
    ) {
        let Some((numbers, digests)) = self.numbers(number) else { return };
        let request = TaskRequest {
            is_immediate: true,
            function,
            lun: [0, lun, 0, 0, 0, 0, 0, 0],
            itt: tag.0,
            referenced: referenced.map_or(NO_TAG, |tag| tag.0),
            numbers,
            ref_cmd_sn: 0,
        };
        Header::TaskRequest(request).encode(digests, 0, out);
    }

    /// Frees a command without an answer, which a task management request has aborted.
    pub fn forget(&mut self, tag: Tag) {
        if self.command(tag).is_some() {
            self.free_place(tag);
        }
    }

    /// Frees the place of a command.
    pub(super) fn free_place(&mut self, tag: Tag) {
        let place = u16::try_from(tag.0 & 0xffff).unwrap_or(0);
        self.commands[usize::from(place)] = None;
        self.free.push(place);
    }

    /// Appends SendTargets, in a discovery session.
    pub fn send_targets(&mut self, number: u16, out: &mut Vec<u8>) {
        self.ask_text(number, NO_TAG, out);
    }

    /// Appends a text request, with `ttt` for the rest of an answer.
    pub(super) fn ask_text(&mut self, number: u16, ttt: u32, out: &mut Vec<u8>) {
        let Some((numbers, digests)) = self.numbers(number) else { return };
        let request = TextRequest {
            is_immediate: true,
            is_final: true,
            continues: false,
            itt: 1 << 31,
            ttt,
            numbers,
        };
        if let Some(connection) = self.connection_mut(number) {
            connection.is_asking = true;
            discovery::ask(request, digests, out);
        }
    }

    /// Appends a ping (NOP-Out); the answer is [`Answer::Pong`].
    pub fn ping(&mut self, number: u16, out: &mut Vec<u8>) {
        let Some((numbers, digests)) = self.numbers(number) else { return };
        let ping = Header::NopOut {
            is_immediate: true,
            lun: [0; 8],
            itt: 1 << 31 | 1,
            ttt: NO_TAG,
            numbers,
        };
        ping.encode(digests, 0, out);
    }

    /// Appends a logout that ends the session.
    pub fn logout(&mut self, number: u16, out: &mut Vec<u8>) {
        let Some((numbers, digests)) = self.numbers(number) else { return };
        let request = Header::LogoutRequest {
            is_immediate: true,
            reason: 0,
            itt: 1 << 31 | 2,
            cid: 0,
            numbers,
        };
        request.encode(digests, 0, out);
    }
}
