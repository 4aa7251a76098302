//! The identity of an initiator, and its settings for connections.

use std::fs::File;
use std::io::Read;

use measure::Duration;
use scsi::iscsi::{
    Algorithm, Chap, Credentials, DigestWish, Digests, EntryConfig, Nonce, Secret, Wishes,
};

use crate::HostError;

use super::IscsiUri;

/// See the module's description. Default times are those of open-iscsi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitiatorConfig {
    /// InitiatorName.
    pub name: String,
    /// CHAP secret of the user that a URI names.
    pub secret: Option<Secret>,
    /// CHAP secret of the target user that a URI names.
    pub target_secret: Option<Secret>,
    /// CHAP algorithms, the first preferred.
    pub algorithms: Vec<Algorithm>,
    /// Digests that are required on the wire.
    pub digests: Digests,
    /// How long a target may be silent before it is pinged.
    pub ping_after: Duration,
    /// How long the answer to a ping may take.
    pub ping_timeout: Duration,
    /// How long a login may take, and a command that does not access the medium.
    pub login_timeout: Duration,
    /// How long a command may take before its session counts as lost.
    pub command_timeout: Duration,
    /// Part of the ISID; has to differ between initiators of the same name.
    pub session_id: u32,
}

/// The number of a session of an initiator: a new session with the same number reinstates a lost
/// one (RFC 7143 6.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionNumber(pub(super) u16);

// ISID type 10b (random): the next three bytes are random, the last two chosen (RFC 7143 11.12.5).
const RANDOM_ISID: u8 = 0x80;

impl InitiatorConfig {
    /// An initiator of this name, without CHAP and required digests.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let session_id = u32::from_be_bytes(drawn());
        Self {
            name: name.to_owned(),
            secret: None,
            target_secret: None,
            algorithms: Algorithm::ALL.to_vec(),
            digests: Digests::default(),
            ping_after: Duration::from_ms(5000),
            ping_timeout: Duration::from_ms(5000),
            login_timeout: Duration::from_ms(15_000),
            command_timeout: Duration::from_ms(30_000),
            session_id,
        }
    }

    /// How long a silent target counts as present.
    pub(crate) const fn silence(&self) -> Duration {
        Duration::from_ns(self.ping_after.as_ns().saturating_add(self.ping_timeout.as_ns()))
    }

    // The ISID of a session.
    fn isid(&self, SessionNumber(number): SessionNumber) -> [u8; 6] {
        let [_, a, b, c] = self.session_id.to_be_bytes();
        let [high, low] = number.to_be_bytes();
        [RANDOM_ISID, a, b, c, high, low]
    }

    // The parameters to negotiate.
    fn wishes(&self, connections: u16) -> Wishes {
        let wish = |requires| if requires { DigestWish::Required } else { DigestWish::Possible };
        Wishes {
            header_digest: wish(self.digests.header),
            data_digest: wish(self.digests.data),
            max_connections: connections,
            ..Wishes::default()
        }
    }

    // The CHAP secrets of both ends; `None` for a URI without a user.
    fn chap(&self, uri: &IscsiUri) -> Result<Option<Chap>, HostError> {
        let missing = |of: &str| HostError::Protocol {
            operation: "log in to the target",
            reason: format!("there is no secret of {of}"),
        };
        let Some(user) = &uri.user else { return Ok(None) };
        let credentials = |name: &String, secret: &Option<Secret>| {
            let secret = secret.clone().ok_or_else(|| missing(name))?;
            Ok(Credentials { name: name.clone(), secret })
        };
        let target = uri.target_user.as_ref();
        let target = target.map(|name| credentials(name, &self.target_secret)).transpose()?;
        Ok(Some(Chap { initiator: credentials(user, &self.secret)?, target }))
    }

    /// The configuration of the login of a session's first connection.
    pub(super) fn entry(
        &self,
        uri: &IscsiUri,
        number: SessionNumber,
        is_discovery: bool,
    ) -> Result<EntryConfig, HostError> {
        let [id, challenge @ ..]: [u8; 33] = drawn();
        Ok(EntryConfig {
            initiator: self.name.clone(),
            target: (!is_discovery).then(|| uri.target.clone()),
            isid: self.isid(number),
            tsih: 0,
            cid: 0,
            cmd_sn: 1,
            wishes: self.wishes(uri.connections),
            chap: self.chap(uri)?,
            algorithms: self.algorithms.clone(),
            nonce: Nonce { id, challenge },
        })
    }
}

/// Random bytes.
pub(super) fn drawn<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.expect("every Linux has this file, and it does not fail");
    bytes
}
