//! Data of commands at the target's end: Data-Out, R2T and Data-In (RFC 7143 4.2.5.2, 11.7, 11.8).

use crate::{Residual, Sense, Status};

use super::layout::{SENSE_AT, SENSE_LENGTH};
use super::pdu::{DataIn, DataOut, Digests, Header, NO_TAG, R2t, ScsiResponse, Window, trailer};
use super::session::{Arrival, Coming, Ends, Reject, Session};
use super::task::{Outstanding, Task, Unsolicited};

/// Whether a command's data has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// All data has come: the command can be executed.
    Met,
    /// Data is still coming; [`Arrival::AllData`] reports its end.
    Coming,
    /// The data is invalid: the command ends with this sense.
    Failed(Sense),
}

impl Session {
    /// Expects `bytes` bytes of a command's data, fewer if its initiator has fewer. Sends R2Ts for
    /// data that is not unsolicited, so the caller must have memory for all.
    pub fn expect(&mut self, task: Task, bytes: u32, out: &mut Vec<u8>) -> Expectation {
        let Some(outstanding) = self.tasks.get_mut(task) else { return Expectation::Met };
        let command = &outstanding.command;
        let most = if command.writes { command.expected_bytes } else { 0 };
        outstanding.wanted = Some(bytes.min(most));
        outstanding.is_held = false;
        if let Some(sense) = outstanding.failure {
            outstanding.is_told = true;
            return Expectation::Failed(sense);
        }
        if outstanding.is_complete() {
            outstanding.is_told = true;
            return Expectation::Met;
        }
        self.solicit(task, out);
        Expectation::Coming
    }

    /// As [`Session::expect`], but only for unsolicited data: no R2T is sent before
    /// [`Session::expect`] is called, too.
    pub fn expect_unasked(&mut self, task: Task, bytes: u32) {
        let Some(outstanding) = self.tasks.get_mut(task) else { return };
        let command = &outstanding.command;
        let most = if command.writes { command.expected_bytes } else { 0 };
        outstanding.wanted = Some(bytes.min(most));
        outstanding.is_held = true;
    }

    // Sends R2Ts in order, as many as may be outstanding (11.8), once all unsolicited data has
    // come.
    fn solicit(&mut self, task: Task, out: &mut Vec<u8>) {
        let parameters = self.parameters;
        let number = self.tasks.get(task).map_or(0, |outstanding| outstanding.connection);
        let window = self.answer_window(number, false);
        let digests = self.digests(number);
        let Some(outstanding) = self.tasks.get_mut(task) else { return };
        let comes = !outstanding.is_whole || outstanding.unsolicited != Unsolicited::None;
        if comes || outstanding.is_held {
            return;
        }
        let (wanted, asked) = (outstanding.wanted.unwrap_or(0), &mut outstanding.asked);
        if asked.sent == 0 {
            asked.end = outstanding.received;
        }
        while asked.end < wanted
            && asked.sent - asked.done < u32::from(parameters.max_outstanding_r2t)
        {
            let length = parameters.max_burst_bytes.min(wanted - asked.end);
            if asked.sent == asked.done {
                asked.oldest_end = asked.end + length;
            }
            let r2t = R2t {
                lun: outstanding.command.lun,
                itt: outstanding.command.itt,
                ttt: transfer_tag(task, asked.sent),
                window,
                r2t_sn: asked.sent,
                offset: asked.end,
                length,
            };
            Header::R2t(r2t).encode(digests, 0, out);
            asked.sent += 1;
            asked.end += length;
        }
    }

    /// Digests of a connection, for [`trailer`].
    #[must_use]
    pub fn digests(&self, number: u16) -> Digests {
        self.connection(number).map_or_else(Digests::default, |connection| connection.digests)
    }

