//! A target's end of a login (RFC 7143 6.3, 11.12, 11.13).
//!
//! ```text
//! request ─► who? ─► admitted ─┬─► security ─► operational ─┬─► where? ─► established
//!                              └────────────────────────────┘
//! ```
//!
//! Invariants:
//! - The initiator has named itself before any key is settled, and is authenticated before the
//!   login leaves the security stage.
//! - Text and the number of requests are bounded, and an answer fits into one PDU.

use std::collections::BTreeSet;

use super::admission::{Admission, LoginStatus};
use super::chap::Nonce;
use super::decoder::{DEFAULT_DATA_BYTES, Decoder, Event, Fatal};
use super::keys::{Parameters, Said, Wishes};
use super::pdu::{
    Digests, Header, LoginRequest, LoginResponse, LoginStage, NO_TAG, Window, trailer,
};
use super::proof::Proof;
use super::text;

/// Requests of one login, at most.
const REQUESTS_MAX: u32 = 64;
/// Bytes of a name, at most (4.2.7.1).
pub const NAME_BYTES_MAX: usize = 223;

pub(crate) const SECURITY: u8 = 0;
pub(crate) const OPERATIONAL: u8 = 1;
pub(crate) const FULL_FEATURE: u8 = 3;

/// The initiator of a login, and the target and session that it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// InitiatorName.
    pub initiator: String,
    /// TargetName; `None` in a discovery session.
    pub target: Option<String>,
    /// ISID of the session.
    pub isid: [u8; 6],
    /// TSIH of the session to join; 0 for a new one.
    pub tsih: u16,
    /// CID of the connection in its session.
    pub cid: u16,
}

/// A decision that a login needs from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginEvent {
    /// Whether this initiator may log in: [`Login::admit`] or [`Login::refuse`].
    Identified(Identity),
    /// To which session the connection belongs: [`Login::establish`] or [`Login::refuse`].
    Agreed(Identity, Parameters),
}

/// A connection in full feature phase, to become part of a session.
#[derive(Debug)]
pub struct Link {
    pub(crate) decoder: Decoder,
    pub(crate) digests: Digests,
    pub(crate) cid: u16,
    pub(crate) stat_sn: u32,
    pub(crate) cmd_sn: u32,
    /// MaxCmdSN that the target has announced.
    pub(crate) max_cmd_sn: u32,
    pub(crate) parameters: Parameters,
    pub(crate) is_discovery: bool,
}

impl Link {
    /// The negotiated parameters.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Whether it is of a discovery session.
    #[must_use]
    pub const fn is_discovery(&self) -> bool {
        self.is_discovery
    }
}

/// What a login waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// The initiator's next request.
    Request,
    /// The target's admission.
    Admission,
    /// The target's choice of a session.
    Place,
    Nothing,
}

/// See the module's description.
#[derive(Debug)]
pub struct Login {
    decoder: Decoder,
    wishes: Wishes,
    nonce: Nonce,
    waits: Waits,
    /// The first request, and the latest, which is answered next.
    first: Option<LoginRequest>,
    request: LoginRequest,
    requests: u32,
    /// Text of the request so far, which may span several PDUs.
    text: Vec<u8>,
    stage: u8,
    identity: Option<Identity>,
    admission: Admission,
    proof: Proof,
    parameters: Parameters,
    /// Keys that have been settled; a repeated one is an error.
    settled: BTreeSet<String>,
    has_told_group: bool,
    has_told_bytes: bool,
    stat_sn: u32,
    answer: Vec<u8>,
}

impl Login {
    /// The login of a new connection; `nonce` is for this login only.
    #[must_use]
    pub fn new(wishes: Wishes, nonce: Nonce) -> Self {
        Self {
            decoder: Decoder::new(),
            wishes,
            nonce,
            waits: Waits::Request,
            first: None,
            request: LoginRequest::default(),
            requests: 0,
            text: Vec::new(),
            stage: SECURITY,
            identity: None,
            admission: Admission::default(),
            proof: Proof::default(),
            parameters: Parameters::default(),
            settled: BTreeSet::new(),
            has_told_group: false,
            has_told_bytes: false,
            stat_sn: 1,
            answer: Vec::new(),
        }
    }

