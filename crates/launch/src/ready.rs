//! What a target or a key-value server reports once it serves.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The line that `afar kv serve --ready-fd` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvReady {
    /// [`KvReady::SCHEMA`].
    pub schema: String,
    /// Where clients connect.
    pub address: SocketAddr,
}

impl KvReady {
    /// The version of the line.
    pub const SCHEMA: &'static str = "afar.kv.ready/1";

    /// The line of a server at `address`.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { schema: Self::SCHEMA.to_owned(), address }
    }

    /// Writes the line.
    ///
    /// # Errors
    /// When the descriptor cannot be written to.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let text = serde_json::to_string(self).map_err(io::Error::from)? + "\n";
        to.write_all(text.as_bytes())
    }

    /// Parses the line; `None` if `text` is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|ready: &Self| ready.schema == Self::SCHEMA)
    }
}

/// The line that `afar serve --ready-fd` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// [`Ready::SCHEMA`].
    pub schema: String,
    /// Where NVMe/TCP hosts connect.
    pub nvme: Vec<SocketAddr>,
    /// Where iSCSI initiators connect.
    pub iscsi: Vec<SocketAddr>,
    /// Address of the metrics, if they are served.
    pub metrics: Option<SocketAddr>,
    /// The thread of each shard, by its number in the kernel.
    pub shards: Vec<u32>,
}

impl Ready {
    /// The version of the line.
    pub const SCHEMA: &str = "afar.ready/1";

    /// Writes the line.
    ///
    /// # Errors
    /// When the descriptor cannot be written to.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let text = serde_json::to_string(self).map_err(io::Error::from)? + "\n";
        to.write_all(text.as_bytes())
    }

    /// Waits for the line; `None` if the writer ended without one.
    pub fn read(from: impl Read) -> Option<Self> {
        let mut line = String::new();
        BufReader::new(from).read_line(&mut line).ok()?;
        Self::parse(&line)
    }

    /// Parses the line; `None` if `text` is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|ready: &Self| ready.schema == Self::SCHEMA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_write_is_the_same() {
        let ready = Ready {
            schema: Ready::SCHEMA.to_owned(),
            nvme: vec!["127.0.0.1:4420".parse().expect("an address")],
            iscsi: Vec::new(),
            metrics: None,
            shards: vec![7, 8],
        };
        let mut line = Vec::new();
        ready.write(&mut line).expect("there is memory");
        assert_eq!(
            String::from_utf8_lossy(&line),
            "{\"schema\":\"afar.ready/1\",\"nvme\":[\"127.0.0.1:4420\"],\"iscsi\":[],\
             \"metrics\":null,\"shards\":[7,8]}\n"
        );
        assert_eq!(Ready::read(line.as_slice()), Some(ready));
    }

    #[test]
    fn line_of_a_key_value_server_is_read_as_written() {
        let ready = KvReady::at("[::1]:6379".parse().expect("an address"));
        let mut line = Vec::new();
        ready.write(&mut line).expect("there is memory");
        let text = String::from_utf8_lossy(&line);
        assert_eq!(text, "{\"schema\":\"afar.kv.ready/1\",\"address\":\"[::1]:6379\"}\n");
        assert_eq!(KvReady::parse(&text), Some(ready));
        assert_eq!(
            KvReady::parse("{\"schema\":\"afar.kv.ready/0\",\"address\":\"[::1]:1\"}"),
            None
        );
    }

    #[test]
    fn read_without_a_line_is_nothing() {
        assert_eq!(Ready::read(io::empty()), None);
        assert_eq!(Ready::parse("{\"schema\":\"afar.ready/0\"}"), None);
    }
}
