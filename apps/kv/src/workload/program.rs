//! Workloads that are other programs. They replace this process (execve), so that `afar run` and
//! `afar sweep` manage the program itself.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::workload::WorkloadError;
use crate::workload::flags::{Query, ServerFlags, ServerKind, SqlFlags};

const BENCHMARK: &str = include_str!("sql.py");
const PYTHON_REMEDY: &str = "install python3 and its module duckdb, or give another --python";
const REDIS_REMEDY: &str = "install it: apt-get install redis-server";
const MEMCACHED_REMEDY: &str = "install it: apt-get install memcached";

/// Replaces this process with Python, which runs the query (execve); returns only if that failed.
pub(crate) fn sql(flags: &SqlFlags) -> WorkloadError {
    let query = match flags.query {
        Query::Aggregation => "2a",
        Query::Join => "3a",
    };
    let mut command = Command::new(&flags.python);
    command.args(["-c", BENCHMARK, query]);
    command
        .args([flags.size.get(), flags.seed, u64::from(flags.repetitions)].map(|n| n.to_string()));
    command.arg(&flags.python);
    become_it(command, &flags.python, PYTHON_REMEDY)
}

/// Replaces this process with the server (execve); returns only if that failed.
pub(crate) fn server(flags: &ServerFlags) -> WorkloadError {
    let (command, name, remedy) = match flags.server {
        ServerKind::Redis => (redis(flags), "redis-server", REDIS_REMEDY),
        ServerKind::Memcached => (memcached(flags), "memcached", MEMCACHED_REMEDY),
    };
    become_it(command, Path::new(name), remedy)
}

// The command of redis-server: nothing on disk, no eviction.
fn redis(flags: &ServerFlags) -> Command {
    let port = flags.port.unwrap_or(6379).to_string();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port, "--bind", "127.0.0.1", "--protected-mode", "yes"]);
    command.args(["--save", "", "--appendonly", "no"]);
    command.args(["--maxmemory", &roomy(flags).to_string(), "--maxmemory-policy", "noeviction"]);
    command
}

// The command of memcached: one worker thread, no eviction.
fn memcached(flags: &ServerFlags) -> Command {
    let port = flags.port.unwrap_or(11211).to_string();
    // With less than 64 MiB, too much of it would be slab pages of other sizes of values.
    let mebibytes = (roomy(flags) >> 20).max(64).to_string();
    let mut command = Command::new("memcached");
    command.args(["-p", &port, "-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", &mebibytes, "-M"]);
    if rustix::process::geteuid().is_root() {
        // It refuses to run as root unless told to.
        command.args(["-u", "root"]);
    }
    command
}

/// The server's memory limit in bytes: `--size`, and a quarter more for its own structures.
fn roomy(flags: &ServerFlags) -> u64 {
    flags.size.get() / 4 * 5
}

// Replaces this process with `command`; returns only if that failed.
fn become_it(mut command: Command, name: &Path, remedy: &'static str) -> WorkloadError {
    let source = command.exec();
    let name = name.display().to_string();
    if source.kind() == ErrorKind::NotFound {
        return WorkloadError::Missing { name, remedy };
    }
    WorkloadError::NotStarted { name, source }
}
