//! One connection: its unparsed input, its unwritten answers and its scan.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use crate::execute::Scan;
use crate::resp::Parser;

/// Capacity of the answer buffer that stays allocated while it is empty.
const KEPT_BYTES: usize = 64 << 10;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Bytes,
    /// No bytes have arrived yet.
    Nothing,
    /// The peer has closed the connection, or it has failed.
    End,
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) parser: Parser,
    out: Vec<u8>,
    written: usize,
    /// Whether a thread executes its command.
    pub(crate) is_busy: bool,
    /// Whether the connection closes once all answers are written.
    pub(crate) is_ending: bool,
    /// The cursor of the last unfinished scan, and the key where it continues.
    cursor: Option<(u64, Vec<u8>)>,
    cursors: u64,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            parser: Parser::default(),
            out: Vec::new(),
            written: 0,
            is_busy: false,
            is_ending: false,
            cursor: None,
            cursors: 0,
        })
    }

    /// Reads once into `room` and feeds the bytes to the parser.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> Came {
        loop {
            return match self.stream.read(room) {
                Ok(0) => Came::End,
                Ok(length) => {
                    self.parser.feed(&room[..length]);
                    Came::Bytes
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Came::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => Came::End,
            };
        }
    }

    /// The buffer of unwritten answers.
    pub(crate) const fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Appends an answer to the unwritten ones.
    pub(crate) fn answer(&mut self, bytes: Vec<u8>) {
        if self.out.is_empty() {
            self.out = bytes;
        } else {
            self.out.extend_from_slice(&bytes);
        }
    }

    /// Writes answers until the socket would block. Returns whether all are written.
    ///
    /// # Errors
    /// When the connection has failed.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        Ok(true)
    }

    /// Writes all answers, waiting for the peer to read them until `until` at most.
    ///
    /// # Errors
    /// When the connection has failed, or the peer does not read in time.
    pub(crate) fn finish(&mut self, until: Instant) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        while self.written < self.out.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            // A peer that reads a little at a time is not waited for beyond that, either.
            self.stream.set_write_timeout(Some(left))?;
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Where a scan with `cursor` begins; `None` if it is neither 0 nor the last cursor returned.
    pub(crate) fn scan(&self, cursor: u64) -> Option<Scan> {
        let from = match (&self.cursor, cursor) {
            (_, 0) => Vec::new(),
            (Some((known, key)), cursor) if *known == cursor => key.clone(),
            _ => return None,
        };
        Some(Scan { from, next_cursor: self.cursors + 1 })
    }

    /// Records that the last scan continues at key `next`, under a new cursor.
    pub(crate) fn scanned(&mut self, next: Vec<u8>) {
        self.cursors += 1;
        self.cursor = Some((self.cursors, next));
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let peer = TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().expect("it was connected to");
        (Connection::new(stream).expect("it is a socket"), peer)
    }

    #[test]
    fn a_large_answer_is_written_whole_to_whoever_reads() {
        let (mut connection, mut peer) = pair();
        let answer = vec![7; 64 << 20];
        connection.answer(answer.clone());
        assert!(!connection.flush().expect("it is there"), "more than sockets hold");
        let reads = std::thread::spawn(move || {
            let mut read = Vec::new();
            peer.read_to_end(&mut read).map(|_| read)
        });
        let until = Instant::now() + Duration::from_secs(60);
        connection.finish(until).expect("it is read");
        drop(connection);
        let read = reads.join().expect("it has not failed").expect("it can be read");
        assert!(read == answer, "{} bytes", read.len());
    }

    #[test]
    fn whoever_does_not_read_is_not_waited_for() {
        let (mut connection, _peer) = pair();
        connection.answer(vec![7; 64 << 20]);
        let until = Instant::now() + Duration::from_millis(100);
        let ended = connection.finish(until).expect_err("nobody reads");
        assert_eq!(ended.kind(), ErrorKind::TimedOut);
    }
}
