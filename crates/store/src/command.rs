//! Parses the words of a request into a command.

use crate::resp::{decimal, shown};

/// Bytes of a key at most.
pub(crate) const KEY_BYTES_MAX: usize = 64 << 10;
/// The highest COUNT of a SCAN.
const SCAN_MAX: usize = 65_536;
/// COUNT of a SCAN without one, as in Redis.
const SCAN_DEFAULT: usize = 10;

/// The kind of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads the value of a key.
    Get,
    /// Reads the values of several keys.
    MGet,
    /// Lists keys in their order.
    Scan,
    /// Sets the value of a key.
    Set,
    /// Appends to the value of a key, by a merge.
    Append,
    /// Deletes keys.
    Del,
    /// Reports statistics.
    Info,
    /// Checks that the server answers.
    Ping,
}

/// A valid command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Get(Vec<u8>),
    MGet(Vec<Vec<u8>>),
    Scan { cursor: u64, count: usize },
    Set { key: Vec<u8>, value: Vec<u8> },
    Append { key: Vec<u8>, bytes: Vec<u8> },
    Del(Vec<Vec<u8>>),
    Info,
    Ping(Option<Vec<u8>>),
}

/// Why words are no command; the connection stays open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("unknown command '{0}'; this server has APPEND, DEL, GET, INFO, MGET, PING, SCAN, SET")]
    Unknown(String),
    #[error("wrong number of arguments for '{0}' command")]
    Arity(&'static str),
    #[error("a key has at most {KEY_BYTES_MAX} bytes, not {0}")]
    Key(usize),
    #[error("SET takes a key and a value here: '{0}' is not supported")]
    SetOption(String),
    #[error("SCAN takes a cursor and COUNT here: '{0}' is not supported")]
    ScanOption(String),
    #[error("value is not an integer or out of range: '{0}'")]
    Number(String),
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::MGet,
        Self::Scan,
        Self::Set,
        Self::Append,
        Self::Del,
        Self::Info,
        Self::Ping,
    ];

    /// The operation's name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::MGet => "mget",
            Self::Scan => "scan",
            Self::Set => "set",
            Self::Append => "append",
            Self::Del => "del",
            Self::Info => "info",
            Self::Ping => "ping",
        }
    }

    /// Returns whether a writer thread executes it.
    pub(crate) const fn writes(self) -> bool {
        matches!(self, Self::Set | Self::Append | Self::Del)
    }

    // The operation's position in arrays of counters.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl Command {
    /// Parses `words`: a name and its arguments.
    ///
    /// # Errors
    /// When the words are no command.
    pub(crate) fn of(words: Vec<Vec<u8>>) -> Result<Self, Refusal> {
        let mut words = words.into_iter();
        let name = words.next().unwrap_or_default();
        let named = |operation: &Operation| name.eq_ignore_ascii_case(operation.name().as_bytes());
        let operation = Operation::ALL.into_iter().find(named);
        let operation = operation.ok_or_else(|| Refusal::Unknown(shown(&name)))?;
        let arity = || Refusal::Arity(operation.name());
        let count = words.len();
        let mut next = || words.next().ok_or_else(arity);
        match operation {
            Operation::Get if count == 1 => Ok(Self::Get(key(next()?)?)),
            Operation::Set if count > 2 => Err(Refusal::SetOption(shown(&words.as_slice()[2]))),
            Operation::Set => Ok(Self::Set { key: key(next()?)?, value: next()? }),
            Operation::Append if count == 2 => {
                Ok(Self::Append { key: key(next()?)?, bytes: next()? })
            }
            Operation::Scan if count > 0 => scan(words.as_slice()),
            Operation::MGet if count > 0 => {
                Ok(Self::MGet(words.map(key).collect::<Result<_, _>>()?))
            }
            Operation::Del if count > 0 => Ok(Self::Del(words.map(key).collect::<Result<_, _>>()?)),
            // Arguments (sections) are ignored.
            Operation::Info => Ok(Self::Info),
            Operation::Ping if count < 2 => Ok(Self::Ping(words.next())),
            _ => Err(arity()),
        }
    }

    // The command's kind.
    pub(crate) const fn operation(&self) -> Operation {
        match self {
            Self::Get(_) => Operation::Get,
            Self::MGet(_) => Operation::MGet,
            Self::Scan { .. } => Operation::Scan,
            Self::Set { .. } => Operation::Set,
            Self::Append { .. } => Operation::Append,
            Self::Del(_) => Operation::Del,
            Self::Info => Operation::Info,
            Self::Ping(_) => Operation::Ping,
        }
    }
}

