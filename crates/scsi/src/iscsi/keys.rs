//! Operational keys and the negotiation of their values (RFC 7143 6.2, 13).
//!
//! One table defines how a key is settled; a target answers with the result, an initiator accepts
//! an answer only if it is the result.

use super::decoder::DEFAULT_DATA_BYTES;
use super::pdu::Digests;
use super::text::number;

/// Whether an end wants a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DigestWish {
    /// The end never uses one.
    #[default]
    Never,
    /// The end prefers none.
    Possible,
    /// The end prefers one.
    Preferred,
    /// The end fails the login without one.
    Required,
}

/// An end's values for the negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// Header digests.
    pub header_digest: DigestWish,
    /// Data digests.
    pub data_digest: DigestWish,
    /// MaxRecvDataSegmentLength: bytes of data in a PDU to this end; 512 to 16,777,215.
    pub data_bytes: u32,
    /// MaxConnections; 1 to 65,535.
    pub max_connections: u16,
    /// InitialR2T: data beyond immediate data needs an R2T.
    pub initial_r2t: bool,
    /// ImmediateData: data may come in the command's PDU.
    pub immediate_data: bool,
    /// MaxBurstLength; 512 to 16,777,215.
    pub max_burst_bytes: u32,
    /// FirstBurstLength; 512 to 16,777,215.
    pub first_burst_bytes: u32,
    /// MaxOutstandingR2T; 1 to 65,535.
    pub max_outstanding_r2t: u16,
}

/// The negotiated parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// Digests of the connection.
    pub digests: Digests,
    /// Bytes of data in a PDU to the other end.
    pub peer_data_bytes: u32,
    /// See [`Wishes`] for this and what follows.
    pub max_connections: u16,
    /// See [`Wishes`].
    pub initial_r2t: bool,
    /// See [`Wishes`].
    pub immediate_data: bool,
    /// See [`Wishes`].
    pub max_burst_bytes: u32,
    /// See [`Wishes`]; not above `max_burst_bytes`.
    pub first_burst_bytes: u32,
    /// See [`Wishes`].
    pub max_outstanding_r2t: u16,
    /// DefaultTime2Wait: seconds before a reconnect.
    pub time_to_wait: u16,
    /// DefaultTime2Retain: seconds after that for which tasks are retained.
    pub time_to_retain: u16,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            header_digest: DigestWish::Possible,
            data_digest: DigestWish::Possible,
            data_bytes: 256 << 10,
            max_connections: 1,
            initial_r2t: false,
            immediate_data: true,
            max_burst_bytes: 1 << 20,
            first_burst_bytes: 64 << 10,
            max_outstanding_r2t: 1,
        }
    }
}

/// The values of keys that are not negotiated (13).
impl Default for Parameters {
    fn default() -> Self {
        Self {
            digests: Digests::default(),
            peer_data_bytes: DEFAULT_DATA_BYTES,
            max_connections: 1,
            initial_r2t: true,
            immediate_data: true,
            max_burst_bytes: 256 << 10,
            first_burst_bytes: 64 << 10,
            max_outstanding_r2t: 1,
            time_to_wait: 2,
            time_to_retain: 20,
        }
    }
}

/// The answer to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// None: the key is a declaration.
    Nothing,
    /// This value.
    Value(String),
    /// Reject: the value is invalid.
    Reject,
    /// Irrelevant: the key has no meaning here (6.2).
    Irrelevant,
    /// NotUnderstood: the key is unknown.
    NotUnderstood,
    /// The login fails because of the value.
    Broken,
}

/// The range of all lengths in bytes (13.12 to 13.14).
const BYTES: [u64; 2] = [512, (1 << 24) - 1];

