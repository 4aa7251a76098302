//! An initiator's end of a login (RFC 7143 6.3).
//!
//! ```text
//! (AuthMethod ─► CHAP_A ─► CHAP_N, CHAP_R ─►) operational keys ─► full feature phase
//! ```

use super::chap::{Algorithm, CHALLENGE_BYTES_MAX, Chap, Nonce};
use super::decoder::{Decoder, Event, Fatal};
use super::keys::{DigestWish, Parameters, Said, Wishes};
use super::login::{FULL_FEATURE, Link, OPERATIONAL, SECURITY};
use super::pdu::{Digests, Header, LoginRequest, LoginResponse, LoginStage, Numbers, trailer};
use super::text;

/// The configuration of a login.
#[derive(Debug, Clone)]
pub struct EntryConfig {
    /// InitiatorName.
    pub initiator: String,
    /// TargetName; `None` for a discovery session.
    pub target: Option<String>,
    /// ISID of the session.
    pub isid: [u8; 6],
    /// TSIH of the session to join; 0 for a new session.
    pub tsih: u16,
    /// CID of the connection in its session.
    pub cid: u16,
    /// CmdSN that the connection begins with.
    pub cmd_sn: u32,
    /// See [`Wishes`].
    pub wishes: Wishes,
    /// CHAP secrets of this end, and of the target for mutual authentication.
    pub chap: Option<Chap>,
    /// Algorithms of CHAP, the preferred one first.
    pub algorithms: Vec<Algorithm>,
    /// The challenge for the target in mutual authentication; for this login only.
    pub nonce: Nonce,
}

/// A login that has succeeded.
#[derive(Debug)]
pub struct Entered {
    /// TSIH of the session.
    pub tsih: u16,
    /// The connection, to become part of a session.
    pub link: Link,
}

/// The request that the initiator has sent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Method,
    Algorithms,
    Proof(Algorithm),
    Operational,
    Over,
}

/// See the module's description.
#[derive(Debug)]
pub struct Entry {
    config: EntryConfig,
    decoder: Decoder,
    step: Step,
    exp_stat_sn: u32,
    response: LoginResponse,
    gathered: Vec<u8>,
    parameters: Parameters,
    requests: u32,
    /// ExpCmdSN and MaxCmdSN of the target's last response.
    window: [u32; 2],
}

/// Requests of one login, at most.
const REQUESTS_MAX: u32 = 32;
const BAD: Fatal = Fatal::Unasked { opcode: 0x23 };

impl Entry {
    /// Begins a login on a new connection, and appends its first request.
    pub fn begin(config: EntryConfig, out: &mut Vec<u8>) -> Self {
        let has_chap = config.chap.is_some();
        let step = if has_chap { Step::Method } else { Step::Operational };
        let window = [config.cmd_sn, config.cmd_sn];
        let mut entry = Self {
            config,
            decoder: Decoder::new(),
            step,
            exp_stat_sn: 0,
            response: LoginResponse::default(),
            gathered: Vec::new(),
            parameters: Parameters::default(),
            requests: 0,
            window,
        };
        let mut data = Vec::new();
        let config = &entry.config;
        text::push(&mut data, "InitiatorName", &config.initiator);
        match &config.target {
            Some(target) => {
                text::push(&mut data, "SessionType", "Normal");
                text::push(&mut data, "TargetName", target);
            }
            None => text::push(&mut data, "SessionType", "Discovery"),
        }
        if has_chap {
            text::push(&mut data, "AuthMethod", "CHAP");
            entry.ask(SECURITY, None, &data, out);
        } else {
            entry.offer(&mut data);
            entry.ask(OPERATIONAL, Some(FULL_FEATURE), &data, out);
        }
        entry
    }

