//! Executes commands on a store and encodes their answers.

use sys::rocks::{Store, StoreError};

use crate::command::{Command, Operation};
use crate::counters::Counters;
use crate::resp;
use crate::statistics::StoreCounters;

/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The key where a scan begins, and the cursor under which it can continue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scan {
    pub(crate) from: Vec<u8>,
    pub(crate) next_cursor: u64,
}

/// An answer, and the key where a scan continues.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) bytes: Vec<u8>,
    pub(crate) scan_next: Option<Vec<u8>>,
    /// Why the command failed; the answer contains it, too.
    pub(crate) error: Option<String>,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("an answer has at most {ANSWER_BYTES_MAX} bytes; ask for fewer keys")]
    Length,
}

/// Executes `command` on `store`. A failure becomes an error answer.
pub(crate) fn execute(store: &Store, counters: &Counters, command: &Command, scan: &Scan) -> Done {
    let mut done = Done::default();
    let result = match command {
        Command::Scan { count, .. } => scanned(store, scan, *count, &mut done),
        _ => attempt(store, counters, command, &mut done.bytes),
    };
    if let Err(failure) = result {
        let error = failure.to_string();
        done.bytes.clear();
        resp::error(&mut done.bytes, &error);
        done.error = Some(error);
    }
    done
}

// Executes any command but SCAN and appends its answer to `out`.
fn attempt(
    store: &Store,
    counters: &Counters,
    command: &Command,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match command {
        Command::Get(key) => value(store, key, out)?,
        Command::MGet(keys) => {
            resp::array(out, keys.len());
            for key in keys {
                value(store, key, out)?;
            }
        }
        Command::Set { key, value } => {
            store.put(key, value)?;
            resp::simple(out, "OK");
        }
        Command::Append { key, bytes } => {
            store.append(key, bytes)?;
            // Not the length, as in Redis: a merge does not know it.
            resp::simple(out, "OK");
        }
        Command::Del(keys) => {
            let mut count = 0;
            for key in keys {
                if store.get(key)?.is_some() {
                    store.delete(key)?;
                    count += 1;
                }
            }
            resp::integer(out, count);
        }
        Command::Info => resp::bulk(out, Some(info(store, counters).as_bytes())),
        Command::Ping(None) => resp::simple(out, "PONG"),
        Command::Ping(Some(text)) => resp::bulk(out, Some(text)),
        Command::Scan { .. } => {}
    }
    Ok(())
}

// Appends the value of `key`, or nil, to an answer.
fn value(store: &Store, key: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
    let value = store.get(key)?;
    let length = value.as_ref().map_or(0, |value| value.len());
    if out.len().saturating_add(length) > ANSWER_BYTES_MAX {
        return Err(Failure::Length);
    }
    resp::bulk(out, value.as_deref());
    Ok(())
}

// Executes a SCAN of up to `count` keys.
fn scanned(store: &Store, scan: &Scan, count: usize, done: &mut Done) -> Result<(), Failure> {
    let (keys, next) = store.keys(&scan.from, count)?;
    if keys.iter().map(Vec::len).sum::<usize>() > ANSWER_BYTES_MAX {
        return Err(Failure::Length);
    }
    let cursor = next.as_ref().map_or(0, |_| scan.next_cursor);
    resp::array(&mut done.bytes, 2);
    resp::bulk(&mut done.bytes, Some(cursor.to_string().as_bytes()));
    resp::array(&mut done.bytes, keys.len());
    keys.iter().for_each(|key| resp::bulk(&mut done.bytes, Some(key)));
    done.scan_next = next;
    Ok(())
}

// The answer to INFO, in the form of Redis, whose clients look for `name:value`.
fn info(store: &Store, counters: &Counters) -> String {
    let mut text = format!(
        "# Server\r\nserver:afar kv serve {}\r\n\r\n# Stats\r\n\
         total_connections_received:{}\r\ntotal_commands_processed:{}\r\n\r\n# Commandstats\r\n",
        env!("CARGO_PKG_VERSION"),
        counters.connections(),
        counters.done()
    );
    for operation in Operation::ALL {
        let (calls, failed) = counters.of(operation);
        if calls + failed > 0 {
            let name = operation.name();
            text += &format!("cmdstat_{name}:calls={calls},failed_calls={failed}\r\n");
        }
    }
    text += "\r\n# RocksDB\r\n";
    for (name, value) in StoreCounters::of(&store.statistics()).named() {
        text += &format!("{name}:{value}\r\n");
    }
    let keys = store.property(c"rocksdb.estimate-num-keys").unwrap_or(0);
    let bytes = store.property(c"rocksdb.total-sst-files-size").unwrap_or(0);
    text + &format!("keys_estimated:{keys}\r\ntable_bytes:{bytes}\r\n")
}
