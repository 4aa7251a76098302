//! Namespaces by name: `nvme+tcp://host:4420/NQN/1`.

use std::fmt;
use std::str::FromStr;

use nvme::Nqn;
use sys::stream::has_wrong_port;

/// The address of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmeUri {
    /// Name or address and port, as the resolver takes it.
    pub address: String,
    /// Its subsystem.
    pub subsystem: Nqn,
    /// Its identifier; `None` for the first one.
    pub namespace: Option<u32>,
}

/// Text that names no namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}; write nvme+tcp://HOST[:PORT]/NQN[/NSID]")]
pub struct NvmeUriError {
    text: String,
    reason: &'static str,
}

const SCHEME: &str = "nvme+tcp://";
/// Base 4.8, TCP 3.1.1: the port of I/O controllers.
const PORT: u16 = 4420;

impl FromStr for NvmeUri {
    type Err = NvmeUriError;

    fn from_str(text: &str) -> Result<Self, NvmeUriError> {
        let fail = |reason: &'static str| NvmeUriError { text: text.to_owned(), reason };
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| fail("it begins neither with nvme+tcp:// nor with iscsi://"))?;
        let (address, rest) = rest.split_once('/').ok_or_else(|| fail("no subsystem is named"))?;
        let (name, namespace) = match rest.rsplit_once('/') {
            Some((name, number)) => {
                let number = number.parse().ok().filter(|number| (1..u32::MAX).contains(number));
                let number = number.ok_or_else(|| fail("a namespace is a number from 1 on"))?;
                (name, Some(number))
            }
            None => (rest, None),
        };
        if name.is_empty() {
            return Err(fail("no subsystem is named"));
        }
        let subsystem = Nqn::new(name).ok_or_else(|| fail("a name has 1 to 223 bytes"))?;
        let address = address_of(address, PORT).map_err(fail)?;
        Ok(Self { address, subsystem, namespace })
    }
}

/// A host and its port, or this one if it names none; what is wrong if it cannot be.
pub(crate) fn address_of(text: &str, port: u16) -> Result<String, &'static str> {
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    if host.is_empty() {
        return Err("no host is named");
    }
    let has_port = match text.strip_prefix('[') {
        Some(rest) => rest.contains("]:"),
        None => text.contains(':'),
    };
    match has_port {
        true if has_wrong_port(text) => Err("a port is a whole number from 1 to 65535"),
        true => Ok(text.to_owned()),
        false => Ok(format!("{text}:{port}")),
    }
}

impl fmt::Display for NvmeUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.address, self.subsystem.as_str())?;
        self.namespace.map_or(Ok(()), |number| write!(f, "/{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_have_names() {
        let uri: NvmeUri = "nvme+tcp://10.0.0.1:4421/nqn.x:y/7".parse().expect("it is one");
        assert_eq!((uri.address.as_str(), uri.namespace), ("10.0.0.1:4421", Some(7)));
        assert_eq!(uri.subsystem.as_str(), "nqn.x:y");
        assert_eq!(uri.to_string(), "nvme+tcp://10.0.0.1:4421/nqn.x:y/7");
        for (text, address) in [
            ("nvme+tcp://disk/nqn.x:y", "disk:4420"),
            ("nvme+tcp://[::1]/nqn.x:y", "[::1]:4420"),
            ("nvme+tcp://[::1]:9/nqn.x:y", "[::1]:9"),
        ] {
            let uri: NvmeUri = text.parse().expect(text);
            assert_eq!((uri.address.as_str(), uri.namespace), (address, None), "{text}");
        }
        for text in
            ["nvme://a/b", "nvme+tcp://a", "nvme+tcp:///b", "nvme+tcp://a/", "nvme+tcp://a/b/0"]
        {
            assert!(text.parse::<NvmeUri>().is_err(), "{text}");
        }
        for port in ["99999", "0", "nvme", ""] {
            let text = format!("nvme+tcp://a:{port}/nqn.x");
            let error = text.parse::<NvmeUri>().expect_err(&text).to_string();
            assert!(error.contains("a port is a whole number from 1 to 65535"), "{error}");
        }
    }
}
