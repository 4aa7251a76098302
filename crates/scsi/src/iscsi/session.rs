//! A target's end of a session in full feature phase, of one connection or several (RFC 7143 4.2,
//! 11).
//!
//! ```text
//! PDU ─► its turn? ─► command ─┬─────────────────────────────┬─► all data ─► answer
//!                              └─► data ─► (R2T ─► data ...) ─┘
//! ```
//!
//! Commands are passed on in the order of CmdSN; a connection whose next command is not due waits
//! with all that follows. Nothing else is buffered: on one connection commands come in order
//! (4.2.2.1), so another connection will bring the missing ones.
//!
//! Invariants:
//! - A command is passed on once and answered once, on the connection that has brought it; an
//!   aborted one is not answered, and has its place until its owner completes it.
//! - Data is passed on in order, and only what its command expects.
//! - The window never shrinks.

use std::collections::BTreeSet;

use crate::Sense;

use super::decoder::{Decoder, Event, Fatal};
use super::keys::Parameters;
use super::login::Link;
use super::pdu::{Digests, Header, ScsiCommand, TaskRequest, Window, trailer};
use super::task::{Outstanding, Task, Tasks, Unsolicited};
use super::text;

/// Limits on outstanding requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Non-immediate commands; above 0.
    pub commands: u16,
    /// Immediate commands, and immediate other requests, each.
    pub immediate: u16,
}

/// A task management request that has not been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Management(pub(super) u32);

/// The connections that a logout ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logout {
    /// All of the session.
    Session,
    /// This one.
    Connection(u16),
}

/// A request or data of an initiator.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// A command. Call [`Session::expect`] to set how much of its data is wanted, before anything
    /// else is received.
    Command(Task, ScsiCommand),
    /// Data of a command, at this offset; not more than is wanted.
    Data(Task, u32, &'a [u8]),
    /// All wanted data has come, or the sense of why it will not.
    AllData(Task, Result<(), Sense>),
    /// A task management request: [`Session::affected`] returns the tasks, [`Session::abort`]
    /// aborts them, and [`Session::answer_management`] answers when all of them have ended.
    Manage(Management, TaskRequest),
    /// SendTargets with this value, answered by [`Session::answer_text`].
    SendTargets(String),
    /// A logout. Tasks of its connections were aborted; [`Session::finish_logout`] answers when
    /// they have ended.
    Logout(Logout),
    /// The answer to [`Session::ping`].
    Pong,
}

/// Reasons for Reject (11.17.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reject {
    DataDigest = 0x02,
    Snack = 0x03,
    Protocol = 0x04,
    NotSupported = 0x05,
    TooManyImmediate = 0x06,
    InvalidField = 0x09,
}

/// The owner of the PDU data that is coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coming {
    Nobody,
    /// A command, at this offset; `end` says what ends with the PDU.
    Of {
        task: Task,
        offset: u32,
        end: Ends,
    },
    /// A ping, whose data is sent back.
    Ping {
        itt: u32,
        lun: [u8; 8],
    },
    /// A text request.
    Text,
}

/// What ends with a data PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The immediate data of a command.
    Immediate,
    /// Only the PDU.
    Pdu,
    /// The unsolicited data.
    Unsolicited,
    /// The data of an R2T.
    Asked,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) decoder: Decoder,
    pub(crate) digests: Digests,
    pub(crate) cid: u16,
    pub(crate) stat_sn: u32,
    /// Bytes of data in a PDU to the initiator, at most.
    pub(crate) peer_data_bytes: u32,
    pub(crate) coming: Coming,
    /// A request that waits for its CmdSN, and the length of its data.
    waiting: Option<(Header, u32)>,
    /// Bytes of a ping or a text that have come.
    pub(crate) gathered: Vec<u8>,
    pub(crate) text: super::text_state::TextState,
    /// A logout that has not been answered, and its tag.
    pub(super) logout: Option<(u32, Logout)>,
    pub(super) pings: u32,
}

