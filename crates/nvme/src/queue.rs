//! A controller's end of one connection, which carries one queue pair (TCP 3.1, 3.4).
//!
//! ```text
//! ICReq ─► ICResp ─► Connect ─► command ─┬─────────────────────────┬─► done ─► response
//!                                        └─► (R2T ─►) data ─► all ─┘
//! ```
//!
//! Invariants:
//! - A command is passed on once and answered once.
//! - Data is passed on in order, and only what was requested for its command.

use wire::Place as _;

use super::command::{Command, Completion, Data, Direction, Fabrics, QueueKind, Submission};
use super::connect::{CONNECT_DATA_BYTES, ConnectData};
use super::decoder::{Decoder, End, Event, Fatal, Limits, fatal};
use super::layout::entry::fabrics::{NO_FLOW_CONTROL, SQSIZE};
use super::layout::pdu::{DATAL, DATAO, FLAGS, TTAG, TYPE};
use super::pdu::{Digests, FatalStatus, Header, IcReq, IcResp, Layout, data_digest};
use super::slots::{Slots, Stage};
use super::status::Status;

pub use super::slots::Slot;

/// Limits of a controller for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Bytes of data in a command capsule, on any queue.
    pub capsule_data_bytes: u32,
    /// MAXH2CDATA: bytes in an H2CData PDU; a multiple of 4, at least 4096.
    pub maxh2cdata: u32,
    /// Bytes that one command may transfer.
    pub transfer_bytes: u32,
    /// Entries of the queue that Connect may request, at least 2.
    pub entries: u16,
}

/// A request or data of a host.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// Connect, answered by [`Queue::accept`] or [`Queue::complete`].
    Connect(Slot, ConnectRequest),
    /// A command. Its data, if any, follows as [`Arrival::Data`]: at once if it is in the capsule,
    /// otherwise after [`Queue::request_data`].
    Command(Slot, Submission),
    /// Data of a command, at this offset.
    Data(Slot, u32, &'a [u8]),
    /// All data of a command has come; `true` if every digest was right.
    AllData(Slot, bool),
}

/// The fields and data of Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The queue; 0 for a new controller.
    pub queue: u16,
    /// Entries of the queue, less one.
    pub size: u16,
    /// CATTR.
    pub attributes: u8,
    /// KATO in milliseconds; 0 for no limit.
    pub keep_alive_ms: u32,
    /// Host, subsystem and controller.
    pub data: ConnectData,
}

/// The owner of the PDU data that is coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coming {
    Nothing,
    /// A command; the next byte is at this offset of its data.
    Of {
        slot: Slot,
        offset: u32,
        is_capsule: bool,
    },
    /// The data of Connect.
    Connect {
        slot: Slot,
    },
    /// The data is dropped: its command was refused, or the host has ended the connection.
    Nobody,
}

/// See the module's description.
#[derive(Debug)]
pub struct Queue {
    limits: QueueLimits,
    decoder: Decoder,
    /// The layout of PDUs to the host.
    layout: Layout,
    slots: Slots,
    coming: Coming,
    connect_data: Vec<u8>,
    kind: Option<QueueKind>,
    /// Size of the queue, and its head (commands read, modulo that size); without flow control
    /// completions do not report the head.
    entries: u16,
    head: u16,
    tells_head: bool,
    has_ended: bool,
}

impl Queue {
    /// The queue of a new connection.
    #[must_use]
    pub fn new(limits: QueueLimits) -> Self {
        let decoder_limits =
            Limits { capsule_data_bytes: limits.capsule_data_bytes, data_bytes: limits.maxh2cdata };
        Self {
            limits,
            decoder: Decoder::new(End::Controller, decoder_limits),
            layout: Layout::default(),
            slots: Slots::new(1),
            coming: Coming::Nothing,
            connect_data: Vec::new(),
            kind: None,
            entries: 1,
            head: 0,
            tells_head: true,
            has_ended: false,
        }
    }

