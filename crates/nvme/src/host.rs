//! A host's end of one connection (TCP 3.1, 3.4).
//!
//! ```text
//! ICReq ─► ICResp ─► command ─┬─► R2T ─► H2CData ─┬─► response
//!                             └─► C2HData ────────┘
//! ```
//!
//! Invariants:
//! - A command ends once, and succeeds only if every byte of its data has come intact.
//! - An answer that fits no command ends the connection.

use super::command::Completion;
use super::decoder::{Decoder, End, Event, Fatal, Limits, fatal};
use super::entry::put_cid;
use super::layout::pdu::{CCCID, DATAL, DATAO, DGST};
use super::pdu::{Digests, FatalStatus, Header, IcReq, Layout, data_digest};
use super::status::Status;

/// The direction and length of a command's data, beyond that in its capsule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// No data.
    None,
    /// So many bytes to the controller, at its R2Ts.
    Send(u32),
    /// So many bytes from the controller.
    Receive(u32),
}

/// A message of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The connection is initialized.
    Ready {
        /// MAXH2CDATA: bytes of data in an H2CData PDU at most.
        maxh2cdata: u32,
    },
    /// The controller requests data of a command (R2T): [`HostQueue::send_data`].
    Wants {
        /// The command.
        cid: u16,
        /// Offset in the command's data.
        offset: u32,
        /// Bytes.
        length: u32,
    },
    /// Data of a command, at this offset.
    Data(u16, u32, &'a [u8]),
    /// A command has ended.
    Ended(Completion),
}

/// A command that has not ended.
#[derive(Debug, Clone, Copy)]
struct Outstanding {
    transfer: Transfer,
    /// Bytes that have come, or that the controller has requested.
    moved: u32,
    /// The transfer tag of the open R2T, and where its data ends.
    wanted: Option<(u16, u32)>,
    is_intact: bool,
}

/// See the module's description.
#[derive(Debug)]
pub struct HostQueue {
    decoder: Decoder,
    layout: Layout,
    wanted: Digests,
    maxh2cdata: u32,
    /// Outstanding commands, by CID.
    commands: Vec<Option<Outstanding>>,
    free: Vec<u16>,
    /// The command whose data is coming, the next offset, and whether the PDU ends the command.
    coming: Option<(u16, u32, bool)>,
}

impl HostQueue {
    /// Begins a connection for `depth` commands at a time (1 to 65,535), and appends ICReq.
    pub fn begin(depth: u16, wanted: Digests, out: &mut Vec<u8>) -> Self {
        let request = IcReq { hpda: 0, digests: wanted, maxr2t: 0 };
        Header::IcReq(request).encode(Layout::default(), 0, out);
        // The buffers of commands bound the data that may come.
        let limits = Limits { capsule_data_bytes: 0, data_bytes: u32::MAX };
        Self {
            decoder: Decoder::new(End::Host, limits),
            layout: Layout::default(),
            wanted,
            maxh2cdata: 0,
            commands: vec![None; usize::from(depth)],
            free: (0..depth).rev().collect(),
            coming: None,
        }
    }