/// See the module's description.
#[derive(Debug)]
pub struct Session {
    pub(crate) parameters: Parameters,
    pub(crate) is_discovery: bool,
    pub(super) limits: SessionLimits,
    pub(super) exp_cmd_sn: u32,
    /// Later CmdSNs that count as received: of commands that were aborted before they came.
    pub(super) forestalled: BTreeSet<u32>,
    pub(crate) tasks: Tasks,
    pub(crate) connections: Vec<Option<Connection>>,
    pub(super) managed: Vec<(Management, u16, u32)>,
    pub(super) next_managed: u32,
}

impl Session {
    /// A session with its first connection, which is number 0.
    #[must_use]
    pub fn new(limits: SessionLimits, link: Link) -> Self {
        let places = limits.commands.max(1).saturating_add(limits.immediate).min(u16::MAX - 1);
        let mut session = Self {
            parameters: link.parameters,
            is_discovery: link.is_discovery,
            limits,
            exp_cmd_sn: link.cmd_sn,
            forestalled: BTreeSet::new(),
            tasks: Tasks::new(places),
            connections: Vec::new(),
            managed: Vec::new(),
            next_managed: 0,
        };
        session.join(link);
        session
    }

    /// Adds a connection. Returns its number in the session.
    pub fn join(&mut self, link: Link) -> u16 {
        let connection = Connection::new(link);
        let free = self.connections.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.connections[index] = Some(connection);
        u16::try_from(index).unwrap_or(u16::MAX)
    }

    /// ExpCmdSN and MaxCmdSN, for the login of another connection.
    #[must_use]
    pub fn window(&self) -> [u32; 2] {
        [self.exp_cmd_sn, self.max_cmd_sn()]
    }

    /// The negotiated parameters of the session.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Numbers and CIDs of open connections.
    pub fn connections(&self) -> impl Iterator<Item = (u16, u16)> {
        let open = self.connections.iter().enumerate();
        open.filter_map(|(index, one)| Some((u16::try_from(index).ok()?, one.as_ref()?.cid)))
    }

    /// A waiting connection whose request is now due, or is to be dropped.
    #[must_use]
    pub fn ready(&self) -> Option<u16> {
        let is_ready = |number: &u16| {
            let waiting = self.connection(*number).and_then(|one| one.waiting.as_ref());
            let turn = waiting.and_then(|(header, _)| header.turn());
            turn.is_some_and(|(_, cmd_sn)| self.turn(cmd_sn) != Turn::Later)
        };
        self.connections().map(|(number, _)| number).find(is_ready)
    }