    /// Whether the host has terminated the connection by a PDU.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Commands that have not been answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.slots.len()
    }

    /// The outstanding command with this CID, for Abort.
    #[must_use]
    pub fn find(&self, cid: u16) -> Option<Slot> {
        self.slots.find(cid)
    }

    /// The digests that ICReq and ICResp have negotiated.
    #[must_use]
    pub const fn digests(&self) -> Digests {
        self.layout.digests
    }

    /// Takes bytes off the front of `input` until there is an arrival; `None` if more bytes are
    /// needed. Appends answers that need no decision to `out`.
    ///
    /// # Errors
    /// When the connection has to end, by [`Queue::terminate`].
    pub fn receive<'a>(
        &mut self,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival<'a>>, Fatal> {
        while let Some(event) = self.decoder.next(input)? {
            let arrival = match event {
                Event::Header(header, length) => self.header(header, length, out)?,
                Event::Data(bytes) => self.data(bytes),
                Event::End { is_intact } => self.end_of_data(is_intact, out),
            };
            if arrival.is_some() {
                return Ok(arrival);
            }
        }
        Ok(None)
    }

    /// Appends the PDU that ends the connection because of `fatal`.
    pub fn terminate(&self, fatal: Fatal, out: &mut Vec<u8>) {
        let header = self.decoder.offending_header();
        fatal.term_req(End::Controller).encode(Layout::default(), header.len(), out);
        out.extend_from_slice(header);
    }

    /// Answers Connect with success: from now on the connection carries a queue of `size` + 1
    /// entries.
    pub fn accept(
        &mut self,
        slot: Slot,
        request: &ConnectRequest,
        controller_id: u16,
        out: &mut Vec<u8>,
    ) {
        self.kind = Some(if request.queue == 0 { QueueKind::Admin } else { QueueKind::Io });
        self.entries = request.size.saturating_add(1);
        self.tells_head = request.attributes & NO_FLOW_CONTROL == 0;
        self.head = 1 % self.entries;
        self.slots.grow(self.entries);
        self.complete(slot, Status::SUCCESS, u64::from(controller_id), out);
    }

    /// Appends an R2T for all data of a command.
    pub fn request_data(&mut self, slot: Slot, out: &mut Vec<u8>) {
        let Some(outstanding) = self.slots.get_mut(slot) else { return };
        let Submission { cid, data: Data::Transport { length }, .. } = outstanding.submission
        else {
            return;
        };
        outstanding.stage = Stage::Transfer { arrived: 0, is_intact: true };
        let ttag = slot.number();
        Header::R2t { cid, ttag, offset: 0, length }.encode(self.layout, 0, out);
    }

    /// Appends the header of a C2HData PDU. The caller appends the `length` bytes of data and, with
    /// data digests, their [`super::data_digest`].
    pub fn data_header(&self, slot: Slot, offset: u32, length: u32, last: bool, out: &mut Vec<u8>) {
        let Some(outstanding) = self.slots.get(slot) else { return };
        let cid = outstanding.submission.cid;
        let header = Header::C2hData { cid, offset, length, last, success: false };
        header.encode(self.layout, length as usize, out);
    }

    /// Appends all data of a command as one C2HData PDU.
    pub fn send_data(&self, slot: Slot, data: &[u8], out: &mut Vec<u8>) {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.data_header(slot, 0, length, true, out);
        out.extend_from_slice(data);
        if self.layout.digests.data {
            out.extend_from_slice(&data_digest(data));
        }
    }

    /// Answers a command and frees its place; data of its capsule that still comes is dropped. A
    /// command must not be answered between its R2T and the end of its data: data for an answered
    /// command ends the connection.
    pub fn complete(&mut self, slot: Slot, status: Status, result: u64, out: &mut Vec<u8>) {
        if matches!(self.coming, Coming::Of { slot: of, .. } if of == slot) {
            self.coming = Coming::Nobody;
        }
        if let Some(outstanding) = self.slots.release(slot) {
            self.respond(outstanding.submission.cid, status, result, out);
        }
    }

    /// Frees a command's place and CID without an answer.
    pub fn forget(&mut self, slot: Slot) {
        self.slots.release(slot);
    }

    // Appends a response capsule.
    fn respond(&self, cid: u16, status: Status, result: u64, out: &mut Vec<u8>) {
        let head = if self.tells_head { self.head } else { u16::MAX };
        let completion = Completion { cid, status, result, head };
        Header::CapsuleResp(completion.write()).encode(self.layout, 0, out);
    }

    // Handles a header.
    fn header<'a>(
        &mut self,
        header: Header,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival<'a>>, Fatal> {
        match header {
            Header::IcReq(request) => {
                self.agree(request, out);
                Ok(None)
            }
            Header::CapsuleCmd(entry) => self.capsule(&entry, length, out),
            Header::H2cData { cid, ttag, offset, length, last } => {
                self.begin_data([cid, ttag], offset, length, last)?;
                Ok(None)
            }
            // H2CTermReq; the decoder refuses all other types.
            _ => {
                self.has_ended = true;
                self.coming = Coming::Nobody;
                Ok(None)
            }
        }
    }

    // Answers ICReq: no padding requested, any digests accepted (TCP 3.4.1).
    fn agree(&mut self, request: IcReq, out: &mut Vec<u8>) {
        let IcReq { hpda, digests, .. } = request;
        let response = IcResp { cpda: 0, digests, maxh2cdata: self.limits.maxh2cdata };
        Header::IcResp(response).encode(Layout::default(), 0, out);
        self.decoder.agree(Layout { digests, alignment: 0 });
        self.layout = Layout { digests, alignment: hpda };
    }

    // Takes a command capsule: refuses it, or gives it a slot.
    fn capsule<'a>(
        &mut self,
        entry: &[u8; 64],
        length: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival<'a>>, Fatal> {
        self.coming = Coming::Nobody;
        self.head = (self.head + 1) % self.entries.max(1);
        let kind = self.kind.unwrap_or(QueueKind::Admin);
        let checked = Submission::read(kind, entry)
            .and_then(|submission| self.check(&submission, length).map(|()| submission));
        let submission = match checked {
            Ok(submission) => submission,
            Err(status) => {
                self.respond(Submission::cid_of(entry), status, 0, out);
                return Ok(None);
            }
        };
        let stage = if length > 0 { Stage::Capsule } else { Stage::Owner };
        // The host has sent more commands than the queue has entries.
        let slot =
            self.slots.take(submission, stage).ok_or_else(|| fatal(FatalStatus::Sequence, TYPE))?;
        if self.kind.is_none() {
            self.coming = Coming::Connect { slot };
            return Ok(None);
        }
        self.coming = match stage {
            Stage::Capsule => Coming::Of { slot, offset: 0, is_capsule: true },
            _ => Coming::Nothing,
        };
        Ok(Some(Arrival::Command(slot, submission)))
    }

    // Checks a command as far as possible without namespaces: CID, order of Connect, length and
    // place of data. `length` bytes follow the entry in its capsule.
    fn check(&self, submission: &Submission, length: u32) -> Result<(), Status> {
        if self.slots.is_used(submission.cid) {
            return Err(Status::COMMAND_ID_CONFLICT.do_not_retry());
        }
        let is_connect = matches!(submission.command, Command::Fabrics(Fabrics::Connect { .. }));
        // Connect comes first, and once (Base 6.3).
        if is_connect == self.kind.is_some() {
            return Err(Status::SEQUENCE_ERROR.do_not_retry());
        }
        match (submission.data, submission.direction) {
            (Data::InCapsule { offset, .. }, _) if offset != 0 => {
                Err(Status::SGL_OFFSET_INVALID.do_not_retry())
            }
            (Data::InCapsule { .. }, Direction::ToHost) => {
                Err(Status::INVALID_FIELD.do_not_retry())
            }
            (Data::InCapsule { length: said, .. }, _) if said != length => {
                Err(Status::SGL_LENGTH_INVALID.do_not_retry())
            }
            (Data::None | Data::Transport { .. }, _) if length > 0 => {
                Err(Status::SGL_LENGTH_INVALID.do_not_retry())
            }
            (Data::Transport { length }, _) if length > self.limits.transfer_bytes => {
                Err(Status::INVALID_FIELD.do_not_retry())
            }
            _ if is_connect && length as usize != CONNECT_DATA_BYTES => {
                Err(Status::SGL_LENGTH_INVALID.do_not_retry())
            }
            _ => Ok(()),
        }
    }

    // A data PDU of the host begins (TCP 3.6.2.8): it must answer an R2T, be in order, and have
    // LAST_PDU set if and only if it is the last.
    fn begin_data(
        &mut self,
        [cid, ttag]: [u16; 2],
        offset: u32,
        length: u32,
        last: bool,
    ) -> Result<(), Fatal> {
        let sequence = fatal(FatalStatus::Sequence, TTAG);
        let slot = self.slots.tagged(ttag).ok_or(sequence)?;
        let outstanding = self.slots.get(slot).filter(|one| one.submission.cid == cid);
        let outstanding = outstanding.ok_or(sequence)?;
        let (Stage::Transfer { arrived, .. }, Data::Transport { length: all }) =
            (outstanding.stage, outstanding.submission.data)
        else {
            return Err(sequence);
        };
        let out_of_range = FatalStatus::DataOutOfRange;
        if offset != arrived {
            return Err(fatal(out_of_range, DATAO));
        }
        if length > all - arrived {
            return Err(fatal(out_of_range, DATAL));
        }
        if last != (length == all - arrived) {
            return Err(fatal(FatalStatus::Sequence, FLAGS));
        }
        self.coming = Coming::Of { slot, offset, is_capsule: false };
        Ok(())
    }

    // Bytes of a data PDU or of data in a capsule have come.
    fn data<'a>(&mut self, bytes: &'a [u8]) -> Option<Arrival<'a>> {
        match &mut self.coming {
            Coming::Nothing | Coming::Nobody => None,
            Coming::Connect { .. } => {
                self.connect_data.extend_from_slice(bytes);
                None
            }
            Coming::Of { slot, offset, .. } => {
                let at = *offset;
                // Checked against the command when the PDU began.
                *offset += u32::try_from(bytes.len()).unwrap_or(0);
                Some(Arrival::Data(*slot, at, bytes))
            }
        }
    }

    // A data PDU, or the data in a capsule, is complete; `is_intact` says whether its digest was
    // right. Returns the arrival of all of a command's data, or of Connect.
    fn end_of_data<'a>(&mut self, is_intact: bool, out: &mut Vec<u8>) -> Option<Arrival<'a>> {
        match std::mem::replace(&mut self.coming, Coming::Nothing) {
            Coming::Nothing | Coming::Nobody => None,
            Coming::Connect { slot } => self.connect(slot, is_intact, out),
            Coming::Of { slot, is_capsule: true, .. } => {
                self.slots.get_mut(slot)?.stage = Stage::Owner;
                Some(Arrival::AllData(slot, is_intact))
            }
            Coming::Of { slot, offset, is_capsule: false } => {
                let outstanding = self.slots.get_mut(slot)?;
                let Stage::Transfer { is_intact: before, .. } = outstanding.stage else {
                    return None;
                };
                let is_intact = before && is_intact;
                outstanding.stage = Stage::Transfer { arrived: offset, is_intact };
                let all = Data::Transport { length: offset } == outstanding.submission.data;
                if !all {
                    return None;
                }
                outstanding.stage = Stage::Owner;
                Some(Arrival::AllData(slot, is_intact))
            }
        }
    }

    // Checks Connect when its data is complete. Returns its arrival, or refuses it.
    fn connect<'a>(
        &mut self,
        slot: Slot,
        is_intact: bool,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let bytes = std::mem::take(&mut self.connect_data);
        let Command::Fabrics(Fabrics::Connect { format, queue, size, attributes, keep_alive_ms }) =
            self.slots.get(slot)?.submission.command
        else {
            return None;
        };
        let read = match <&[u8; CONNECT_DATA_BYTES]>::try_from(&bytes[..]) {
            _ if !is_intact => Err((Status::TRANSIENT_TRANSPORT_ERROR, 0)),
            _ if format != 0 => Err((Status::CONNECT_INCOMPATIBLE_FORMAT.do_not_retry(), 0)),
            // SQSIZE is the size less one; a queue has at least two entries.
            _ if size == 0 || size >= self.limits.entries => {
                Err((Status::CONNECT_INVALID_PARAMETERS.do_not_retry(), SQSIZE.byte().into()))
            }
            Ok(bytes) => ConnectData::read(bytes),
            Err(_) => Err((Status::SGL_LENGTH_INVALID.do_not_retry(), 0)),
        };
        match read {
            Ok(data) => {
                let request = ConnectRequest { queue, size, attributes, keep_alive_ms, data };
                Some(Arrival::Connect(slot, request))
            }
            Err((status, result)) => {
                self.complete(slot, status, u64::from(result), out);
                None
            }
        }
    }
}
