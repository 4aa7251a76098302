//! A bare echo over TCP: the shortest time that an answer can take on this machine.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use sys::clock::monotonic_ns;
use sys::processors::pin;

use crate::failure::Failure;

/// Bytes of a command capsule, and of the PDUs that answer a read of 4 KiB.
const REQUEST: usize = 72;
const ANSWER: usize = 24 + 4096 + 24;

/// Median time of `count` requests and their answers between two processors, in microseconds. The
/// client spins; the server spins or sleeps.
///
/// # Errors
/// When there is no loopback.
pub(crate) fn median_us(server_spins: bool, count: u64) -> Result<f64, Failure> {
    let failed = || Failure::file("echo over", "127.0.0.1");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed())?;
    let address = listener.local_addr().map_err(failed())?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        pin(0).map_err(|error| error.source)?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(server_spins)?;
        let mut request = [0; REQUEST];
        let answer = [0; ANSWER];
        while receive(&mut stream, &mut request)? {
            send(&mut stream, &answer)?;
        }
        Ok(())
    });
    let client = std::thread::spawn(move || -> std::io::Result<Vec<u64>> {
        pin(1).map_err(|error| error.source)?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut answer = [0; ANSWER];
        let mut times = Vec::new();
        for _ in 0..count {
            let before = monotonic_ns();
            send(&mut stream, &[0; REQUEST])?;
            receive(&mut stream, &mut answer)?;
            times.push(monotonic_ns() - before);
        }
        Ok(times)
    });
    let panicked = |_| std::io::Error::other("it panicked");
    let times = client.join().map_err(panicked).and_then(|times| times);
    let mut times = times.map_err(failed())?;
    server.join().map_err(panicked).and_then(|ended| ended).map_err(failed())?;
    times.sort_unstable();
    Ok(times[times.len() / 2] as f64 / 1000.0)
}

// Fills `bytes` from the stream, spinning if it does not block. Returns false at its end.
fn receive(stream: &mut TcpStream, mut bytes: &mut [u8]) -> std::io::Result<bool> {
    while !bytes.is_empty() {
        match stream.read(bytes) {
            Ok(0) => return Ok(false),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

// Writes all `bytes`, spinning if the stream does not block.
fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
