//! iSCSI: what is written is read, however it is cut; what cannot be is refused as the RFC says.

mod duel;
mod headers;
mod hostile;
mod login;
mod round_trip;
mod session;
mod shared;
mod tgt;

use scsi::iscsi::{
    Admission, Chap, Credentials, Decoder, Digests, Entered, Entry, EntryConfig, Event, Fatal,
    Header, Link, Login, LoginEvent, Nonce, Secret, Wishes, trailer,
};

pub(crate) const INITIATOR: &str = "iqn.2001-04.com.example:host";
pub(crate) const TARGET: &str = "iqn.2001-04.com.example:disk";

/// An event whose data is its own, data in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Got {
    Header(Header, u32),
    Data(Vec<u8>, bool),
}

/// Everything that comes of bytes which arrive in these pieces.
pub(crate) fn read<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Got>, Result<(), Fatal>) {
    let (mut got, mut data) = (Vec::new(), Vec::new());
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Header(header, length))) => got.push(Got::Header(header, length)),
                Ok(Some(Event::Data(bytes))) => {
                    assert!(!bytes.is_empty(), "a piece of data is one");
                    data.extend_from_slice(bytes);
                }
                Ok(Some(Event::End { is_intact })) => {
                    got.push(Got::Data(std::mem::take(&mut data), is_intact));
                }
                Err(fatal) => return (got, Err(fatal)),
            }
        }
        assert!(piece.is_empty(), "nothing is left over without an event");
    }
    (got, Ok(()))
}

/// A PDU as a peer would send it.
pub(crate) fn pdu(header: Header, digests: Digests, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.encode(digests, data.len(), &mut bytes);
    bytes.extend_from_slice(data);
    trailer(data, digests, &mut bytes);
    bytes
}

pub(crate) const fn nonce(id: u8) -> Nonce {
    Nonce { id, challenge: [id; 32] }
}

pub(crate) fn chap(is_mutual: bool) -> Chap {
    let of = |name: &str, secret: &str| Credentials {
        name: name.to_owned(),
        secret: Secret::new(secret),
    };
    let target = is_mutual.then(|| of("the disk", "said by the disk"));
    Chap { initiator: of("the host", "said by the host"), target }
}

pub(crate) fn entry_config(wishes: Wishes) -> EntryConfig {
    EntryConfig {
        initiator: INITIATOR.to_owned(),
        target: Some(TARGET.to_owned()),
        isid: [0x80, 0, 0, 0, 0, 1],
        tsih: 0,
        cid: 0,
        cmd_sn: 100,
        wishes,
        chap: None,
        algorithms: scsi::iscsi::Algorithm::ALL.to_vec(),
        nonce: nonce(2),
    }
}

/// Both ends of a login, and what they need of whoever owns them.
pub(crate) struct Handshake {
    pub(crate) admission: Admission,
    pub(crate) tsih: u16,
    pub(crate) window: Option<[u32; 2]>,
}

impl Default for Handshake {
    fn default() -> Self {
        let admission = Admission { chap: None, group: 1, alias: Some("a disk".to_owned()) };
        Self { admission, tsih: 7, window: None }
    }
}

impl Handshake {
    /// A login until both ends are in full feature phase, or one of them has ended it.
    pub(crate) fn run(
        &self,
        config: EntryConfig,
        wishes: Wishes,
    ) -> Result<(Link, Entered), Fatal> {
        let (mut to_target, mut to_initiator) = (Vec::new(), Vec::new());
        let mut entry = Entry::begin(config, &mut to_target);
        let mut login = Login::new(wishes, nonce(1));
        for _ in 0..20 {
            let bytes = std::mem::take(&mut to_target);
            let mut input = &bytes[..];
            let mut event = login.receive(&mut input, &mut to_initiator)?;
            if let Some(LoginEvent::Identified(identity)) = &event {
                assert_eq!(identity.initiator, INITIATOR);
                event = login.admit(self.admission.clone(), &mut to_initiator)?;
            }
            if let Some(LoginEvent::Agreed(..)) = event {
                let link = login.establish(self.tsih, self.window, &mut to_initiator);
                let mut input = &to_initiator[..];
                let entered = entry.receive(&mut input, &mut to_target)?;
                assert!(input.is_empty() && to_target.is_empty());
                return Ok((link, entered.expect("it ends with the target's last word")));
            }
            let bytes = std::mem::take(&mut to_initiator);
            let entered = entry.receive(&mut &bytes[..], &mut to_target)?;
            assert!(entered.is_none(), "the target has not let it in");
        }
        panic!("it does not end");
    }
}
