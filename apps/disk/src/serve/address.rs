//! Parses addresses that a target listens at, or is reached at.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Mutex, PoisonError};

use sys::stream::has_wrong_port;

/// A text that is no address to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no place to listen, or no host has that name; write ADDRESS:PORT, e.g. \
     0.0.0.0:4420, [::1]:4420 or localhost:4420"
)]
pub(crate) struct AddressError(String);

/// An address whose port is no number from 1 to 65535.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\": a port is a whole number from 1 to 65535; write HOST or HOST:PORT")]
pub(crate) struct PortError(String);

/// Parses an address to listen at: `ADDRESS:PORT` or `HOST:PORT`, or a port for every address.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, AddressError> {
    let port = text.parse().map(|port: u16| SocketAddr::from(([0, 0, 0, 0], port)));
    if let Ok(address) = text.parse().or(port) {
        return Ok(address);
    }
    // The name of a host. Its address is looked up once: listening addresses cannot change later,
    // and a sandbox may forbid to look it up again.
    static KNOWN: Mutex<BTreeMap<String, SocketAddr>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(address) = known.get(text) {
        return Ok(*address);
    }
    // The first IPv4 address is taken, or else the first address.
    let found: Vec<SocketAddr> = text.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let first = found.iter().find(|one| one.is_ipv4()).or_else(|| found.first()).copied();
    let address = first.ok_or_else(|| AddressError(text.to_owned()))?;
    known.insert(text.to_owned(), address);
    Ok(address)
}

/// Adds a port to a name or address that has none.
///
/// # Errors
/// When it has a port that is no number from 1 to 65535.
pub(crate) fn with_port(text: &str, port: u16) -> Result<String, PortError> {
    let is_bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
    let has_port = match text.rsplit_once(':') {
        Some((host, port)) => {
            !is_bare_v6 && !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    };
    match (has_port, is_bare_v6) {
        (true, _) if has_wrong_port(text) => Err(PortError(text.to_owned())),
        (true, _) => Ok(text.to_owned()),
        (false, true) => Ok(format!("[{text}]:{port}")),
        (false, false) => Ok(format!("{text}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_listen() {
        let text = |text: &str| socket_address(text).map(|address| address.to_string()).ok();
        assert_eq!(text("127.0.0.1:4420").as_deref(), Some("127.0.0.1:4420"));
        assert_eq!(text("[::1]:9").as_deref(), Some("[::1]:9"));
        assert_eq!(text("4420").as_deref(), Some("0.0.0.0:4420"));
        assert_eq!(text("localhost:4420").as_deref(), Some("127.0.0.1:4420"));
        assert_eq!(text("disk"), None);
        assert_eq!(text("no.such.host.invalid:4420"), None);
    }
}
