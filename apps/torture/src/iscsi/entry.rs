//! Correct logins, and their parts (RFC 7143 6.3, 11.12, 12.1).

use scsi::iscsi::{Algorithm, Secret};

use super::super::case::{Case, Seen, Trouble};
use super::bhs::{Bhs, IMMEDIATE, LOGIN, LOGIN_RESPONSE, NO_TAG, text};
use super::peer::{ANSWER, Heard, Peer};

/// The parameters of a login.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) isid: [u8; 6],
    pub(super) tsih: u16,
    pub(super) cid: u16,
    pub(super) is_discovery: bool,
    /// Operational keys that differ from `WISHES`, or are additional.
    pub(super) keys: Vec<(&'static str, String)>,
}

/// Flags of a login request: transit, current stage and next stage.
pub(super) const SECURITY_TO_OPERATIONAL: u8 = 0x81;
pub(super) const SECURITY: u8 = 0x00;
pub(super) const OPERATIONAL_TO_FULL: u8 = 0x87;
pub(super) const OPERATIONAL: u8 = 0x04;
pub(super) const CONTINUES: u8 = 0x40;

const WISHES: [(&str, &str); 12] = [
    ("HeaderDigest", "None"),
    ("DataDigest", "None"),
    ("InitialR2T", "Yes"),
    ("ImmediateData", "Yes"),
    ("MaxBurstLength", "262144"),
    ("FirstBurstLength", "65536"),
    ("MaxRecvDataSegmentLength", "262144"),
    ("MaxOutstandingR2T", "1"),
    ("MaxConnections", "1"),
    ("ErrorRecoveryLevel", "0"),
    ("DataPDUInOrder", "Yes"),
    ("DataSequenceInOrder", "Yes"),
];

impl Entry {
    /// A login that begins a new session, whose ISID contains `number`.
    pub(super) fn new(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        let isid = [0x80, 0x7a, 0xfa, 0x12, high, low];
        Self { isid, tsih: 0, cid: 0, is_discovery: false, keys: Vec::new() }
    }

    /// This login with an operational key.
    pub(super) fn with(mut self, key: &'static str, value: &str) -> Self {
        self.keys.push((key, value.to_owned()));
        self
    }

    /// The text of InitiatorName, TargetName and SessionType.
    pub(super) fn names(&self, case: &Case<'_>) -> Vec<u8> {
        let place = case.site.iscsi();
        let mut pairs = vec![("InitiatorName", place.initiator.as_str())];
        if self.is_discovery {
            pairs.push(("SessionType", "Discovery"));
        } else {
            pairs.push(("TargetName", place.target.as_str()));
            pairs.push(("SessionType", "Normal"));
        }
        text(&pairs)
    }

    /// The text of the operational keys.
    pub(super) fn wishes(&self) -> Vec<u8> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (key, value) in WISHES {
            let own = self.keys.iter().find(|one| one.0 == key);
            let is_discovery = self.is_discovery && !matches!(key, "MaxRecvDataSegmentLength");
            if own.is_some() || !is_discovery {
                pairs.push((key, own.map_or(value, |own| own.1.as_str())));
            }
        }
        let is_wish = |key: &str| WISHES.iter().any(|one| one.0 == key);
        let further = self.keys.iter().filter(|one| !is_wish(one.0));
        pairs.extend(further.map(|(key, value)| (*key, value.as_str())));
        text(&pairs)
    }

    /// The header of a login request with `flags`.
    pub(super) fn bhs(&self, flags: u8) -> Bhs {
        let [high, low] = self.tsih.to_be_bytes();
        let [cid_high, cid_low] = self.cid.to_be_bytes();
        Bhs::new(LOGIN | IMMEDIATE)
            .byte(1, flags)
            .bytes(8, &self.isid)
            .bytes(14, &[high, low])
            .itt(7)
            .word(20, 0)
            .bytes(20, &[cid_high, cid_low])
            .word(24, 1)
    }
}

impl Peer {
    /// Connects and logs in with defaults: a session in full feature phase.
    pub(super) fn log_in(case: &Case<'_>) -> Result<Self, Trouble> {
        Self::enter(case, &Entry::new(1))
    }

    /// Connects and logs in: a session in full feature phase without pending unit attentions.
    pub(super) fn enter(case: &Case<'_>, entry: &Entry) -> Result<Self, Trouble> {
        let mut peer = Self::dial(case)?;
        match peer.logs_in(case, entry) {
            Seen::Served => {}
            seen => return Err(Trouble::Failed(format!("log in: {seen}"))),
        }
        // Clears unit attentions of the new session.
        for _ in 0..5 {
            let ready = peer.reading(&[0; 16], 0);
            if peer.ask(ready, &[]) == Seen::Served {
                break;
            }
        }
        Ok(peer)
    }

