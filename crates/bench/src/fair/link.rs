//! A slow link: a proxy that passes so many bytes a second from the host to the target.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Passed at a time.
const PIECE: usize = 16 << 10;

/// Begins to pass on what comes to a port of its own; which that is.
pub(super) fn start(to: SocketAddr, bytes_per_s: u64) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let own = listener.local_addr()?;
    std::thread::spawn(move || {
        for host in listener.incoming().flatten() {
            // Whoever finds nobody there hears of it.
            let _gone = pass_both_ways(host, to, bytes_per_s);
        }
    });
    Ok(own)
}

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

// Until either end goes.
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