impl Parameters {
    /// Settles a key of the other end with this end's wishes. Keys are settled in the order in
    /// which they come, but FirstBurstLength after MaxBurstLength.
    pub(crate) fn settle(
        &mut self,
        key: &str,
        value: &str,
        wishes: &Wishes,
        is_discovery: bool,
    ) -> Said {
        match key {
            "HeaderDigest" => digest(value, wishes.header_digest, &mut self.digests.header),
            "DataDigest" => digest(value, wishes.data_digest, &mut self.digests.data),
            "MaxRecvDataSegmentLength" => match in_range(value, BYTES) {
                Some(bytes) => {
                    self.peer_data_bytes = bytes;
                    Said::Nothing
                }
                None => Said::Broken,
            },
            _ if is_discovery && is_of_normal_sessions(key) => Said::Irrelevant,
            "MaxConnections" => {
                least(value, wishes.max_connections, [1, 65_535], &mut self.max_connections)
            }
            "InitialR2T" => flag(value, &mut self.initial_r2t, |it| it || wishes.initial_r2t),
            "ImmediateData" => {
                flag(value, &mut self.immediate_data, |it| it && wishes.immediate_data)
            }
            "MaxBurstLength" => {
                let said = least(value, wishes.max_burst_bytes, BYTES, &mut self.max_burst_bytes);
                self.first_burst_bytes = self.first_burst_bytes.min(self.max_burst_bytes);
                said
            }
            // FirstBurstLength is never above MaxBurstLength (13.14).
            "FirstBurstLength" => {
                let own = wishes.first_burst_bytes.min(self.max_burst_bytes);
                least(value, own, BYTES, &mut self.first_burst_bytes)
            }
            "MaxOutstandingR2T" => {
                let own = wishes.max_outstanding_r2t;
                least(value, own, [1, 65_535], &mut self.max_outstanding_r2t)
            }
            // 13.15: the maximum, and a target wants 0; 13.16: the minimum: tasks are not retained.
            "DefaultTime2Wait" => match in_range(value, [0, 3600]) {
                Some(seconds) => {
                    self.time_to_wait = u16::try_from(seconds).unwrap_or(3600);
                    Said::Value(seconds.to_string())
                }
                None => Said::Reject,
            },
            "DefaultTime2Retain" => least(value, 0, [0, 3600], &mut self.time_to_retain),
            // Data comes in order (13.18, 13.19: OR), at error recovery level 0 (13.20: minimum).
            "DataPDUInOrder" | "DataSequenceInOrder" => flag(value, &mut true.clone(), |_| true),
            "ErrorRecoveryLevel" => least(value, 0_u16, [0, 2], &mut 0),
            // RFC 7144 3.1: the level of RFC 7143 without its extensions.
            "iSCSIProtocolLevel" => least(value, 1_u16, [0, 31], &mut 0),
            "TaskReporting" => first_of(value, &["RFC3720"]),
            // 13.25: markers are obsolete, but the keys have to be answered.
            "IFMarker" | "OFMarker" => Said::Value("No".to_owned()),
            "IFMarkInt" | "OFMarkInt" => Said::Reject,
            _ => Said::NotUnderstood,
        }
    }
}

// Whether a key is irrelevant in a discovery session (13: use LO, or irrelevant by definition).
fn is_of_normal_sessions(key: &str) -> bool {
    matches!(
        key,
        "MaxConnections"
            | "InitialR2T"
            | "ImmediateData"
            | "MaxBurstLength"
            | "FirstBurstLength"
            | "MaxOutstandingR2T"
            | "DataPDUInOrder"
            | "DataSequenceInOrder"
            | "TaskReporting"
    )
}

// The number, if it is within a range.
fn in_range(value: &str, [low, high]: [u64; 2]) -> Option<u32> {
    let number = number(value).filter(|number| (low..=high).contains(number))?;
    u32::try_from(number).ok()
}

// Settles a key by the minimum of both values.
fn least<T: Copy + Into<u32> + TryFrom<u32>>(
    value: &str,
    own: T,
    range: [u64; 2],
    agreed: &mut T,
) -> Said {
    let Some(offered) = in_range(value, range) else { return Said::Reject };
    let result = offered.min(own.into());
    *agreed = T::try_from(result).unwrap_or(own);
    Said::Value(result.to_string())
}

// Settles a boolean key with `settle`.
fn flag(value: &str, agreed: &mut bool, settle: impl FnOnce(bool) -> bool) -> Said {
    let offered = match value {
        "Yes" => true,
        "No" => false,
        _ => return Said::Reject,
    };
    *agreed = settle(offered);
    Said::Value(yes_or_no(*agreed).to_owned())
}

// Settles a list key by the first offered value that this end takes (6.2.1).
fn first_of(value: &str, takes: &[&str]) -> Said {
    let found = value.split(',').find(|offered| takes.contains(offered));
    found.map_or(Said::Reject, |found| Said::Value(found.to_owned()))
}

// Settles a digest key.
fn digest(value: &str, wish: DigestWish, agreed: &mut bool) -> Said {
    let takes: &[&str] = match wish {
        DigestWish::Never => &["None"],
        DigestWish::Required => &["CRC32C"],
        DigestWish::Possible | DigestWish::Preferred => &["None", "CRC32C"],
    };
    match first_of(value, takes) {
        Said::Value(value) => {
            *agreed = value == "CRC32C";
            Said::Value(value)
        }
        // No common value: the login fails.
        _ => Said::Broken,
    }
}

/// A boolean as a key's value.
pub(crate) const fn yes_or_no(is: bool) -> &'static str {
    if is { "Yes" } else { "No" }
}

impl DigestWish {
    /// The value that an initiator offers.
    const fn offer(self) -> &'static str {
        match self {
            Self::Never => "None",
            Self::Possible => "None,CRC32C",
            Self::Preferred => "CRC32C,None",
            Self::Required => "CRC32C",
        }
    }
}

