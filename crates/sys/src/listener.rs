//! Who listens at an address of this machine, by the kernel's tables of sockets.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// The address is not one of this machine, in this network namespace.
    Elsewhere,
    /// No socket listens at the address.
    Nobody,
    /// A socket listens, but of no process that the caller may inspect: another user's, or the
    /// kernel itself.
    Hidden,
    /// These processes listen, in order of their numbers.
    Processes(Vec<u32>),
}

/// Finds the processes that accept TCP connections to `address`.
#[must_use]
pub fn listening_at(address: SocketAddr) -> Listener {
    // A socket can be bound to an address only on the machine that has it.
    if UdpSocket::bind((address.ip(), 0)).is_err() {
        return Listener::Elsewhere;
    }
    let table = |name: &str| fs::read_to_string(format!("/proc/self/net/{name}"));
    let tables = ["tcp", "tcp6"].map(|name| table(name).unwrap_or_default());
    let sockets: BTreeSet<u64> =
        tables.iter().flat_map(|table| sockets_of(table, address)).collect();
    if sockets.is_empty() {
        return Listener::Nobody;
    }
    let processes = holders(&sockets);
    if processes.is_empty() { Listener::Hidden } else { Listener::Processes(processes) }
}

/// State LISTEN, as the table writes it.
const LISTEN: &str = "0A";

// The inodes of sockets in a table that listen at `address`.
fn sockets_of(table: &str, address: SocketAddr) -> Vec<u64> {
    let of = |line: &str| {
        // proc_net_tcp: sl, local address, remote address, state, ..., inode as the tenth.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(3).is_some_and(|state| *state == LISTEN);
        let local = parse(fields.get(1)?)?;
        let takes = local.port() == address.port() && takes(local.ip(), address.ip());
        let inode = fields.get(9)?.parse().ok()?;
        (listens && takes).then_some(inode)
    };
    table.lines().skip(1).filter_map(of).collect()
}

// Whether a socket bound to `local` accepts connections to `asked`. A wildcard accepts all; that of
// IPv6 also accepts IPv4, unless its socket excludes it.
fn takes(local: IpAddr, asked: IpAddr) -> bool {
    let (local, asked) = (local.to_canonical(), asked.to_canonical());
    match local {
        IpAddr::V4(ip) if ip.is_unspecified() => asked.is_ipv4(),
        IpAddr::V6(ip) if ip.is_unspecified() => true,
        _ => local == asked,
    }
}

// Parses an address such as `0100007F:1144`: words of 32 bits in the machine's byte order, and a
// port.
fn parse(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

// The processes that have one of these sockets open, sorted.
fn holders(sockets: &BTreeSet<u64>) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<u32> = numbers.filter(|pid| holds(*pid, sockets)).collect();
    found.sort_unstable();
    found
}

/// Whether process `pid` has one of these sockets open.
fn holds(pid: u32, sockets: &BTreeSet<u64>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| {
        let inode = file.to_str().and_then(|name| name.strip_prefix("socket:["));
        let inode = inode.and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        inode.is_some_and(|inode: u64| sockets.contains(&inode))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue ...
   0: 0100007F:1144 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 71 1
   1: 0100007F:1144 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 72 1
   2: 00000000:1145 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 73 1
   3: nonsense";
    const TABLE_6: &str = "  sl  local_address rem_address   st tx_queue ...
   0: 00000000000000000000000001000000:1144 0:0 0A 0:0 00:0 0     0        0 81 1
   1: 00000000000000000000000000000000:1146 0:0 0A 0:0 00:0 0     0        0 82 1";

    #[test]
    fn tables_say_which_sockets_listen_where() {
        let at = |address: &str| {
            let address = address.parse().expect("an address");
            [sockets_of(TABLE, address), sockets_of(TABLE_6, address)].concat()
        };
        assert_eq!(at("127.0.0.1:4420"), [71], "the connection is not one that listens");
        assert_eq!(at("127.0.0.2:4420"), []);
        assert_eq!(at("10.1.2.3:4421"), [73], "wildcard");
        assert_eq!(at("[::1]:4420"), [81]);
        assert_eq!(at("[::1]:4421"), [], "a wildcard of IPv4 is none of IPv6");
        assert_eq!(at("127.0.0.1:4422"), [82]);
        assert_eq!(at("[::ffff:127.0.0.1]:4420"), [71]);
    }

    #[test]
    fn this_process_is_found_where_it_listens() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().expect("it has one");
            let own = Listener::Processes(vec![std::process::id()]);
            assert_eq!(listening_at(address), own);
            drop(listener);
            assert_eq!(listening_at(address), Listener::Nobody);
        }
        let elsewhere = "192.0.2.1:4420".parse().expect("an address");
        assert_eq!(listening_at(elsewhere), Listener::Elsewhere);
    }
}