    /// How many commands have not ended, aborted ones included.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    /// Commands that have not ended, aborted ones included.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        self.tasks.iter().map(|(task, _)| task)
    }

    /// Whether unsolicited data of a command is still to come.
    #[must_use]
    pub fn comes_unasked(&self, task: Task) -> bool {
        let comes = |one: &Outstanding| !one.is_whole || one.unsolicited != Unsolicited::None;
        self.tasks.get(task).is_some_and(comes)
    }

    /// The connection that a command is answered on.
    #[must_use]
    pub fn connection_of(&self, task: Task) -> Option<u16> {
        self.tasks.get(task).map(|outstanding| outstanding.connection)
    }

    /// The connection of this number; `None` if it is not open.
    pub(crate) fn connection(&self, number: u16) -> Option<&Connection> {
        self.connections.get(usize::from(number))?.as_ref()
    }

    /// The connection of this number, mutable.
    pub(crate) fn connection_mut(&mut self, number: u16) -> Option<&mut Connection> {
        self.connections.get_mut(usize::from(number))?.as_mut()
    }

    /// Removes a connection and aborts all its tasks. With error recovery level 0 its lost commands
    /// cannot be recovered, so the caller has to end the session, unless the connection was logged
    /// out or replaced (7.1.4.4).
    pub fn cut(&mut self, number: u16) {
        let tasks: Vec<Task> = self.tasks_of(number).collect();
        for task in tasks {
            self.tasks.abort(task);
        }
        self.managed.retain(|(_, connection, _)| *connection != number);
        if let Some(place) = self.connections.get_mut(usize::from(number)) {
            *place = None;
        }
    }

    /// The tasks of a connection.
    pub(super) fn tasks_of(&self, number: u16) -> impl Iterator<Item = Task> {
        let of = move |(_, one): &(Task, &Outstanding)| one.connection == number;
        self.tasks.iter().filter(of).map(|(task, _)| task)
    }

    // MaxCmdSN: the window is as wide as there are free places for non-immediate commands
    // (4.2.2.1).
    fn max_cmd_sn(&self) -> u32 {
        let taken = self.tasks.len() - self.tasks.immediate();
        let free = u32::from(self.limits.commands.max(1)) - u32::try_from(taken).unwrap_or(0);
        self.exp_cmd_sn.wrapping_add(free).wrapping_sub(1)
    }

    /// Sequence numbers for an answer; one with a status takes the next StatSN.
    pub(crate) fn answer_window(&mut self, number: u16, has_status: bool) -> Window {
        let [exp_cmd_sn, max_cmd_sn] = self.window();
        let Some(connection) = self.connection_mut(number) else { return Window::default() };
        let stat_sn = connection.stat_sn;
        if has_status {
            connection.stat_sn = stat_sn.wrapping_add(1);
        }
        Window { stat_sn, exp_cmd_sn, max_cmd_sn }
    }

    /// Takes bytes off the front of `input` of a connection until there is an arrival; `None` if
    /// more bytes are needed or the connection has to wait. Appends answers that need no decision
    /// to `out`.
    ///
    /// # Errors
    /// When the connection, and the session with it, has to be closed.
    pub fn receive<'a>(
        &mut self,
        number: u16,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival<'a>>, Fatal> {
        loop {
            let Some(connection) = self.connection_mut(number) else { return Ok(None) };
            // 11.14: nothing follows a logout.
            if connection.logout.is_some() {
                return Ok(None);
            }
            let arrival = if let Some((header, length)) = connection.waiting.take() {
                self.header(number, header, length, out)?
            } else {
                let Some(event) = connection.decoder.next(input)? else { return Ok(None) };
                match event {
                    Event::Header(header, length) => self.header(number, header, length, out)?,
                    Event::Data(bytes) => self.data(number, bytes),
                    Event::End { is_intact } => self.end_of_data(number, is_intact, out),
                }
            };
            if arrival.is_some() {
                return Ok(arrival);
            }
            if self.connection(number).is_some_and(|one| one.waiting.is_some()) {
                return Ok(None);
            }
        }
    }

    // Handles a header with `length` bytes of data to follow.
    fn header<'a>(
        &mut self,
        number: u16,
        header: Header,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival<'a>>, Fatal> {
        if let Some(connection) = self.connection_mut(number) {
            connection.coming = Coming::Nobody;
        }
        if let Some((false, cmd_sn)) = header.turn() {
            match self.turn(cmd_sn) {
                Turn::Now => self.count(cmd_sn),
                Turn::Never => return Ok(None),
                Turn::Later if self.connections().count() > 1 => {
                    if let Some(connection) = self.connection_mut(number) {
                        connection.waiting = Some((header, length));
                    }
                    return Ok(None);
                }
                Turn::Later => {
                    let expected = self.exp_cmd_sn;
                    return Err(Fatal::MissingCommands { came: cmd_sn, expected });
                }
            }
        }
        match header {
            _ if header.lacks_tag() => {
                self.reject(number, Reject::InvalidField, out);
                Ok(None)
            }
            Header::Command(command) => Ok(self.command(number, command, length, out)),
            Header::DataOut(data) => Ok(match self.data_out(number, data, length, out) {
                Ok(arrival) => arrival,
                Err(reject) => {
                    self.reject(number, reject, out);
                    None
                }
            }),
            Header::NopOut { is_immediate, lun, itt, .. } => {
                Ok(self.nop(number, [is_immediate, length > 0], lun, itt, out))
            }
            Header::TaskRequest(request) => Ok(self.manage(number, request, out)),
            Header::TextRequest(request) => Ok(self.text(number, request, length, out)),
            Header::LogoutRequest { reason, itt, cid, .. } => {
                Ok(self.logout(number, reason, [itt, u32::from(cid)], out))
            }
            // Error recovery level 0: nothing is retransmitted (11.16).
            Header::Snack { .. } => {
                self.reject(number, Reject::Snack, out);
                Ok(None)
            }
            // 6.3: a second login is not allowed.
            Header::LoginRequest(_) => Err(Fatal::Sequence { opcode: header.opcode() }),
            _ => {
                self.reject(number, Reject::NotSupported, out);
                Ok(None)
            }
        }
    }

    /// Whether a request with this CmdSN is due.
    pub(super) fn turn(&self, cmd_sn: u32) -> Turn {
        // Serial numbers (4.2.2.1, RFC 1982).
        let ahead = cmd_sn.wrapping_sub(self.exp_cmd_sn);
        let width = self.max_cmd_sn().wrapping_sub(self.exp_cmd_sn).wrapping_add(1);
        match ahead {
            _ if self.forestalled.contains(&cmd_sn) => Turn::Never,
            0 if width > 0 => Turn::Now,
            ahead if ahead < width => Turn::Later,
            // A request outside the window is dropped.
            _ => Turn::Never,
        }
    }

    /// Rejects the latest PDU, with its header (11.17).
    pub(crate) fn reject(&mut self, number: u16, reason: Reject, out: &mut Vec<u8>) {
        let window = self.answer_window(number, true);
        let Some(connection) = self.connection(number) else { return };
        let header = connection.decoder.latest_header();
        Header::Reject { reason: reason as u8, window }.encode(
            connection.digests,
            header.len(),
            out,
        );
        out.extend_from_slice(header);
        trailer(header, connection.digests, out);
    }

    // Takes a SCSI Command: rejects it, or gives it a place.
    fn command<'a>(
        &mut self,
        number: u16,
        command: ScsiCommand,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let is_known = self.tasks.find(command.itt).is_some();
        let has_more =
            self.connection(number).is_some_and(|one| !one.decoder.additional().is_empty());
        let refused = match () {
            () if self.is_discovery => Some(Reject::Protocol),
            () if is_known => Some(Reject::Protocol),
            // Bidirectional commands and longer CDBs are not supported (11.2.2).
            () if has_more || command.reads && command.writes => Some(Reject::InvalidField),
            () if command.is_immediate
                && self.tasks.immediate() >= usize::from(self.limits.immediate) =>
            {
                Some(Reject::TooManyImmediate)
            }
            () => None,
        };
        if let Some(reject) = refused {
            self.reject(number, reject, out);
            return None;
        }
        let mut outstanding = Outstanding::new(command, number);
        outstanding.is_whole = length == 0;
        let parameters = &self.parameters;
        let most = command.expected_bytes.min(parameters.first_burst_bytes);
        let may = command.writes && (length == 0 || parameters.immediate_data) && length <= most;
        let follows = !command.is_final && command.writes;
        if length > 0 && !may || follows && parameters.initial_r2t {
            outstanding.failure = Some(Sense::UNEXPECTED_UNSOLICITED_DATA);
        } else if follows {
            outstanding.unsolicited = Unsolicited::Until { end: most, data_sn: 0 };
        }
        // There is a place for every command in the window.
        let task = self.tasks.take(outstanding)?;
        let connection = self.connection_mut(number)?;
        if length > 0 {
            connection.coming = Coming::Of { task, offset: 0, end: Ends::Immediate };
        }
        Some(Arrival::Command(task, command))
    }
}

/// Whether a request is due: now, later, or never (it is dropped).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    Later,
    Never,
}

impl Connection {
    fn new(link: Link) -> Self {
        Self {
            decoder: link.decoder,
            digests: link.digests,
            cid: link.cid,
            stat_sn: link.stat_sn,
            peer_data_bytes: link.parameters.peer_data_bytes,
            coming: Coming::Nobody,
            waiting: None,
            gathered: Vec::new(),
            text: super::text_state::TextState::default(),
            logout: None,
            pings: 0,
        }
    }

    /// Collects bytes of a ping or a text, up to their limit.
    pub(crate) fn gather(&mut self, bytes: &[u8]) {
        let most = match self.coming {
            // As much as may be sent back (11.18).
            Coming::Ping { .. } => self.peer_data_bytes as usize,
            _ => text::TEXT_BYTES_MAX,
        };
        let room = most.saturating_sub(self.gathered.len()).min(bytes.len());
        self.gathered.extend_from_slice(&bytes[..room]);
    }
}
