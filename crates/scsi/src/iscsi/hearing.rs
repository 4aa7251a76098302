//! How an initiator handles a target's PDUs in full feature phase (RFC 7143 4.2, 11).

use crate::{Residual, Sense, Status};

use super::decoder::{Event, Fatal};
use super::discovery;
use super::initiator::{Answer, Coming, Ended, Initiator, Outstanding, Tag};
use super::layout::{SENSE_AT, SENSE_LENGTH};
use super::pdu::{AsyncMessage, DataIn, Header, NO_TAG, R2t, ScsiResponse, TextResponse, Window};

/// Bytes of sense data and its length field, at most.
const SENSE_BYTES_MAX: usize = SENSE_AT + 252;
/// Bytes of a list of targets, at most.
const TARGETS_BYTES_MAX: usize = 4 << 20;

// The error of an answer that fits no request.
const fn unasked(opcode: u8) -> Fatal {
    Fatal::Unasked { opcode }
}

impl Initiator {
    /// Takes bytes off the front of `input` of a connection until there is an answer; `None` if
    /// more bytes are needed.
    ///
    /// # Errors
    /// When the session has to end. Outstanding commands have then neither succeeded nor failed.
    pub fn receive<'a>(
        &mut self,
        number: u16,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Answer<'a>>, Fatal> {
        loop {
            let Some(connection) = self.connection_mut(number) else { return Ok(None) };
            let Some(event) = connection.decoder.next(input)? else { return Ok(None) };
            let answer = match event {
                Event::Header(header, length) => self.header(number, header, length, out)?,
                Event::Data(bytes) => self.data(number, bytes),
                Event::End { is_intact } => self.end_of_data(number, is_intact, out)?,
            };
            if answer.is_some() {
                return Ok(answer);
            }
        }
    }

    // Takes the sequence numbers of a PDU (4.2.2): the window only grows, StatSNs are consecutive.
    fn note(&mut self, number: u16, header: &Header) -> Result<(), Fatal> {
        let bad = unasked(header.opcode());
        let (window, has_status) = match *header {
            Header::NopIn { itt, window, .. } => (window, itt != NO_TAG),
            Header::Response(ScsiResponse { window, .. })
            | Header::TaskResponse { window, .. }
            | Header::TextResponse(TextResponse { window, .. })
            | Header::LogoutResponse { window, .. }
            | Header::Async(AsyncMessage { window, .. })
            | Header::Reject { window, .. } => (window, true),
            Header::DataIn(DataIn { status, window, .. }) => (window, status.is_some()),
            Header::R2t(R2t { window, .. }) => (window, false),
            _ => return Err(bad),
        };
        let Window { stat_sn, max_cmd_sn, .. } = window;
        if max_cmd_sn.wrapping_sub(self.max_cmd_sn) < 1 << 31 {
            self.max_cmd_sn = max_cmd_sn;
        }
        let Some(connection) = self.connection_mut(number) else { return Ok(()) };
        if has_status {
            if stat_sn != connection.exp_stat_sn {
                return Err(bad);
            }
            connection.exp_stat_sn = stat_sn.wrapping_add(1);
        }
        Ok(())
    }

    // Handles a header with `length` bytes of data to follow.
    fn header<'a>(
        &mut self,
        number: u16,
        header: Header,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<Answer<'a>>, Fatal> {
        self.note(number, &header)?;
        let mut coming = Coming::Nobody;
        let answer = match header {
            Header::Response(response) if length > 0 => {
                coming = Coming::Response(response);
                None
            }
            Header::Response(response) => Some(self.end(response, None)?),
            Header::DataIn(data) => {
                self.begin_data(data, length)?;
                let (tag, status) = (Tag(data.itt), data.status.map(|_| data));
                if length > 0 {
                    coming = Coming::Data { tag, offset: data.offset, status };
                    None
                } else {
                    status.map(|data| self.end_with(data)).transpose()?
                }
            }
            Header::R2t(r2t) => Some(self.want(r2t)?),
            Header::NopIn { itt: NO_TAG, ttt: NO_TAG, .. } => None,
            Header::NopIn { itt: NO_TAG, lun, ttt, .. } => {
                if let Some((numbers, digests)) = self.numbers(number) {
                    let pong =
                        Header::NopOut { is_immediate: true, lun, itt: NO_TAG, ttt, numbers };
                    pong.encode(digests, 0, out);
                }
                None
            }
            Header::NopIn { .. } => Some(Answer::Pong),
            Header::TextResponse(response) => {
                coming = Coming::Text(response);
                None
            }
            Header::TaskResponse { response, itt, .. } => {
                Some(Answer::Managed { tag: Tag(itt), response })
            }
            Header::LogoutResponse { response, .. } => Some(Answer::LoggedOut { response }),
            Header::Async(message) => Some(Answer::Event(message)),
            Header::Reject { reason, .. } => Some(Answer::Rejected { reason }),
            other => return Err(unasked(other.opcode())),
        };
        let Some(connection) = self.connection_mut(number) else { return Ok(None) };
        connection.coming = coming;
        if let (Coming::Text(_), 0) = (coming, length) {
            return self.end_of_data(number, true, out);
        }
        Ok(answer)
    }

    /// The outstanding command with this tag.
    pub(super) fn command(&self, tag: Tag) -> Option<&Outstanding> {
        let place = self.commands.get((tag.0 & 0xffff) as usize)?;
        place.as_ref().filter(|command| command.tag == tag)
    }

    /// The outstanding command with this tag, mutable.
    pub(super) fn command_mut(&mut self, tag: Tag) -> Option<&mut Outstanding> {
        let place = self.commands.get_mut((tag.0 & 0xffff) as usize)?;
        place.as_mut().filter(|command| command.tag == tag)
    }

    // Checks Data-In: in order, and no more than was requested (11.7).
    fn begin_data(&mut self, data: DataIn, length: u32) -> Result<(), Fatal> {
        let command = self.command_mut(Tag(data.itt)).ok_or(unasked(0x25))?;
        let is_next = data.offset == command.moved && data.data_sn == command.data_sn;
        if !is_next || length > command.receives.saturating_sub(command.moved) {
            return Err(unasked(0x25));
        }
        command.moved += length;
        command.data_sn += 1;
        Ok(())
    }

    // Checks an R2T: no more at a time than negotiated, in order, within the command's data (11.8).
    fn want<'a>(&mut self, r2t: R2t) -> Result<Answer<'a>, Fatal> {
        let tag = Tag(r2t.itt);
        let max_burst = self.parameters.max_burst_bytes;
        let most = usize::from(self.parameters.max_outstanding_r2t);
        let command = self.command_mut(tag).ok_or(unasked(0x31))?;
        let R2t { ttt, offset, length, .. } = r2t;
        let is_next = offset == command.moved && r2t.r2t_sn == command.r2t_sn;
        let room = command.sends.saturating_sub(command.moved).min(max_burst);
        if command.wanted.len() >= most || !is_next || length == 0 || length > room {
            return Err(unasked(0x31));
        }
        command.moved += length;
        command.r2t_sn += 1;
        command.wanted.push((ttt, offset));
        Ok(Answer::Wants { tag, offset, length })
    }

    // Takes a piece of a PDU's data.
    fn data<'a>(&mut self, number: u16, bytes: &'a [u8]) -> Option<Answer<'a>> {
        let connection = self.connection_mut(number)?;
        let most = match &mut connection.coming {
            Coming::Data { tag, offset, .. } => {
                let at = *offset;
                *offset += u32::try_from(bytes.len()).unwrap_or(0);
                return Some(Answer::Data(*tag, at, bytes));
            }
            Coming::Response(_) => SENSE_BYTES_MAX,
            Coming::Text(_) => TARGETS_BYTES_MAX,
            Coming::Nobody => 0,
        };
        let room = most.saturating_sub(connection.gathered.len()).min(bytes.len());
        connection.gathered.extend_from_slice(&bytes[..room]);
        None
    }

    // Takes the end of a PDU's data.
    fn end_of_data<'a>(
        &mut self,
        number: u16,
        is_intact: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Answer<'a>>, Fatal> {
        let Some(connection) = self.connection_mut(number) else { return Ok(None) };
        match std::mem::replace(&mut connection.coming, Coming::Nobody) {
            Coming::Nobody => Ok(None),
            Coming::Data { tag, status, .. } => {
                self.command_mut(tag).ok_or(unasked(0x25))?.is_intact &= is_intact;
                status.map(|data| self.end_with(data)).transpose()
            }
            Coming::Response(response) => {
                let gathered = std::mem::take(&mut connection.gathered);
                let has_length = gathered.len() >= SENSE_AT;
                let length = if has_length { SENSE_LENGTH.get(&gathered) } else { 0 };
                let sense =
                    gathered.get(SENSE_AT..SENSE_AT + usize::from(length)).and_then(Sense::read);
                self.end(response, sense.filter(|_| is_intact)).map(Some)
            }
            Coming::Text(response) => {
                if !connection.is_asking || !is_intact {
                    return Err(unasked(0x24));
                }
                if !response.is_final {
                    self.ask_text(number, response.ttt, out);
                    return Ok(None);
                }
                connection.is_asking = false;
                let gathered = std::mem::take(&mut connection.gathered);
                discovery::told(&gathered).map(|targets| Some(Answer::Targets(targets)))
            }
        }
    }

    // Ends a command whose last Data-In PDU has a status (11.7.2).
    fn end_with<'a>(&mut self, data: DataIn) -> Result<Answer<'a>, Fatal> {
        let response = ScsiResponse {
            residual: data.residual,
            status: data.status.unwrap_or(0),
            itt: data.itt,
            exp_data_sn: data.data_sn.wrapping_add(1),
            ..ScsiResponse::default()
        };
        self.end(response, None)
    }

    // Ends a command, and checks that all its data has come.
    fn end<'a>(
        &mut self,
        response: ScsiResponse,
        sense: Option<Sense>,
    ) -> Result<Answer<'a>, Fatal> {
        let tag = Tag(response.itt);
        let command = self.command(tag).ok_or(unasked(0x21))?;
        let status = Status::from_byte(response.status).filter(|_| response.response == 0);
        let expected = match response.residual {
            Residual::Underflow(bytes) => command.receives.saturating_sub(bytes),
            Residual::None | Residual::Overflow(_) => command.receives,
        };
        let is_whole = command.receives == 0 || command.moved == expected;
        let is_counted = command.receives == 0 || response.exp_data_sn == command.data_sn;
        let is_good = status == Some(Status::Good);
        let is_intact = command.is_intact && (!is_good || is_whole && is_counted);
        self.free_place(tag);
        Ok(Answer::Ended(Ended { tag, status, sense, residual: response.residual, is_intact }))
    }
}
