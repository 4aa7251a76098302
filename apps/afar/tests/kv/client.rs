//! A client of RESP 2 that knows nothing of afar's.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Self>),
}

/// One connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    asked: u64,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the server lets everybody in");
        // Longer than anything takes: a server that is silent fails a test instead of holding it.
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("it is not zero");
        stream.set_nodelay(true).expect("it is TCP");
        Self { stream: BufReader::new(stream), asked: 0 }
    }

    /// Sends commands at once.
    pub(crate) fn send<'a>(&mut self, commands: impl Iterator<Item = &'a [Vec<u8>]>) {
        let mut bytes = Vec::new();
        for words in commands {
            self.asked += 1;
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            encode(&mut bytes, &words);
        }
        self.send_bytes(&bytes);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the server reads");
    }

    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Reply {
        self.try_ask(words).expect("the server answers")
    }

    /// The same; nothing when the server is gone.
    pub(crate) fn try_ask(&mut self, words: &[&[u8]]) -> Option<Reply> {
        let mut bytes = Vec::new();
        encode(&mut bytes, words);
        self.asked += 1;
        self.stream.get_mut().write_all(&bytes).ok()?;
        self.try_reply()
    }

    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().expect("the server answers")
    }

    /// Commands that were sent.
    pub(crate) const fn asked(&self) -> u64 {
        self.asked
    }

    /// Whether the server has ended the connection.
    pub(crate) fn is_ended(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    fn try_reply(&mut self) -> Option<Reply> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).ok()?;
        let text = String::from_utf8(line.strip_suffix(b"\r\n")?.to_vec()).expect("heads are text");
        let (kind, rest) = text.split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        Some(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number()),
            "$" if number() < 0 => Reply::Bulk(None),
            "$" => {
                let mut value = vec![0; usize::try_from(number()).expect("a length") + 2];
                self.stream.read_exact(&mut value).ok()?;
                assert!(value.ends_with(b"\r\n"));
                value.truncate(value.len() - 2);
                Reply::Bulk(Some(value))
            }
            "*" => {
                let parts = (0..number()).map(|_| self.try_reply());
                Reply::Array(parts.collect::<Option<_>>()?)
            }
            _ => panic!("{text}"),
        })
    }
}

fn encode(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
