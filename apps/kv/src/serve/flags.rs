//! Flags of `afar kv`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use measure::{Bytes, Duration};

/// Serve a key-value store for experiments
#[derive(Debug, Args)]
pub struct StoreFlags {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    Serve(Box<ServeFlags>),
}

/// Serve a RocksDB store to clients that speak RESP (Redis)
///
/// This is the server of experiments about databases on remote flash, and not one for data that
/// somebody needs: whoever reaches it reads and writes everything. It uses the RocksDB that is
/// installed (Debian: librocksdb7.8). Ctrl-C ends it: commands at work are answered, the store is
/// closed, and what was done is printed.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeFlags {
    /// Directory of the store, made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Where clients connect; port 0 is any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379", help_heading = SERVICE)]
    pub(crate) listen: String,

    /// Threads that read: GET, MGET, SCAN, INFO
    #[arg(long, value_name = "NUMBER", default_value_t = 16, help_heading = WORK)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) readers: u32,

    /// Threads that write: SET, APPEND, DEL
    #[arg(long, value_name = "NUMBER", default_value_t = 16, help_heading = WORK)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) writers: u32,

    /// Processor time that a thread uses before each command, as an application would
    #[arg(long, value_name = "TIME", default_value = "0us", help_heading = WORK)]
    pub(crate) work: Duration,

    /// Memory for blocks of tables, which RocksDB keeps beside the page cache; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "8MiB", help_heading = STORE)]
    pub(crate) block_cache: Bytes,

    /// Writes in memory before they are flushed into a table [default: RocksDB's, 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = write_buffer, help_heading = STORE)]
    pub(crate) write_buffer: Option<Bytes>,

    /// Read and write tables without the page cache (O_DIRECT); the log goes through it
    #[arg(long, help_heading = STORE)]
    pub(crate) direct: bool,

    /// Have each write on the medium before it is answered
    #[arg(long, help_heading = STORE)]
    pub(crate) sync: bool,

    /// Write what was done as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write one line of JSON to this open descriptor once clients can connect: schema and address;
    /// then close it
    #[arg(long, value_name = "NUMBER", help_heading = SERVICE)]
    #[arg(value_parser = clap::value_parser!(i32).range(3..))]
    pub(crate) ready_fd: Option<i32>,
}

/// Smallest and largest write buffer of RocksDB, in bytes.
const WRITE_BUFFER: [u64; 2] = [64 << 10, 1 << 40];

// Parses a size within `WRITE_BUFFER`.
fn write_buffer(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let [least, most] = WRITE_BUFFER;
    match (least..=most).contains(&bytes.get()) {
        true => Ok(bytes),
        false => Err("give 64KiB to 1TiB".to_owned()),
    }
}

const WORK: &str = "Work";
const STORE: &str = "Store";
const SERVICE: &str = "Service";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
Commands are GET, SET, APPEND, MGET, DEL, SCAN, PING and INFO (statistics). APPEND is a merge: it
does not read the value, so it answers OK and not a length. SET has no options, SCAN has COUNT only,
and its cursor is good for the connection that was given it last. A key has at most 64 KiB, a value
in one command 16 MiB, a command 32 MiB, an answer 64 MiB; there are at most 10,000 connections.

Values are not compressed; everything that is not said above is as RocksDB has it by itself.

Exit status: 0 it was ended by Ctrl-C or a signal; 1 the store cannot be opened, or RocksDB has not
done a command; 2 bad usage; 3 RocksDB is not installed.

Example: afar kv serve /var/tmp/store --block-cache 64MiB --direct --work 20us";
