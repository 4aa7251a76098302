//! A bare echo over TCP on the loopback interface: what a request and its answer take on this
//! machine without any storage behind them.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use crate::clock::monotonic_ns;
use crate::processors::pin;
use crate::{Error, Result};

/// Bytes of a command capsule of NVMe/TCP, and of the PDUs that answer a read of 4 KiB.
const REQUEST: usize = 72;
const ANSWER: usize = 24 + 4096 + 24;

const OPERATION: &str = "echo over 127.0.0.1";

/// An end of the echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The processor that it runs on; `None` for any.
    pub processor: Option<usize>,
    /// Whether it spins while it waits; else it sleeps.
    pub spins: bool,
}

impl End {
    // Makes the calling thread this end.
    fn take(self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(self.spins)
    }

    // Keeps the calling thread on its processor.
    fn stay(self) -> std::io::Result<()> {
        self.processor.map_or(Ok(()), |number| pin(number).map_err(|error| error.source))
    }
}

/// Times of `count` requests and their answers, one after another, in nanoseconds. A request has
/// the bytes of a command over NVMe/TCP, and its answer those of a read of 4 KiB.
///
/// # Errors
/// When there is no loopback interface, or a thread may not run on its processor.
pub fn samples(server: End, client: End, count: u64) -> Result<Vec<u64>> {
    let failed = |source| Error { operation: OPERATION, source };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    // Connected here, so that neither thread waits for one that has failed.
    let connect = |address| TcpStream::connect(address);
    let mut stream = listener.local_addr().and_then(connect).map_err(failed)?;
    let serving = std::thread::spawn(move || -> std::io::Result<()> {
        server.stay()?;
        let (mut stream, _) = listener.accept()?;
        server.take(&stream)?;
        let mut request = [0; REQUEST];
        let answer = [0; ANSWER];
        while receive(&mut stream, &mut request)? {
            send(&mut stream, &answer)?;
        }
        Ok(())
    });
    let asking = std::thread::spawn(move || -> std::io::Result<Vec<u64>> {
        client.stay()?;
        client.take(&stream)?;
        let mut answer = [0; ANSWER];
        let mut times = Vec::new();
        for _ in 0..count {
            let before = monotonic_ns();
            send(&mut stream, &[0; REQUEST])?;
            if !receive(&mut stream, &mut answer)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            times.push(monotonic_ns() - before);
        }
        Ok(times)
    });
    let (served, times) = (ended(serving), ended(asking));
    served.map_err(failed)?;
    times.map_err(failed)
}

// Waits for the end of a thread.
fn ended<T>(thread: JoinHandle<std::io::Result<T>>) -> std::io::Result<T> {
    thread.join().map_err(|_panic| std::io::Error::other("it panicked")).and_then(|ended| ended)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_a_time() {
        let end = |spins| End { processor: None, spins };
        for (server, client) in [(false, false), (false, true), (true, false)] {
            let times = samples(end(server), end(client), 20).expect("there is a loopback");
            assert_eq!(times.len(), 20);
            assert!(times.iter().all(|&ns| ns > 0), "{times:?}");
        }
    }

    #[test]
    fn a_processor_that_is_not_there_is_an_error() {
        let nowhere = End { processor: Some(1023), spins: false };
        let end = End { processor: None, spins: false };
        for (server, client) in [(end, nowhere), (nowhere, end)] {
            let error = samples(server, client, 1).expect_err("few machines have so many");
            assert_eq!(error.source.kind(), ErrorKind::InvalidInput, "{error}");
        }
    }
}