impl Wishes {
    /// The keys and values that an initiator offers, in order.
    pub(crate) fn offers(&self, is_discovery: bool) -> Vec<(&'static str, String)> {
        let mut offers = vec![
            ("HeaderDigest", self.header_digest.offer().to_owned()),
            ("DataDigest", self.data_digest.offer().to_owned()),
            ("MaxRecvDataSegmentLength", self.data_bytes.to_string()),
            ("DefaultTime2Wait", "2".to_owned()),
            ("DefaultTime2Retain", "0".to_owned()),
            ("ErrorRecoveryLevel", "0".to_owned()),
        ];
        if !is_discovery {
            offers.extend([
                ("MaxConnections", self.max_connections.to_string()),
                ("InitialR2T", yes_or_no(self.initial_r2t).to_owned()),
                ("ImmediateData", yes_or_no(self.immediate_data).to_owned()),
                ("MaxBurstLength", self.max_burst_bytes.to_string()),
                ("FirstBurstLength", self.first_burst_bytes.to_string()),
                ("MaxOutstandingR2T", self.max_outstanding_r2t.to_string()),
                ("DataPDUInOrder", "Yes".to_owned()),
                ("DataSequenceInOrder", "Yes".to_owned()),
            ]);
        }
        offers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(key: &str, value: &str) -> Said {
        Parameters::default().settle(key, value, &Wishes::default(), false)
    }

    fn value(text: &str) -> Said {
        Said::Value(text.to_owned())
    }

    #[test]
    fn every_key_is_settled_by_its_rule() {
        let cases = [
            ("HeaderDigest", "CRC32C,None", value("CRC32C")),
            ("DataDigest", "None", value("None")),
            ("DataDigest", "X-hash,CRC32C", value("CRC32C")),
            ("DataDigest", "X-hash", Said::Broken),
            ("MaxConnections", "65535", value("1")),
            ("InitialR2T", "No", value("No")),
            ("InitialR2T", "Yes", value("Yes")),
            ("ImmediateData", "No", value("No")),
            ("ImmediateData", "yes", Said::Reject),
            ("MaxBurstLength", "16776192", value("1048576")),
            ("MaxBurstLength", "0x200", value("512")),
            ("FirstBurstLength", "16776192", value("65536")),
            ("MaxOutstandingR2T", "8", value("1")),
            ("DefaultTime2Wait", "7", value("7")),
            ("DefaultTime2Retain", "20", value("0")),
            ("DataPDUInOrder", "No", value("Yes")),
            ("ErrorRecoveryLevel", "2", value("0")),
            ("ErrorRecoveryLevel", "3", Said::Reject),
            ("iSCSIProtocolLevel", "2", value("1")),
            ("TaskReporting", "FastAbort,RFC3720", value("RFC3720")),
            ("IFMarker", "Yes", value("No")),
            ("OFMarkInt", "2048~8192", Said::Reject),
            ("X-com.example.key", "1", Said::NotUnderstood),
            ("MaxRecvDataSegmentLength", "511", Said::Broken),
            ("MaxRecvDataSegmentLength", "16777216", Said::Broken),
            ("MaxRecvDataSegmentLength", "16777215", Said::Nothing),
        ];
        for (key, offer, expected) in cases {
            assert_eq!(said(key, offer), expected, "{key}={offer}");
        }
        for bad in ["0", "-1", "4294967296", "18446744073709551616", "0x", "1e9", "+1", " 512"] {
            assert_eq!(said("MaxBurstLength", bad), Said::Reject, "{bad}");
        }
    }

    #[test]
    fn a_first_burst_is_no_longer_than_any() {
        let mut parameters = Parameters::default();
        let wishes = Wishes::default();
        assert_eq!(parameters.settle("MaxBurstLength", "8192", &wishes, false), value("8192"));
        assert_eq!(parameters.first_burst_bytes, 8192);
        assert_eq!(parameters.settle("FirstBurstLength", "65536", &wishes, false), value("8192"));
    }

    #[test]
    fn a_discovery_session_moves_no_data() {
        let mut parameters = Parameters::default();
        let mut settle = |key, value| parameters.settle(key, value, &Wishes::default(), true);
        assert_eq!(settle("MaxConnections", "4"), Said::Irrelevant);
        assert_eq!(settle("InitialR2T", "No"), Said::Irrelevant);
        assert_eq!(settle("ErrorRecoveryLevel", "0"), value("0"));
    }

    #[test]
    fn offers_are_settled_as_they_were_made() {
        let (mut parameters, wishes) = (Parameters::default(), Wishes::default());
        for (key, offer) in wishes.offers(false) {
            let said = parameters.settle(key, &offer, &wishes, false);
            let is_declared = key == "MaxRecvDataSegmentLength";
            assert_eq!(said == Said::Nothing, is_declared, "{key}");
            assert!(is_declared || matches!(said, Said::Value(_)), "{key}");
        }
    }
}
