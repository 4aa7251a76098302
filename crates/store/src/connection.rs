//! One connection: its unparsed input, its unwritten answers and its scan.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

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
