//! Logical units by name: `iscsi://user@host:3260/IQN/0`.

use std::fmt;
use std::str::FromStr;

use scsi::Lun;
use scsi::iscsi::NAME_BYTES_MAX;

use crate::address_of;

/// The address of a logical unit, and how to connect to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IscsiUri {
    /// User name of the initiator (CHAP_N); `None` without authentication.
    pub user: Option<String>,
    /// Name or address and port, as the resolver takes it.
    pub address: String,
    /// TargetName.
    pub target: String,
    /// Its LUN; `None` for the first disk.
    pub lun: Option<Lun>,
    /// Connections of each session.
    pub connections: u16,
    /// User name of the target, if it has to authenticate, too.
    pub target_user: Option<String>,
}

/// Text that names no logical unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}; write iscsi://[USER@]HOST[:PORT]/IQN[/LUN][?connections=NUMBER]")]
pub struct IscsiUriError {
    text: String,
    reason: &'static str,
}

const SCHEME: &str = "iscsi://";
/// The default port (RFC 7143 4.2.7.4).
const PORT: u16 = 3260;
/// Types of names (RFC 7143 4.2.7.2).
const TYPES: [&str; 3] = ["iqn.", "eui.", "naa."];

impl IscsiUri {
    /// Connections of a session at most.
    pub const CONNECTIONS_MAX: u16 = 16;

    /// A URI for discovery at an address with a port.
    #[must_use]
    pub const fn portal(user: Option<String>, address: String) -> Self {
        Self { user, address, target: String::new(), lun: None, connections: 1, target_user: None }
    }
}

impl FromStr for IscsiUri {
    type Err = IscsiUriError;

    fn from_str(text: &str) -> Result<Self, IscsiUriError> {
        let fail = |reason: &'static str| IscsiUriError { text: text.to_owned(), reason };
        let rest =
            text.strip_prefix(SCHEME).ok_or_else(|| fail("it does not begin with iscsi://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, rest) = rest.split_once('/').ok_or_else(|| fail("no target is named"))?;
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(['%', ':'])) {
            return Err(fail("a secret does not belong here, where others may read it"));
        }
        if user == Some("") {
            return Err(fail("no user is named before the @"));
        }
        let address = address_of(address, PORT).map_err(fail)?;
        let (target, lun) = match rest.rsplit_once('/') {
            Some((target, number)) => {
                let lun = number.parse().ok().and_then(Lun::new);
                (target, Some(lun.ok_or_else(|| fail("a LUN is a number from 0 to 16383"))?))
            }
            None => (rest, None),
        };
        let is_name = TYPES.iter().any(|of| target.starts_with(of))
            && target.len() <= NAME_BYTES_MAX
            && !target.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
        if !is_name {
            return Err(fail(
                "a target's name begins with iqn., eui. or naa. and has 223 bytes at most",
            ));
        }
        let mut uri = Self {
            user: user.map(str::to_owned),
            address,
            target: target.to_owned(),
            lun,
            connections: 1,
            target_user: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("connections", number)) => {
                    let number = number.parse().ok();
                    let number =
                        number.filter(|number| (1..=Self::CONNECTIONS_MAX).contains(number));
                    uri.connections = number.ok_or_else(|| fail("connections are 1 to 16"))?;
                }
                Some(("target_user", name)) if !name.is_empty() => {
                    uri.target_user = Some(name.to_owned());
                }
                _ => return Err(fail("after ? there are connections= and target_user=")),
            }
        }
        if uri.target_user.is_some() && uri.user.is_none() {
            return Err(fail("a target proves who it is only to a user"));
        }
        Ok(uri)
    }
}

impl fmt::Display for IscsiUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}/{}", self.address, self.target)?;
        self.lun.map_or(Ok(()), |lun| write!(f, "/{}", lun.number()))?;
        let mut mark = '?';
        if self.connections > 1 {
            write!(f, "{mark}connections={}", self.connections)?;
            mark = '&';
        }
        self.target_user.as_ref().map_or(Ok(()), |name| write!(f, "{mark}target_user={name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_units_have_names() {
        let uri: IscsiUri = "iscsi://me@10.0.0.1:860/iqn.2001-04.com.x:d/7".parse().expect("one");
        assert_eq!((uri.user.as_deref(), uri.address.as_str()), (Some("me"), "10.0.0.1:860"));
        assert_eq!((uri.target.as_str(), uri.lun), ("iqn.2001-04.com.x:d", Lun::new(7)));
        for (text, address) in [
            ("iscsi://disk/iqn.x:y", "disk:3260"),
            ("iscsi://[::1]/eui.0123456789abcdef", "[::1]:3260"),
            ("iscsi://[::1]:9/naa.0123456789abcdef", "[::1]:9"),
        ] {
            let uri: IscsiUri = text.parse().expect(text);
            let rest = (uri.user, uri.lun, uri.connections, uri.target_user);
            assert_eq!((uri.address.as_str(), rest), (address, (None, None, 1, None)), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "iscsi://disk:3260/iqn.x:y/0",
            "iscsi://disk:3260/iqn.x:y",
            "iscsi://me@disk:3260/iqn.x:y/16383?connections=16&target_user=it",
            "iscsi://me@disk:3260/iqn.x:y/1?target_user=it",
        ] {
            let uri: IscsiUri = text.parse().expect(text);
            assert_eq!(uri.to_string(), text);
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for (text, reason) in [
            ("nvme+tcp://a/iqn.b/0", "does not begin with iscsi://"),
            ("iscsi://a", "no target"),
            ("iscsi:///iqn.b/0", "no host"),
            ("iscsi://:3260/iqn.b/0", "no host"),
            ("iscsi://a:99999/iqn.b/0", "a port is a whole number from 1 to 65535"),
            ("iscsi://a/b/0", "begins with iqn."),
            ("iscsi://a/iqn.b /0", "begins with iqn."),
            ("iscsi://a/iqn.b/16384", "a LUN is"),
            ("iscsi://a/iqn.b/", "a LUN is"),
            ("iscsi://@a/iqn.b/0", "no user"),
            ("iscsi://me%secret@a/iqn.b/0", "a secret does not belong"),
            ("iscsi://me:secret@a/iqn.b/0", "a secret does not belong"),
            ("iscsi://a/iqn.b/0?connections=0", "connections are 1 to 16"),
            ("iscsi://a/iqn.b/0?connections=17", "connections are 1 to 16"),
            ("iscsi://a/iqn.b/0?speed=fast", "after ? there are"),
            ("iscsi://a/iqn.b/0?target_user=it", "only to a user"),
        ] {
            let error = text.parse::<IscsiUri>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let long = format!("iscsi://a/iqn.{}/0", "b".repeat(NAME_BYTES_MAX));
        assert!(long.parse::<IscsiUri>().is_err());
    }
}
