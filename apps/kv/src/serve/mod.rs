//! `afar kv serve`: runs a key-value server until a signal ends it.

mod error;
pub(crate) mod flags;
mod summary;

use std::fs::File;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration as WallDuration;

use console::{Class, Failure, Line, Output, machine, terminal};
use launch::KvReady;
use results::served::{KvServed, Operation, Params, Results, Store};
use store::{Outcome, Server, ServerConfig, Settings};
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

use crate::serve::error::ServeError;
use crate::serve::flags::{ServeFlags, StoreCommand, StoreFlags};

const PERIOD: WallDuration = WallDuration::from_millis(500);
/// Descriptors for connections, the store's files, and everything else.
const DESCRIPTORS: u64 = 1 << 16;

/// Runs `afar kv`.
///
/// # Errors
/// When the store or the address cannot be used, a result cannot be written, or RocksDB has not
/// done a command.
pub fn kv(flags: &StoreFlags) -> Result<ExitCode, Failure> {
    match &flags.command {
        StoreCommand::Serve(flags) => serve(flags),
    }
}

// Runs `afar kv serve`.
fn serve(flags: &ServeFlags) -> Result<ExitCode, Failure> {
    // Before anything else is opened, which might get the number of a descriptor that is closed.
    let awaiting = flags.ready_fd.map(awaiting).transpose()?;
    // Signals are taken over before any thread is started, so that none is interrupted.
    let signals = console::interrupts().map_err(ServeError::from)?;
    let json = Output::wanted(flags.json.as_deref())?;
    let started_unix_ns = sys::clock::unix_ns();
    sys::process::allow_descriptors(DESCRIPTORS);
    let listener = listen(&flags.listen)?;
    let config = config(flags);
    let failed = |error| ServeError::of(error, flags.directory.clone());
    let server = Server::start(&config, listener).map_err(failed)?;
    let params = params(flags, &server);
    terminal::note(&summary::welcome(&params));
    if let Some((number, awaiting)) = awaiting {
        let ready = KvReady::at(server.address()).write(awaiting);
        ready.map_err(|source| ServeError::ReadyFd { number, source })?;
    }
    watch(&server, &signals).map_err(ServeError::from)?;
    let outcome = server.stop().map_err(failed)?;
    let record = KvServed {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns,
        host: machine::describe(),
        params,
        results: results(&outcome),
    };
    console::answer(|| summary::text(&record), vec![(json, &|| results::write(&record))])?;
    match summary::shortfall(&record.results) {
        Some(sentence) => Err(Failure::shown(Class::Failed, sentence)),
        None => Ok(ExitCode::SUCCESS),
    }
}

// The descriptor that --ready-fd names.
fn awaiting(number: i32) -> Result<(i32, File), ServeError> {
    let descriptor = sys::process::inherited(number).map(|descriptor| (number, descriptor.into()));
    descriptor.map_err(|source| ServeError::ReadyFd { number, source: source.source })
}

// Listens at an address of a host, an IPv4 one if there is one.
fn listen(text: &str) -> Result<TcpListener, ServeError> {
    let found = text.to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>);
    let found = found.unwrap_or_default();
    let first = found.iter().find(|one| one.is_ipv4()).or_else(|| found.first());
    let address = first.ok_or_else(|| ServeError::Address(text.to_owned()))?;
    TcpListener::bind(address)
        .map_err(|source| ServeError::Listen { address: address.to_string(), source })
}

fn config(flags: &ServeFlags) -> ServerConfig {
    ServerConfig {
        store: Settings {
            directory: flags.directory.clone(),
            block_cache_bytes: flags.block_cache.get(),
            write_buffer_bytes: flags.write_buffer.map(measure::Bytes::get),
            direct: flags.direct,
            sync: flags.sync,
        },
        readers: flags.readers as usize,
        writers: flags.writers as usize,
        work: flags.work,
    }
}

// The parameters for the record.
fn params(flags: &ServeFlags, server: &Server) -> Params {
    Params {
        directory: flags.directory.display().to_string(),
        library: server.library().to_owned(),
        address: server.address().to_string(),
        reader_count: u64::from(flags.readers),
        writer_count: u64::from(flags.writers),
        block_cache_bytes: flags.block_cache.get(),
        write_buffer_bytes: flags.write_buffer.map(measure::Bytes::get),
        direct: flags.direct,
        sync: flags.sync,
        work_ns: flags.work.as_ns(),
    }
}

/// Draws the live line until a signal, or until the server has ended by itself.
fn watch(server: &Server, signals: &Signals) -> sys::Result<()> {
    let mut poll = Poll::new()?;
    poll.add(signals, 0)?;
    poll.add(server.ended().descriptor(), 1)?;
    let mut line = Line::if_watched();
    let (mut ready, mut last, mut last_ns) = (Vec::new(), 0, monotonic_ns());
    loop {
        poll.wait(line.is_some().then_some(PERIOD), &mut ready)?;
        if signals.next().is_some() || ready.iter().any(|one| one.token == 1) {
            return Ok(());
        }
        if let Some(line) = &mut line {
            let (done, now) = (server.counters().done(), monotonic_ns());
            let per_s =
                u128::from(done - last) * 1_000_000_000 / u128::from((now - last_ns).max(1));
            line.draw(&format!("afar  {done} commands  {per_s}/s"));
            (last, last_ns) = (done, now);
        }
    }
}

// The results for the record.
fn results(outcome: &Outcome) -> Results {
    let operations = store::Operation::ALL.into_iter().map(|operation| {
        let of = outcome.of(operation);
        Operation {
            operation: operation.name().to_owned(),
            waited: of.waited.summary(),
            served: of.served.summary(),
            error_count: of.error_count,
        }
    });
    let came = |of: &Operation| of.served.count + of.error_count > 0;
    let store = outcome.store;
    let seconds = outcome.elapsed.as_ns_f64() / 1e9;
    Results {
        elapsed_ns: outcome.elapsed.as_ns(),
        processor_ns: sys::usage::of_this_process().processor_ns(),
        command_count: outcome.count(),
        commands_per_s: if seconds > 0.0 { outcome.count() as f64 / seconds } else { 0.0 },
        operations: operations.filter(came).collect(),
        connection_count: outcome.connection_count,
        turned_away_count: outcome.turned_away_count,
        refused_count: outcome.refused_count,
        violation_count: outcome.violation_count,
        first_violation: outcome.first_violation.clone(),
        first_error: outcome.first_error.clone(),
        store: Store {
            block_cache_hit_count: store.block_cache_hit_count,
            block_cache_miss_count: store.block_cache_miss_count,
            flush_write_bytes: store.flush_write_bytes,
            compaction_read_bytes: store.compaction_read_bytes,
            compaction_write_bytes: store.compaction_write_bytes,
            log_bytes: store.log_bytes,
            log_sync_count: store.log_sync_count,
            stall_ns: store.stall_ns,
        },
    }
}