    /// Takes the header of a Data-Out PDU, and checks it against its command.
    pub(crate) fn data_out<'a>(
        &mut self,
        number: u16,
        data: DataOut,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival<'a>>, Reject> {
        let Some(task) = self.tasks.find(data.itt) else {
            // Data that was in transit when its command ended is dropped.
            let is_late = self.tasks.ended_early(data.itt);
            return if is_late { Ok(None) } else { Err(Reject::InvalidField) };
        };
        let Some(outstanding) = self.tasks.get_mut(task) else { return Ok(None) };
        // A command's data comes on the connection of the command (4.2.2.1).
        if outstanding.connection != number || !outstanding.command.writes {
            return Err(Reject::Protocol);
        }
        if outstanding.failure.is_some() {
            return Ok(None);
        }
        let fits = if data.ttt == NO_TAG {
            unsolicited(outstanding, &data, length)
        } else {
            solicited(outstanding, task, &data, length)?
        };
        match fits {
            Ok(end) => {
                let coming = Coming::Of { task, offset: data.offset, end };
                if let Some(connection) = self.connection_mut(number) {
                    connection.coming = coming;
                }
                Ok(if length == 0 { self.end_of_data(number, true, out) } else { None })
            }
            Err(sense) => Ok(self.fail(task, sense)),
        }
    }

    // Fails a command because of its data. Returns the arrival that reports it, once.
    fn fail<'a>(&mut self, task: Task, sense: Sense) -> Option<Arrival<'a>> {
        let outstanding = self.tasks.get_mut(task)?;
        outstanding.failure = Some(sense);
        let is_told = std::mem::replace(&mut outstanding.is_told, true);
        (!is_told && !outstanding.is_aborted).then_some(Arrival::AllData(task, Err(sense)))
    }

    /// Takes a piece of a PDU's data. Returns the part that its command expects, if any.
    pub(crate) fn data<'a>(&mut self, number: u16, bytes: &'a [u8]) -> Option<Arrival<'a>> {
        let Self { connections, tasks, .. } = self;
        let connection = connections.get_mut(usize::from(number))?.as_mut()?;
        let Coming::Of { task, offset, .. } = &mut connection.coming else {
            if connection.coming != Coming::Nobody {
                connection.gather(bytes);
            }
            return None;
        };
        let at = *offset;
        // Checked against the command when the PDU began.
        *offset += u32::try_from(bytes.len()).unwrap_or(0);
        let outstanding = tasks.get(*task).filter(|one| !one.is_aborted && one.failure.is_none());
        let room = outstanding?.wanted.unwrap_or(0).saturating_sub(at) as usize;
        let bytes = &bytes[..room.min(bytes.len())];
        (!bytes.is_empty()).then_some(Arrival::Data(*task, at, bytes))
    }

    /// Takes the end of a PDU's data, intact or with a wrong digest. Returns what arrived with it.
    pub(crate) fn end_of_data<'a>(
        &mut self,
        number: u16,
        is_intact: bool,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let connection = self.connection_mut(number)?;
        let coming = std::mem::replace(&mut connection.coming, Coming::Nobody);
        if !is_intact {
            // 7.8: the PDU is rejected, and its command fails.
            self.reject(number, Reject::DataDigest, out);
            let Coming::Of { task, end, .. } = coming else { return None };
            self.ended(task, end, None);
            return self.fail(task, Sense::PROTOCOL_SERVICE_CRC_ERROR);
        }
        match coming {
            Coming::Nobody => None,
            Coming::Ping { itt, lun } => {
                self.send_ping_back(number, itt, lun, out);
                None
            }
            Coming::Text => self.text_has_come(number, out),
            Coming::Of { task, offset, end } => {
                self.ended(task, end, Some(offset));
                let outstanding = self.tasks.get_mut(task)?;
                if outstanding.is_complete() {
                    let is_told = std::mem::replace(&mut outstanding.is_told, true);
                    let is_over = is_told || outstanding.is_aborted;
                    return (!is_over).then_some(Arrival::AllData(task, Ok(())));
                }
                if outstanding.failure.is_none() && !outstanding.is_aborted {
                    self.solicit(task, out);
                }
                None
            }
        }
    }

    // Notes the end of a Data-Out PDU, and of the sequence that it ends.
    fn ended(&mut self, task: Task, end: Ends, received: Option<u32>) {
        let max_burst = self.parameters.max_burst_bytes;
        let Some(outstanding) = self.tasks.get_mut(task) else { return };
        if let Some(received) = received {
            outstanding.received = received;
        }
        match end {
            Ends::Immediate => outstanding.is_whole = true,
            Ends::Pdu => {}
            Ends::Unsolicited => outstanding.unsolicited = Unsolicited::None,
            Ends::Asked => {
                let asked = &mut outstanding.asked;
                asked.done += 1;
                asked.data_sn = 0;
                asked.oldest_end = asked.oldest_end.saturating_add(max_burst).min(asked.end);
            }
        }
    }

    /// Appends the header of the next Data-In PDU of a command, of which `length` bytes of data are
    /// left. Returns the bytes of this PDU: the caller appends those and [`trailer`], then calls
    /// again. 0 if the initiator takes no more.
    ///
    /// With `about_bytes` these bytes are the command's last: it has succeeded, its residual refers
    /// to `about_bytes`, and its place is free after the last PDU, or a response if there is no
    /// data.
    pub fn data_header(
        &mut self,
        task: Task,
        length: u32,
        about_bytes: Option<u64>,
        out: &mut Vec<u8>,
    ) -> u32 {
        let Some(outstanding) = self.tasks.get(task) else { return 0 };
        let number = outstanding.connection;
        let rest = length.min(outstanding.room());
        let peer = self.connection(number).map_or(0, |connection| connection.peer_data_bytes);
        let burst = self.parameters.max_burst_bytes - outstanding.burst;
        let piece = if outstanding.is_aborted { 0 } else { rest.min(peer).min(burst) };
        let ends = about_bytes.filter(|_| piece == rest);
        if piece == 0 {
            if let Some(about_bytes) = about_bytes {
                self.respond(task, Status::Good, &[], about_bytes, out);
            }
            return 0;
        }
        let (offset, data_sn, command) =
            (outstanding.sent, outstanding.data_sn, outstanding.command);
        // A sequence ends with the data, or at MaxBurstLength (11.7.1).
        let is_final = piece == rest || piece == burst;
        let window = match (ends, self.answer_window(number, ends.is_some())) {
            (Some(_), window) => window,
            (None, window) => Window { stat_sn: 0, ..window },
        };
        let residual =
            ends.map_or(Residual::None, |about| Residual::of(command.expected_bytes, about));
        let header = DataIn {
            is_final,
            status: ends.map(|_| Status::Good as u8),
            residual,
            lun: [0; 8],
            itt: command.itt,
            window: self.with_place_freed(task, ends.is_some(), window),
            data_sn,
            offset,
        };
        Header::DataIn(header).encode(self.digests(number), piece as usize, out);
        match self.tasks.get_mut(task) {
            Some(_) if ends.is_some() => self.release(task),
            Some(outstanding) => {
                outstanding.sent += piece;
                outstanding.data_sn += 1;
                outstanding.burst = if is_final { 0 } else { outstanding.burst + piece };
            }
            None => {}
        }
        piece
    }

    // The window of an answer, one command larger if the answer ends a non-immediate command.
    fn with_place_freed(&self, task: Task, ends: bool, window: Window) -> Window {
        let is_ordered = self.tasks.get(task).is_some_and(|one| !one.command.is_immediate);
        let more = u32::from(ends && is_ordered);
        Window { max_cmd_sn: window.max_cmd_sn.wrapping_add(more), ..window }
    }

    /// Appends all data of a command that has succeeded, as Data-In PDUs with headers and digests.
    pub fn send_data(&mut self, task: Task, data: &[u8], about_bytes: u64, out: &mut Vec<u8>) {
        let digests =
            self.connection_of(task).map_or_else(Digests::default, |number| self.digests(number));
        let mut rest = data;
        loop {
            let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let piece = self.data_header(task, length, Some(about_bytes), out) as usize;
            out.extend_from_slice(&rest[..piece]);
            trailer(&rest[..piece], digests, out);
            rest = &rest[piece..];
            if piece == 0 || self.tasks.get(task).is_none() {
                return;
            }
        }
    }

    /// Answers a command and frees its place; the residual refers to `about_bytes`. `sense` is
    /// written by [`Sense::write`]. Data of the command that still comes is dropped.
    pub fn respond(
        &mut self,
        task: Task,
        status: Status,
        sense: &[u8],
        about_bytes: u64,
        out: &mut Vec<u8>,
    ) {
        let Some(outstanding) = self.tasks.get(task) else { return };
        let (command, number) = (outstanding.command, outstanding.connection);
        let (exp_data_sn, is_aborted) = (outstanding.data_sn, outstanding.is_aborted);
        self.release(task);
        if is_aborted {
            return;
        }
        let window = self.answer_window(number, true);
        let response = ScsiResponse {
            residual: Residual::of(command.expected_bytes, about_bytes),
            response: 0,
            status: status as u8,
            itt: command.itt,
            window,
            exp_data_sn,
        };
        // 11.4.7: sense data has its length before it.
        let mut data = Vec::new();
        if !sense.is_empty() {
            data.resize(SENSE_AT, 0);
            SENSE_LENGTH.put(&mut data, u16::try_from(sense.len()).unwrap_or(0));
            data.extend_from_slice(sense);
        }
        let digests = self.digests(number);
        Header::Response(response).encode(digests, data.len(), out);
        out.extend_from_slice(&data);
        trailer(&data, digests, out);
    }

    // Frees a command's place; the rest of a PDU for it is dropped.
    fn release(&mut self, task: Task) {
        for connection in self.connections.iter_mut().flatten() {
            if matches!(connection.coming, Coming::Of { task: of, .. } if of == task) {
                connection.coming = Coming::Nobody;
            }
        }
        self.tasks.release(task);
    }
}