// Checks the length of a key.
fn key(word: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    if word.len() > KEY_BYTES_MAX { Err(Refusal::Key(word.len())) } else { Ok(word) }
}

// Parses the arguments of SCAN: a cursor, and perhaps COUNT.
fn scan(words: &[Vec<u8>]) -> Result<Command, Refusal> {
    let number = |word: &[u8]| decimal(word).ok_or_else(|| Refusal::Number(shown(word)));
    let cursor = number(&words[0])?;
    let count = match &words[1..] {
        [] => SCAN_DEFAULT,
        [name, count] if name.eq_ignore_ascii_case(b"count") => {
            let found = usize::try_from(number(count)?).unwrap_or(usize::MAX);
            let is_good = (1..=SCAN_MAX).contains(&found);
            if is_good { found } else { return Err(Refusal::Number(shown(count))) }
        }
        [name, ..] if name.eq_ignore_ascii_case(b"count") => return Err(Refusal::Arity("scan")),
        [name, ..] => return Err(Refusal::ScanOption(shown(name))),
    };
    Ok(Command::Scan { cursor, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Command, String> {
        let words = text.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        Command::of(words).map_err(|refusal| refusal.to_string())
    }

    fn told(text: &str) -> String {
        of(text).expect_err(text)
    }

    #[test]
    fn commands() {
        let (a, b) = (|| b"a".to_vec(), || b"b".to_vec());
        assert_eq!(of("GET a"), Ok(Command::Get(a())));
        assert_eq!(of("get a"), Ok(Command::Get(a())));
        assert_eq!(of("SET a b"), Ok(Command::Set { key: a(), value: b() }));
        assert_eq!(of("APPEND a b"), Ok(Command::Append { key: a(), bytes: b() }));
        assert_eq!(of("MGET a b"), Ok(Command::MGet(vec![a(), b()])));
        assert_eq!(of("DEL a b"), Ok(Command::Del(vec![a(), b()])));
        assert_eq!(of("SCAN 0"), Ok(Command::Scan { cursor: 0, count: 10 }));
        assert_eq!(of("scan 7 count 65536"), Ok(Command::Scan { cursor: 7, count: 65_536 }));
        assert_eq!(of("PING"), Ok(Command::Ping(None)));
        assert_eq!(of("PING a"), Ok(Command::Ping(Some(a()))));
        assert_eq!(of("INFO all"), Ok(Command::Info));
        for operation in Operation::ALL {
            assert_eq!(Operation::ALL[operation.index()], operation);
        }
    }

    #[test]
    fn what_is_no_command_is_told_with_its_reason() {
        assert_eq!(
            told("FLUSH\r\nALL"),
            "unknown command 'FLUSH\\r\\nALL'; this server has APPEND, DEL, GET, INFO, MGET, \
             PING, SCAN, SET"
        );
        for (text, name) in [
            ("GET", "get"),
            ("GET a b", "get"),
            ("SET a", "set"),
            ("APPEND a", "append"),
            ("APPEND a b c", "append"),
            ("MGET", "mget"),
            ("DEL", "del"),
            ("SCAN", "scan"),
            ("SCAN 0 COUNT", "scan"),
            ("SCAN 0 COUNT 1 2", "scan"),
            ("PING a b", "ping"),
        ] {
            assert_eq!(told(text), format!("wrong number of arguments for '{name}' command"));
        }
        assert_eq!(told("SET a b NX"), "SET takes a key and a value here: 'NX' is not supported");
        assert_eq!(
            told("SCAN 0 MATCH x"),
            "SCAN takes a cursor and COUNT here: 'MATCH' is not supported"
        );
        for (text, wrong) in [
            ("SCAN x", "x"),
            ("SCAN -1", "-1"),
            ("SCAN 0 COUNT 0", "0"),
            ("SCAN 0 COUNT 65537", "65537"),
            ("SCAN 0 COUNT a", "a"),
        ] {
            assert_eq!(told(text), format!("value is not an integer or out of range: '{wrong}'"));
        }
        let long = "k".repeat(KEY_BYTES_MAX + 1);
        for command in ["GET", "MGET", "DEL"] {
            let refusal = told(&format!("{command} {long}"));
            assert_eq!(refusal, "a key has at most 65536 bytes, not 65537");
        }
        assert!(of(&format!("GET {}", &long[1..])).is_ok());
    }
}