    /// Logs in correctly, with CHAP if a user is given.
    pub(super) fn logs_in(&mut self, case: &Case<'_>, entry: &Entry) -> Seen {
        let names = entry.names(case);
        let first = match &case.site.iscsi().user {
            None => names,
            Some((name, secret)) => match self.proves(entry, names, name, secret) {
                Seen::Served => Vec::new(),
                seen => return seen,
            },
        };
        let all = [first, entry.wishes()].concat();
        let mut seen = self.step(&entry.bhs(OPERATIONAL_TO_FULL), &all);
        // The target may need more requests before it transits.
        for _ in 0..5 {
            if seen != Seen::Served || self.last[1] & 0x83 == 0x83 {
                break;
            }
            seen = self.step(&entry.bhs(OPERATIONAL_TO_FULL), &[]);
        }
        if seen == Seen::Served {
            let is = |key: &str| self.keys.get(key).is_some_and(|value| value == "CRC32C");
            self.digests = [is("HeaderDigest"), is("DataDigest")];
            self.tsih = u16::from_be_bytes([self.last[14], self.last[15]]);
        }
        seen
    }

    /// Performs the security stage with CHAP.
    pub(super) fn proves(
        &mut self,
        entry: &Entry,
        names: Vec<u8>,
        name: &str,
        secret: &Secret,
    ) -> Seen {
        let challenged = self.challenged(entry, names, "7,5");
        let Ok((algorithm, id, challenge)) = challenged else {
            return challenged.err().unwrap_or(Seen::Stalled);
        };
        let response = hex(&algorithm.response(id, secret, &challenge));
        let answer = text(&[("CHAP_N", name), ("CHAP_R", &response)]);
        self.step(&entry.bhs(SECURITY_TO_OPERATIONAL), &answer)
    }

    /// Begins the security stage with CHAP, up to the target's challenge: algorithm, CHAP_I and
    /// CHAP_C.
    pub(super) fn challenged(
        &mut self,
        entry: &Entry,
        names: Vec<u8>,
        algorithms: &str,
    ) -> Result<(Algorithm, u8, Vec<u8>), Seen> {
        let begin = [names, text(&[("AuthMethod", "CHAP")])].concat();
        for all in [begin, text(&[("CHAP_A", algorithms)])] {
            match self.step(&entry.bhs(SECURITY), &all) {
                Seen::Served => {}
                seen => return Err(seen),
            }
        }
        let value = |key: &str| self.keys.get(key).cloned().unwrap_or_default();
        let algorithm = match value("CHAP_A").as_str() {
            "7" => Algorithm::Sha256,
            _ => Algorithm::Md5,
        };
        let id = value("CHAP_I").parse().unwrap_or(0);
        Ok((algorithm, id, unhex(&value("CHAP_C"))))
    }

    /// Sends a login request. Returns the target's reaction.
    pub(super) fn step(&mut self, bhs: &Bhs, data: &[u8]) -> Seen {
        let bytes = self.pdu(&bhs.word(28, self.exp_stat_sn), data);
        self.send(&bytes);
        self.login_answer()
    }

    /// Receives the reaction to a login request.
    pub(super) fn login_answer(&mut self) -> Seen {
        match self.hear(ANSWER) {
            Heard::Ended => Seen::Closed,
            Heard::Late => Seen::Stalled,
            Heard::Pdu { bhs, data } if bhs[0] & 0x3f == LOGIN_RESPONSE => {
                self.last = bhs;
                self.note(&data);
                self.refused(&bhs)
            }
            Heard::Pdu { bhs, .. } if bhs[0] & 0x3f == super::bhs::REJECT => Seen::Reject(bhs[2]),
            Heard::Pdu { bhs, .. } => Seen::Wrong(format!("PDU with opcode {:02x}h", bhs[0])),
        }
    }

    /// Stores the keys and values of a login response.
    fn note(&mut self, data: &[u8]) {
        for pair in data.split(|byte| *byte == 0) {
            if let Some((key, value)) = String::from_utf8_lossy(pair).split_once('=') {
                self.keys.insert(key.to_owned(), value.to_owned());
            }
        }
    }
}

/// `bytes` as `0x` and hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// The bytes of a text of `0x` and hexadecimal digits.
fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().skip(2).filter_map(|byte| char::from(byte).to_digit(16)).map(low).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}

/// The lowest byte of a number.
fn low(digit: u32) -> u8 {
    digit.to_le_bytes()[0]
}

/// A task tag that is never used.
pub(super) const UNKNOWN: u32 = NO_TAG - 77;
