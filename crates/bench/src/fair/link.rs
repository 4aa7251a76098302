//! A slow link: a proxy that limits the rate from the host to the target.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Most bytes that are passed at a time.
const PIECE: usize = 16 << 10;

/// Starts a proxy to `to` with `bytes_per_s`. Returns the address at which it listens.
pub(super) fn start(to: SocketAddr, bytes_per_s: u64) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let own = listener.local_addr()?;
    std::thread::spawn(move || {
        for host in listener.incoming().flatten() {
            // If the target is gone, the host's connection is closed.
            let _gone = pass_both_ways(host, to, bytes_per_s);
        }
    });
    Ok(own)
}

/// Connects to `to` and passes bytes both ways in two threads.
fn pass_both_ways(host: TcpStream, to: SocketAddr, bytes_per_s: u64) -> Result<()> {
    let target = TcpStream::connect(to)?;
    for stream in [&host, &target] {
        stream.set_nodelay(true)?;
    }
    let (from_target, to_host) = (target.try_clone()?, host.try_clone()?);
    std::thread::spawn(move || pass(host, target, Some(bytes_per_s)));
    std::thread::spawn(move || pass(from_target, to_host, None));
    Ok(())
}

// Copies bytes, at most at a rate if that is given, until either end closes its connection.
fn pass(mut from: TcpStream, mut to: TcpStream, bytes_per_s: Option<u64>) {
    let mut piece = vec![0; PIECE];
    let mut free = Instant::now();
    while let Ok(count) = from.read(&mut piece)
        && count > 0
    {
        if let Some(rate) = bytes_per_s {
            let now = Instant::now();
            free = free.max(now) + Duration::from_nanos(count as u64 * 1_000_000_000 / rate);
            sleep(free.saturating_duration_since(now));
        }
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _gone = from.shutdown(std::net::Shutdown::Both);
    let _gone = to.shutdown(std::net::Shutdown::Both);
}
