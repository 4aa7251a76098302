//! Where a target listens, and where one is reached.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Mutex, PoisonError};

/// A text that is no place to listen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no place to listen, or no host has that name; write ADDRESS:PORT, e.g. \
     0.0.0.0:4420, [::1]:4420 or localhost:4420"
)]
pub(crate) struct AddressError(String);

/// Reads where to listen: `ADDRESS:PORT` or `HOST:PORT`, or a port on every address.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, AddressError> {
    let port = text.parse().map(|port: u16| SocketAddr::from(([0, 0, 0, 0], port)));
    if let Ok(address) = text.parse().or(port) {
        return Ok(address);
    }
    // The name of a host. What it means stays, for nobody listens elsewhere later, and a sandbox
    // may keep this process from asking again.
    static KNOWN: Mutex<BTreeMap<String, SocketAddr>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(address) = known.get(text) {
        return Ok(*address);
    }
    // Of its addresses the first that IPv4 has is taken.
    let found: Vec<SocketAddr> = text.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let first = found.iter().find(|one| one.is_ipv4()).or_else(|| found.first()).copied();
    let address = first.ok_or_else(|| AddressError(text.to_owned()))?;
    known.insert(text.to_owned(), address);
    Ok(address)
}

/// Adds a port to a name or address that has none.
pub(crate) fn with_port(text: &str, port: u16) -> String {
    let is_bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
    let has_port = match text.rsplit_once(':') {
        Some((host, port)) => {
            // One that is no port is told as that, by whoever connects.
            !is_bare_v6 && !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    };
    match (has_port, is_bare_v6) {
        (true, _) => text.to_owned(),
        (false, true) => format!("[{text}]:{port}"),
        (false, false) => format!("{text}:{port}"),
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
