//! A session with one blocking command at a time, until it becomes a queue.

use std::io::ErrorKind;

use measure::Duration;
use scsi::ask::{Cdb, TEST_UNIT_READY};
use scsi::iscsi::{
    Answer, AsyncMessage, Ended, EntryConfig, Initiator, Request, TargetRecord, Transfer,
};
use scsi::{Lun, Residual, Sense, SenseKey, Status};
use sys::stream::Stream;
use sys::world::{Machine, World};

use crate::HostError;

use super::IscsiUri;
use super::config::{InitiatorConfig, SessionNumber};
use super::fate::is_of_path;
use super::wire::{Deadline, Wire, protocol};

/// See the module's description.
pub(super) struct Session {
    pub(super) initiator: Initiator,
    /// The connections, by number in the session.
    pub(super) wires: Vec<Wire>,
    /// The session's TSIH.
    tsih: u16,
    timeout: Duration,
    /// Whether a unit attention was reported (SAM-5 5.14).
    has_news: bool,
}

/// How often a command is repeated after a unit attention or while the unit is busy or not ready;
/// and the pause before the latter.
const TRIES: u8 = 10;
const PAUSE: Duration = Duration::from_ms(100);
/// Commands at a time of a discovery session.
const FEW: u16 = 1;

impl Session {
    /// Logs in with the URI's number of connections, for `depth` commands at a time.
    pub(super) fn begin(
        world: &dyn World,
        uri: &IscsiUri,
        config: &InitiatorConfig,
        number: SessionNumber,
        depth: u16,
    ) -> Result<Self, HostError> {
        let entry = config.entry(uri, number, false)?;
        let mut session = Self::enter(world, uri, config, entry, depth)?;
        for cid in 1..uri.connections {
            session.join(world, uri, (config, number), cid)?;
        }
        Ok(session)
    }

    /// Logs in to a discovery session.
    pub(super) fn discover(uri: &IscsiUri, config: &InitiatorConfig) -> Result<Self, HostError> {
        let entry = config.entry(uri, SessionNumber(0), true)?;
        Self::enter(&Machine, uri, config, entry, FEW)
    }

    // Logs in with the first connection.
    fn enter(
        world: &dyn World,
        uri: &IscsiUri,
        config: &InitiatorConfig,
        entry: EntryConfig,
        depth: u16,
    ) -> Result<Self, HostError> {
        let deadline = Deadline::after(world.now_ns(), config.login_timeout);
        let mut wire = Wire::connect(world, &uri.address, deadline)?;
        let entered = wire.enter(entry, deadline)?;
        let granted = entered.link.parameters().max_connections;
        if granted < uri.connections {
            let wanted = uri.connections;
            let reason = format!("it grants a session {granted} of {wanted} connections");
            return Err(HostError::Protocol { operation: "log in to the target", reason });
        }
        let initiator = Initiator::new(depth, entered.link);
        let (tsih, timeout) = (entered.tsih, config.login_timeout);
        Ok(Self { initiator, wires: vec![wire], tsih, timeout, has_news: false })
    }

    // Adds a connection to the session (RFC 7143 6.3.1).
    fn join(
        &mut self,
        world: &dyn World,
        uri: &IscsiUri,
        (config, number): (&InitiatorConfig, SessionNumber),
        cid: u16,
    ) -> Result<(), HostError> {
        let (tsih, cmd_sn) = (self.tsih, self.initiator.cmd_sn());
        let entry = config.entry(uri, number, false)?;
        let entry = EntryConfig { tsih, cid, cmd_sn, ..entry };
        let deadline = Deadline::after(world.now_ns(), config.login_timeout);
        let mut wire = Wire::connect(world, &uri.address, deadline)?;
        let entered = wire.enter(entry, deadline)?;
        // Some targets with one connection per session take the login for a new session.
        if entered.tsih != tsih {
            let reason = "it has begun another session in place of one connection more".to_owned();
            return Err(HostError::Protocol { operation: "log in to the target", reason });
        }
        self.initiator.join(entered.link);
        self.wires.push(wire);
        Ok(())
    }