    /// Commands that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.commands.len() - self.free.len()
    }

    /// Appends a command with `data` in its capsule, and sets its CID. Returns the CID; `None` if
    /// `depth` commands are outstanding.
    pub fn submit(
        &mut self,
        mut entry: [u8; 64],
        data: &[u8],
        transfer: Transfer,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let cid = self.free.pop()?;
        put_cid(&mut entry, cid);
        let outstanding = Outstanding { transfer, moved: 0, wanted: None, is_intact: true };
        self.commands[usize::from(cid)] = Some(outstanding);
        self.append(Header::CapsuleCmd(entry), data, out);
        Some(cid)
    }

    /// Appends the data of an [`Answer::Wants`], whole.
    pub fn send_data(&mut self, cid: u16, offset: u32, data: &[u8], out: &mut Vec<u8>) {
        let Some(Some(command)) = self.commands.get_mut(usize::from(cid)) else { return };
        let Some((ttag, end)) = command.wanted.take() else { return };
        let mut at = offset;
        for piece in data.chunks(self.maxh2cdata.max(4) as usize) {
            let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let last = at.saturating_add(length) == end;
            self.append(Header::H2cData { cid, ttag, offset: at, length, last }, piece, out);
            at = at.saturating_add(length);
        }
    }

    /// Takes bytes off the front of `input` until there is an answer; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// When the connection has to end, by [`HostQueue::terminate`]. Outstanding commands have then
    /// neither succeeded nor failed.
    pub fn receive<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Answer<'a>>, Fatal> {
        while let Some(event) = self.decoder.next(input)? {
            let answer = match event {
                Event::Header(header, _) => self.header(header)?,
                Event::Data(bytes) => self.data(bytes),
                Event::End { is_intact } => self.end_of_data(is_intact),
            };
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Appends the PDU that ends the connection because of `fatal`.
    pub fn terminate(&self, fatal: Fatal, out: &mut Vec<u8>) {
        let header = self.decoder.offending_header();
        fatal.term_req(End::Host).encode(Layout::default(), header.len(), out);
        out.extend_from_slice(header);
    }

    // Appends a PDU with data and digests.
    fn append(&self, header: Header, data: &[u8], out: &mut Vec<u8>) {
        header.encode(self.layout, data.len(), out);
        out.extend_from_slice(data);
        if self.layout.digests.data && !data.is_empty() {
            out.extend_from_slice(&data_digest(data));
        }
    }

    // Handles a header.
    fn header<'a>(&mut self, header: Header) -> Result<Option<Answer<'a>>, Fatal> {
        match header {
            Header::IcResp(response) => {
                // The digests must be exactly those requested (TCP 3.6.2.3).
                if response.digests != self.wanted {
                    return Err(fatal(FatalStatus::UnsupportedParameter, DGST));
                }
                let digests = response.digests;
                self.layout = Layout { digests, alignment: response.cpda };
                self.decoder.agree(Layout { digests, alignment: 0 });
                self.maxh2cdata = response.maxh2cdata;
                Ok(Some(Answer::Ready { maxh2cdata: response.maxh2cdata }))
            }
            Header::CapsuleResp(entry) => {
                self.end(Completion::read(&entry)).map(|ended| Some(Answer::Ended(ended)))
            }
            Header::C2hData { cid, offset, length, last, success } => {
                self.begin_data(cid, offset, length, last && success)?;
                Ok(None)
            }
            Header::R2t { cid, ttag, offset, length } => {
                self.want(cid, ttag, offset, length).map(Some)
            }
            // The controller terminates the connection, and will close it.
            _ => {
                self.coming = None;
                Ok(None)
            }
        }
    }

    // The outstanding command with this CID.
    fn command(&mut self, cid: u16) -> Result<&mut Outstanding, Fatal> {
        let unknown = fatal(FatalStatus::Sequence, CCCID);
        self.commands.get_mut(usize::from(cid)).and_then(Option::as_mut).ok_or(unknown)
    }

    // Checks C2HData: in order, and no more than was requested (TCP 3.6.2.9).
    fn begin_data(&mut self, cid: u16, offset: u32, length: u32, ends: bool) -> Result<(), Fatal> {
        let command = self.command(cid)?;
        let Transfer::Receive(room) = command.transfer else {
            return Err(fatal(FatalStatus::Sequence, CCCID));
        };
        let out_of_range = FatalStatus::DataOutOfRange;
        if offset != command.moved {
            return Err(fatal(out_of_range, DATAO));
        }
        if length > room - command.moved {
            return Err(fatal(out_of_range, DATAL));
        }
        command.moved += length;
        self.coming = Some((cid, offset, ends));
        Ok(())
    }

    // Checks an R2T: one at a time, in order, within the command's data (TCP 3.6.2.10).
    fn want<'a>(
        &mut self,
        cid: u16,
        ttag: u16,
        offset: u32,
        length: u32,
    ) -> Result<Answer<'a>, Fatal> {
        let command = self.command(cid)?;
        let Transfer::Send(all) = command.transfer else {
            return Err(fatal(FatalStatus::Sequence, CCCID));
        };
        if command.wanted.is_some() {
            return Err(fatal(FatalStatus::DataLimitExceeded, CCCID));
        }
        let out_of_range = FatalStatus::DataOutOfRange;
        if offset != command.moved {
            return Err(fatal(out_of_range, DATAO));
        }
        if length == 0 || length > all - command.moved {
            return Err(fatal(out_of_range, DATAL));
        }
        command.moved += length;
        command.wanted = Some((ttag, command.moved));
        Ok(Answer::Wants { cid, offset, length })
    }

    // Takes a piece of a PDU's data.
    fn data<'a>(&mut self, bytes: &'a [u8]) -> Option<Answer<'a>> {
        let (cid, offset, _) = self.coming.as_mut()?;
        let at = *offset;
        *offset += u32::try_from(bytes.len()).unwrap_or(0);
        Some(Answer::Data(*cid, at, bytes))
    }

    // Takes the end of a PDU's data. Returns the end of its command, if the PDU is the last.
    fn end_of_data<'a>(&mut self, is_intact: bool) -> Option<Answer<'a>> {
        let (cid, _, ends) = self.coming.take()?;
        self.command(cid).ok()?.is_intact &= is_intact;
        if !ends {
            return None;
        }
        // The SUCCESS flag replaces a response capsule (TCP 3.6.2.9).
        let completion = Completion { cid, ..Completion::default() };
        self.end(completion).ok().map(Answer::Ended)
    }

    // Ends a command; fails it if its data is damaged or incomplete.
    fn end(&mut self, mut completion: Completion) -> Result<Completion, Fatal> {
        let cid = completion.cid;
        let command = *self.command(cid)?;
        let is_whole = match command.transfer {
            Transfer::Receive(room) => command.moved == room,
            Transfer::None | Transfer::Send(_) => true,
        };
        if completion.status.is_success() && !command.is_intact {
            completion.status = Status::TRANSIENT_TRANSPORT_ERROR;
        } else if completion.status.is_success() && !is_whole {
            completion.status = Status::DATA_TRANSFER_ERROR;
        }
        self.commands[usize::from(cid)] = None;
        self.free.push(cid);
        Ok(completion)
    }
}