    /// Takes bytes off the front of `input`, until the login has ended or more bytes are needed
    /// (`None`).
    ///
    /// # Errors
    /// When the connection has to be closed: the target has refused, or its answer is invalid.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Entered>, Fatal> {
        while self.step != Step::Over
            && let Some(event) = self.decoder.next(input)?
        {
            let is_whole = match event {
                Event::Header(Header::LoginResponse(response), length) => {
                    self.begin_response(response)?;
                    length == 0
                }
                Event::Header(header, _) => {
                    return Err(Fatal::Sequence { opcode: header.opcode() });
                }
                Event::Data(bytes) => {
                    if self.gathered.len() + bytes.len() > text::TEXT_BYTES_MAX {
                        return Err(BAD);
                    }
                    self.gathered.extend_from_slice(bytes);
                    false
                }
                Event::End { .. } => true,
            };
            if is_whole && let Some(entered) = self.whole(out)? {
                return Ok(Some(entered));
            }
        }
        Ok(None)
    }

    // Checks the header of a Login Response.
    fn begin_response(&mut self, response: LoginResponse) -> Result<(), Fatal> {
        if response.status != 0 {
            return Err(Fatal::Login(response.status));
        }
        let is_ours = response.itt == 0 && response.isid == self.config.isid;
        if !is_ours || response.stage.transits && response.stage.continues {
            return Err(BAD);
        }
        self.exp_stat_sn = response.window.stat_sn.wrapping_add(1);
        self.window = [response.window.exp_cmd_sn, response.window.max_cmd_sn];
        self.response = response;
        Ok(())
    }

    // Handles a complete Login Response, and appends the next request.
    fn whole(&mut self, out: &mut Vec<u8>) -> Result<Option<Entered>, Fatal> {
        if self.requests > REQUESTS_MAX {
            return Err(BAD);
        }
        let current = if self.step == Step::Operational { OPERATIONAL } else { SECURITY };
        if self.response.stage.continues {
            self.ask(current, None, &[], out);
            return Ok(None);
        }
        let gathered = std::mem::take(&mut self.gathered);
        let pairs = text::read(&gathered).map_err(|_| BAD)?;
        let value = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
        let mut data = Vec::new();
        match self.step {
            Step::Method => {
                if value("AuthMethod") != Some("CHAP") {
                    return Err(Fatal::NoProof);
                }
                let all = self.config.algorithms.iter();
                let all: Vec<String> = all.map(|one| (*one as u8).to_string()).collect();
                text::push(&mut data, "CHAP_A", &all.join(","));
                self.step = Step::Algorithms;
                self.ask(SECURITY, None, &data, out);
            }
            Step::Algorithms => {
                let keys = ["CHAP_A", "CHAP_I", "CHAP_C"].map(value);
                let algorithm = self.prove(keys, &mut data).ok_or(BAD)?;
                self.step = Step::Proof(algorithm);
                self.ask(SECURITY, Some(OPERATIONAL), &data, out);
            }
            Step::Proof(algorithm) => {
                if !self.response.stage.transits || !self.is_proved(algorithm, value) {
                    return Err(Fatal::NoProof);
                }
                self.step = Step::Operational;
                self.offer(&mut data);
                self.ask(OPERATIONAL, Some(FULL_FEATURE), &data, out);
            }
            Step::Operational | Step::Over => {
                let mut pairs = pairs;
                pairs.sort_by_key(|(key, _)| *key == "FirstBurstLength");
                pairs.iter().try_for_each(|(key, value)| self.settle(key, value))?;
                if !self.response.stage.transits {
                    self.ask(OPERATIONAL, Some(FULL_FEATURE), &[], out);
                    return Ok(None);
                }
                if self.response.stage.next != FULL_FEATURE {
                    return Err(BAD);
                }
                if !self.has_digests() {
                    return Err(Fatal::NoDigests);
                }
                return Ok(Some(self.enter()));
            }
        }
        Ok(None)
    }

    // Appends the response to the target's challenge, and a challenge for mutual authentication
    // (12.1.3). Returns the algorithm; `None` if the target's keys are invalid.
    fn prove(
        &self,
        [a, id, challenge]: [Option<&str>; 3],
        data: &mut Vec<u8>,
    ) -> Option<Algorithm> {
        let chap = self.config.chap.as_ref()?;
        let algorithm = Algorithm::choose(a?)?;
        if !self.config.algorithms.contains(&algorithm) {
            return None;
        }
        let id = u8::try_from(text::number(id?)?).ok()?;
        let challenge = text::binary(challenge?, CHALLENGE_BYTES_MAX)?;
        let response = algorithm.response(id, &chap.initiator.secret, &challenge);
        text::push(data, "CHAP_N", &chap.initiator.name);
        text::push(data, "CHAP_R", &text::write_hex(&response));
        if chap.target.is_some() {
            text::push(data, "CHAP_I", &self.config.nonce.id.to_string());
            let own = self.config.nonce.challenge_for(algorithm);
            text::push(data, "CHAP_C", &text::write_hex(own));
        }
        Some(algorithm)
    }

    // Whether the target has authenticated, if it has to.
    fn is_proved<'a>(&self, algorithm: Algorithm, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        let Some(expected) = self.config.chap.as_ref().and_then(|chap| chap.target.as_ref()) else {
            return true;
        };
        let nonce = &self.config.nonce;
        let (Some(name), Some(response)) = (value("CHAP_N"), value("CHAP_R")) else {
            return false;
        };
        let Some(response) = text::binary(response, CHALLENGE_BYTES_MAX) else { return false };
        let own = nonce.challenge_for(algorithm);
        algorithm.proves(nonce.id, expected, own, [name.as_bytes(), &response])
    }

    // Appends the operational keys that this end offers.
    fn offer(&self, data: &mut Vec<u8>) {
        for (key, value) in self.config.wishes.offers(self.config.target.is_none()) {
            text::push(data, key, &value);
        }
    }

    // Settles a key of the target: an answer must be the result of the negotiation (RFC 7143 6.2).
    fn settle(&mut self, key: &str, value: &str) -> Result<(), Fatal> {
        if matches!(value, "Reject" | "Irrelevant" | "NotUnderstood") {
            return Ok(());
        }
        let is_discovery = self.config.target.is_none();
        match self.parameters.settle(key, value, &self.config.wishes, is_discovery) {
            Said::Value(result) if result == value => Ok(()),
            _ if matches!(key, "HeaderDigest" | "DataDigest") => Err(Fatal::NoDigests),
            Said::Value(_) | Said::Reject | Said::Broken => Err(BAD),
            // Declarations, and keys that only describe the target.
            Said::Nothing | Said::Irrelevant | Said::NotUnderstood => Ok(()),
        }
    }

    // Whether every digest that this end requires was negotiated.
    fn has_digests(&self) -> bool {
        let (wishes, digests) = (&self.config.wishes, self.parameters.digests);
        let has = |wish, is_agreed| wish != DigestWish::Required || is_agreed;
        has(wishes.header_digest, digests.header) && has(wishes.data_digest, digests.data)
    }

    // Ends the login, and returns the connection with the negotiated parameters.
    fn enter(&mut self) -> Entered {
        self.step = Step::Over;
        let digests = self.parameters.digests;
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.agree(digests, self.config.wishes.data_bytes);
        let link = Link {
            decoder,
            digests,
            cid: self.config.cid,
            stat_sn: self.exp_stat_sn,
            cmd_sn: self.window[0],
            max_cmd_sn: self.window[1],
            parameters: self.parameters,
            is_discovery: self.config.target.is_none(),
        };
        Entered { tsih: self.response.tsih, link }
    }

    // Appends a login request with these keys; `next` requests the transition to that stage.
    fn ask(&mut self, current: u8, next: Option<u8>, data: &[u8], out: &mut Vec<u8>) {
        self.requests += 1;
        let stage = LoginStage {
            transits: next.is_some(),
            continues: false,
            current,
            next: next.unwrap_or(0),
        };
        let request = LoginRequest {
            stage,
            version_max: 0,
            version_min: 0,
            isid: self.config.isid,
            tsih: self.config.tsih,
            itt: 0,
            cid: self.config.cid,
            numbers: Numbers { cmd_sn: self.config.cmd_sn, exp_stat_sn: self.exp_stat_sn },
        };
        Header::LoginRequest(request).encode(Digests::default(), data.len(), out);
        out.extend_from_slice(data);
        trailer(data, Digests::default(), out);
    }
}