    /// Sets how long to wait for answers.
    pub(super) const fn be_patient(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The first connection.
    pub(super) fn stream(&self) -> &Stream {
        &self.wires[0].stream
    }

    /// Whether a unit attention was reported since the last call.
    pub(super) const fn take_news(&mut self) -> bool {
        std::mem::replace(&mut self.has_news, false)
    }

    /// Decodes answers that have come while no command is under way, without waiting. It reads from
    /// the connection only if that `is_readable`.
    pub(super) fn listen(&mut self, is_readable: bool) -> Result<(), HostError> {
        let operation = "listen to the target";
        while self.next(operation, &mut |_| {})? {}
        if is_readable {
            let deadline = self.wires[0].deadline(self.timeout);
            self.wires[0].fill(operation, deadline)?;
            while self.next(operation, &mut |_| {})? {}
        }
        Ok(())
    }

    // Decodes the next answer on the first connection. Returns whether there was one.
    fn next(
        &mut self,
        operation: &'static str,
        heard: &mut dyn FnMut(Answer<'_>),
    ) -> Result<bool, HostError> {
        let mut out = Vec::new();
        let wire = &mut self.wires[0];
        let mut rest = wire.unread();
        let answer = self.initiator.receive(0, &mut rest, &mut out);
        let answer = answer.map_err(|fatal| protocol(operation, fatal))?;
        // Events 1 to 3: the target requests a logout or drops connections (RFC 7143 11.9.1).
        let is_over = matches!(
            answer,
            Some(
                Answer::LoggedOut { .. }
                    | Answer::Rejected { .. }
                    | Answer::Event(AsyncMessage { event: 1..=3, .. })
            )
        );
        let was_heard = answer.is_some();
        answer.into_iter().for_each(heard);
        let left = rest.len();
        wire.keep(left);
        if !out.is_empty() {
            wire.send(&out, operation)?;
        }
        if is_over {
            let reason = "it has ended the session".to_owned();
            return Err(HostError::Protocol { operation, reason });
        }
        Ok(was_heard)
    }

    // Decodes an answer, or reads more bytes if none is complete.
    fn hear(
        &mut self,
        operation: &'static str,
        deadline: Deadline,
        heard: &mut dyn FnMut(Answer<'_>),
    ) -> Result<(), HostError> {
        if !self.next(operation, heard)? {
            self.wires[0].fill(operation, deadline)?;
        }
        Ok(())
    }

    // Executes a command once. Returns how it ended, and its data.
    fn ask_once(
        &mut self,
        operation: &'static str,
        lun: Lun,
        cdb: Cdb,
        receives: u32,
    ) -> Result<(Ended, Vec<u8>), HostError> {
        let deadline = self.wires[0].deadline(self.timeout);
        let transfer = if receives > 0 { Transfer::Receive(receives) } else { Transfer::None };
        let mut out = Vec::new();
        let tag = loop {
            let request = Request { lun: lun.write(), cdb, transfer };
            if let Some(tag) = self.initiator.submit(0, request, &mut out) {
                break tag;
            }
            self.hear(operation, deadline, &mut |_| {})?;
        };
        self.wires[0].send(&out, operation)?;
        let mut data = vec![0; receives as usize];
        let mut over = None;
        while over.is_none() {
            self.hear(operation, deadline, &mut |answer| match answer {
                Answer::Data(of, offset, bytes) if of == tag => {
                    let from = offset as usize;
                    // The initiator has checked that no more comes than was requested.
                    data[from..from + bytes.len()].copy_from_slice(bytes);
                }
                Answer::Ended(ended) if ended.tag == tag => over = Some(ended),
                _ => {}
            })?;
        }
        let ended = over.expect("the loop ends with one");
        let missing = match ended.residual {
            Residual::Underflow(bytes) => bytes.min(receives),
            Residual::None | Residual::Overflow(_) => 0,
        };
        data.truncate((receives - missing) as usize);
        Ok((ended, data))
    }

    // Waits for `PAUSE`, and decodes answers meanwhile.
    fn pause(&mut self, operation: &'static str) -> Result<(), HostError> {
        let deadline = self.wires[0].deadline(PAUSE);
        loop {
            match self.hear(operation, deadline, &mut |_| {}) {
                Err(HostError::Network { source, .. }) if source.kind() == ErrorKind::TimedOut => {
                    return Ok(());
                }
                other => other?,
            }
        }
    }

    /// Executes a command, again after unit attentions. Returns its data, or the sense with which
    /// the logical unit refuses it.
    pub(super) fn try_ask(
        &mut self,
        operation: &'static str,
        lun: Lun,
        cdb: Cdb,
        receives: u32,
    ) -> Result<Result<Vec<u8>, Option<Sense>>, HostError> {
        for _ in 0..TRIES {
            let (ended, data) = self.ask_once(operation, lun, cdb, receives)?;
            let key = ended.sense.map(|sense| sense.key);
            match (ended.status, key) {
                _ if ended.is_good() => return Ok(Ok(data)),
                (Some(Status::CheckCondition), Some(SenseKey::UnitAttention)) => {
                    self.has_news = true;
                }
                (Some(Status::CheckCondition), Some(SenseKey::NotReady))
                    if ended.sense.is_some_and(|sense| is_of_path(sense.code)) =>
                {
                    return Ok(Err(ended.sense));
                }
                (Some(Status::Busy | Status::TaskSetFull), _)
                | (Some(Status::CheckCondition), Some(SenseKey::NotReady)) => {
                    self.pause(operation)?;
                }
                _ => return Ok(Err(ended.sense)),
            }
        }
        let reason = format!("it was not ready {TRIES} times");
        Err(HostError::Protocol { operation, reason })
    }

    /// As [`Self::try_ask`]; a refusal is an error.
    pub(super) fn ask(
        &mut self,
        operation: &'static str,
        lun: Lun,
        cdb: Cdb,
        receives: u32,
    ) -> Result<Vec<u8>, HostError> {
        self.try_ask(operation, lun, cdb, receives)?.map_err(|sense| {
            let reason = match sense {
                Some(Sense { key, code, .. }) => {
                    format!("the target answers {key:?}, {:#04x}/{:#04x}", code >> 8, code & 0xff)
                }
                None => "the target does not do it".to_owned(),
            };
            HostError::Protocol { operation, reason }
        })
    }

    /// Clears pending unit attentions (SAM-5 5.14), so that no later command gets them.
    pub(super) fn settle(&mut self, lun: Lun) -> Result<(), HostError> {
        self.ask("ask whether the logical unit is ready", lun, TEST_UNIT_READY, 0).map(|_| ())
    }

    /// SendTargets: the targets that the initiator may see.
    pub(super) fn targets(&mut self) -> Result<Vec<TargetRecord>, HostError> {
        let operation = "ask for targets";
        let deadline = self.wires[0].deadline(self.timeout);
        let mut out = Vec::new();
        self.initiator.send_targets(0, &mut out);
        self.wires[0].send(&out, operation)?;
        let mut found = None;
        while found.is_none() {
            self.hear(operation, deadline, &mut |answer| {
                if let Answer::Targets(targets) = answer {
                    found = Some(targets);
                }
            })?;
        }
        Ok(found.unwrap_or_default())
    }

    /// Logs out, and waits for the answer.
    pub(super) fn log_out(mut self) {
        let mut out = Vec::new();
        self.initiator.logout(0, &mut out);
        let deadline = self.wires[0].deadline(self.timeout);
        if self.wires[0].send(&out, "log out").is_ok() {
            // The end of the session is an error of `hear`.
            while self.hear("log out", deadline, &mut |_| {}).is_ok() {}
        }
    }
}