    /// Takes bytes off the front of `input` until a decision is needed, or more bytes are (`None`).
    /// Appends answers to `out`.
    ///
    /// # Errors
    /// When the connection has to be closed once `out` is sent.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<LoginEvent>, Fatal> {
        while self.waits == Waits::Request {
            let event = self.decoder.next(input).map_err(|fatal| self.broken(fatal, out))?;
            let Some(event) = event else { break };
            let is_whole = match event {
                Event::Header(Header::LoginRequest(request), length) => {
                    self.begin(request).map_err(|status| self.fail(status, out))?;
                    length == 0
                }
                // 6.3: only login requests come before the end of a login.
                Event::Header(header, _) => {
                    return Err(Fatal::Sequence { opcode: header.opcode() });
                }
                Event::Data(bytes) => {
                    if self.text.len() + bytes.len() > text::TEXT_BYTES_MAX {
                        return Err(self.fail(LoginStatus::InitiatorError, out));
                    }
                    self.text.extend_from_slice(bytes);
                    false
                }
                Event::End { .. } => true,
            };
            if is_whole {
                let event = self.whole(out).map_err(|status| self.fail(status, out))?;
                if event.is_some() {
                    return Ok(event);
                }
            }
        }
        Ok(None)
    }

    // Answers a request with too much data (11.13.5), whose data is not read; other errors pass.
    fn broken(&mut self, fatal: Fatal, out: &mut Vec<u8>) -> Fatal {
        match (fatal, self.decoder.latest()) {
            (Fatal::TooMuchData { .. }, Header::LoginRequest(request)) => {
                self.request = request;
                self.fail(LoginStatus::InitiatorError, out)
            }
            _ => fatal,
        }
    }

    /// Admits the initiator, and goes on as [`Login::receive`].
    ///
    /// # Errors
    /// As [`Login::receive`].
    pub fn admit(
        &mut self,
        admission: Admission,
        out: &mut Vec<u8>,
    ) -> Result<Option<LoginEvent>, Fatal> {
        if self.waits != Waits::Admission {
            return Ok(None);
        }
        self.admission = admission;
        self.waits = Waits::Request;
        self.settle(out).map_err(|status| self.fail(status, out))
    }

    /// Refuses the login: the connection has to be closed once `out` is sent.
    pub fn refuse(&mut self, status: LoginStatus, out: &mut Vec<u8>) {
        let _always = self.fail(status, out);
    }

    /// Ends the login in the session `tsih`, whose ExpCmdSN and MaxCmdSN are `window`; `None` for a
    /// new session, which begins with the login's CmdSN.
    pub fn establish(mut self, tsih: u16, window: Option<[u32; 2]>, out: &mut Vec<u8>) -> Link {
        let cmd_sn = self.request.numbers.cmd_sn;
        let [exp_cmd_sn, max_cmd_sn] = window.unwrap_or([cmd_sn, cmd_sn]);
        let stage = LoginStage { transits: true, next: FULL_FEATURE, ..self.request.stage };
        let window = Window { stat_sn: self.stat_sn, exp_cmd_sn, max_cmd_sn };
        self.respond(LoginStatus::Success, stage, tsih, window, out);
        self.decoder.agree(self.parameters.digests, self.wishes.data_bytes);
        Link {
            decoder: self.decoder,
            digests: self.parameters.digests,
            cid: self.request.cid,
            stat_sn: self.stat_sn,
            cmd_sn,
            max_cmd_sn,
            parameters: self.parameters,
            is_discovery: self.identity.is_some_and(|identity| identity.target.is_none()),
        }
    }

    // Checks the header of a request (11.12).
    fn begin(&mut self, request: LoginRequest) -> Result<(), LoginStatus> {
        self.request = request;
        self.requests += 1;
        let stage = request.stage;
        // Version 0 is the only one (11.12.5).
        if request.version_min > 0 {
            return Err(LoginStatus::UnsupportedVersion);
        }
        // No request has the reserved tag (11.2.1.8).
        let has_tag = request.itt != NO_TAG;
        if self.requests > REQUESTS_MAX || !has_tag || stage.transits && stage.continues {
            return Err(LoginStatus::InitiatorError);
        }
        let is_forward = !stage.transits
            || stage.current < stage.next && matches!(stage.next, OPERATIONAL | FULL_FEATURE);
        if !is_forward || !matches!(stage.current, SECURITY | OPERATIONAL) {
            return Err(LoginStatus::InvalidRequest);
        }
        match self.first {
            None => {
                self.first = Some(request);
                self.stage = stage.current;
            }
            Some(first) => {
                let same = |one: &LoginRequest| (one.isid, one.tsih, one.cid, one.itt);
                if same(&first) != same(&request) {
                    return Err(LoginStatus::InitiatorError);
                }
                if stage.current != self.stage {
                    return Err(LoginStatus::InvalidRequest);
                }
            }
        }
        Ok(())
    }

    // Handles a complete PDU.
    fn whole(&mut self, out: &mut Vec<u8>) -> Result<Option<LoginEvent>, LoginStatus> {
        if self.request.stage.continues {
            // 6.2: an empty answer requests the rest.
            self.answer_request(false, out);
            return Ok(None);
        }
        if self.identity.is_some() {
            return self.settle(out);
        }
        let identity = self.identify()?;
        self.identity = Some(identity.clone());
        self.waits = Waits::Admission;
        Ok(Some(LoginEvent::Identified(identity)))
    }

    // Reads the initiator's and target's names from the first request (6.3).
    fn identify(&self) -> Result<Identity, LoginStatus> {
        let pairs = text::read(&self.text).map_err(|_| LoginStatus::InitiatorError)?;
        let value = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
        let is_name = |name: &&str| !name.is_empty() && name.len() <= NAME_BYTES_MAX;
        let initiator = value("InitiatorName").ok_or(LoginStatus::MissingParameter)?;
        let initiator = Some(initiator).filter(is_name).ok_or(LoginStatus::InitiatorError)?;
        let target = match value("SessionType") {
            Some("Discovery") => None,
            None | Some("Normal") => {
                let target = value("TargetName").ok_or(LoginStatus::MissingParameter)?;
                Some(Some(target).filter(is_name).ok_or(LoginStatus::InitiatorError)?)
            }
            Some(_) => return Err(LoginStatus::SessionTypeUnsupported),
        };
        Ok(Identity {
            initiator: initiator.to_owned(),
            target: target.map(str::to_owned),
            isid: self.request.isid,
            tsih: self.request.tsih,
            cid: self.request.cid,
        })
    }

    // Settles the keys of a request, answers it, and changes the stage if the request says so.
    fn settle(&mut self, out: &mut Vec<u8>) -> Result<Option<LoginEvent>, LoginStatus> {
        let text = std::mem::take(&mut self.text);
        let mut pairs = text::read(&text).map_err(|_| LoginStatus::InitiatorError)?;
        // FirstBurstLength depends on MaxBurstLength.
        pairs.sort_by_key(|(key, _)| *key == "FirstBurstLength");
        self.proof.take(&pairs, &self.admission, &self.nonce, &mut self.answer)?;
        for (key, value) in pairs {
            self.settle_key(key, value)?;
        }
        if self.admission.chap.is_some() && !self.proof.is_given() && self.stage != SECURITY {
            return Err(LoginStatus::AuthenticationFailure);
        }
        self.declare();
        if self.answer.len() > DEFAULT_DATA_BYTES as usize {
            return Err(LoginStatus::InitiatorError);
        }
        let stage = self.request.stage;
        let is_proved = self.admission.chap.is_none() || self.proof.is_given();
        let transits = stage.transits && is_proved;
        let Some(identity) = self.identity.clone().filter(|_| transits) else {
            self.answer_request(false, out);
            return Ok(None);
        };
        if stage.next == FULL_FEATURE {
            self.waits = Waits::Place;
            return Ok(Some(LoginEvent::Agreed(identity, self.parameters)));
        }
        self.stage = stage.next;
        self.answer_request(true, out);
        Ok(None)
    }

    // Settles a key, and appends its answer.
    fn settle_key(&mut self, key: &str, value: &str) -> Result<(), LoginStatus> {
        let Some(identity) = &self.identity else { return Ok(()) };
        // Names that are repeated must be the same as before.
        let named = match key {
            "InitiatorName" => Some(identity.initiator.as_str()),
            "TargetName" => identity.target.as_deref(),
            "SessionType" => Some(if identity.target.is_none() { "Discovery" } else { "Normal" }),
            "InitiatorAlias" => Some(value),
            _ if Proof::is_about(key) => return Ok(()),
            _ => None,
        };
        if let Some(named) = named {
            return if named == value { Ok(()) } else { Err(LoginStatus::InitiatorError) };
        }
        // A target name in a discovery session has no meaning (13.4).
        if key == "TargetName" {
            return Ok(());
        }
        if !self.settled.insert(key.to_owned()) {
            return Err(LoginStatus::InitiatorError);
        }
        let is_discovery = identity.target.is_none();
        let said = match self.parameters.settle(key, value, &self.wishes, is_discovery) {
            Said::Nothing => return Ok(()),
            Said::Broken => return Err(LoginStatus::InitiatorError),
            Said::Value(value) => value,
            Said::Reject => "Reject".to_owned(),
            Said::Irrelevant => "Irrelevant".to_owned(),
            Said::NotUnderstood => "NotUnderstood".to_owned(),
        };
        text::push(&mut self.answer, key, &said);
        Ok(())
    }

    // Appends the target's declarations: TargetPortalGroupTag in the first answer (13.9),
    // MaxRecvDataSegmentLength in the operational stage (13.12).
    fn declare(&mut self) {
        let is_normal = self.identity.as_ref().is_some_and(|identity| identity.target.is_some());
        if is_normal && !self.has_told_group {
            text::push(&mut self.answer, "TargetPortalGroupTag", &self.admission.group.to_string());
            if let Some(alias) = &self.admission.alias {
                text::push(&mut self.answer, "TargetAlias", alias);
            }
        }
        self.has_told_group = true;
        if self.stage == OPERATIONAL && !self.has_told_bytes {
            let bytes = self.wishes.data_bytes.to_string();
            text::push(&mut self.answer, "MaxRecvDataSegmentLength", &bytes);
            self.has_told_bytes = true;
        }
    }

    // Appends a successful response, with or without the transition that was requested.
    fn answer_request(&mut self, transits: bool, out: &mut Vec<u8>) {
        let asked = self.request.stage;
        let next = if transits { asked.next } else { 0 };
        let stage = LoginStage { transits, continues: false, current: asked.current, next };
        let cmd_sn = self.request.numbers.cmd_sn;
        let window = Window { stat_sn: self.stat_sn, exp_cmd_sn: cmd_sn, max_cmd_sn: cmd_sn };
        self.respond(LoginStatus::Success, stage, self.request.tsih, window, out);
    }

    // Appends a Login Response with the collected answers.
    fn respond(
        &mut self,
        status: LoginStatus,
        stage: LoginStage,
        tsih: u16,
        window: Window,
        out: &mut Vec<u8>,
    ) {
        let LoginRequest { isid, itt, .. } = self.request;
        let response = LoginResponse { stage, isid, tsih, itt, window, status: status as u16 };
        let answer = std::mem::take(&mut self.answer);
        Header::LoginResponse(response).encode(Digests::default(), answer.len(), out);
        out.extend_from_slice(&answer);
        trailer(&answer, Digests::default(), out);
        self.stat_sn = self.stat_sn.wrapping_add(1);
    }

    // Appends a failing Login Response, and ends the login.
    fn fail(&mut self, status: LoginStatus, out: &mut Vec<u8>) -> Fatal {
        self.waits = Waits::Nothing;
        self.answer.clear();
        let window = Window { stat_sn: self.stat_sn, ..Window::default() };
        self.respond(status, LoginStage::default(), self.request.tsih, window, out);
        Fatal::Login(status as u16)
    }
}