// A target transfer tag: the command's place and the number of the R2T; never `NO_TAG`.
const fn transfer_tag(task: Task, r2t_sn: u32) -> u32 {
    (task.0 as u32) << 16 | r2t_sn & 0xffff
}

// Checks unsolicited data (11.7): in order, and within FirstBurstLength.
fn unsolicited(outstanding: &mut Outstanding, data: &DataOut, length: u32) -> Result<Ends, Sense> {
    let Unsolicited::Until { end, data_sn } = &mut outstanding.unsolicited else {
        return Err(Sense::UNEXPECTED_UNSOLICITED_DATA);
    };
    if data.data_sn != *data_sn || data.offset != outstanding.received {
        return Err(Sense::PROTOCOL_SERVICE_CRC_ERROR);
    }
    if length > *end - outstanding.received {
        return Err(Sense::UNEXPECTED_UNSOLICITED_DATA);
    }
    *data_sn += 1;
    Ok(if data.is_final { Ends::Unsolicited } else { Ends::Pdu })
}

// Checks solicited data: for the oldest R2T, in order, and exactly its length.
fn solicited(
    outstanding: &mut Outstanding,
    task: Task,
    data: &DataOut,
    length: u32,
) -> Result<Result<Ends, Sense>, Reject> {
    let (received, asked) = (outstanding.received, &mut outstanding.asked);
    let is_asked = asked.sent != asked.done && data.ttt == transfer_tag(task, asked.done);
    if !is_asked || data.lun != outstanding.command.lun {
        return Err(Reject::InvalidField);
    }
    if data.data_sn != asked.data_sn || data.offset != received {
        return Ok(Err(Sense::PROTOCOL_SERVICE_CRC_ERROR));
    }
    let rest = asked.oldest_end - received;
    if length == 0 || length > rest || data.is_final != (length == rest) {
        return Ok(Err(Sense::NOT_ENOUGH_UNSOLICITED_DATA));
    }
    asked.data_sn += 1;
    Ok(Ok(if data.is_final { Ends::Asked } else { Ends::Pdu }))
}
