//! `afar serve`: runs a target by flags or a configuration file, until a signal ends it.
//!
//! ```text
//! flags, file ─► plan ─► disks, sockets ─► rights ─► Target ─► (SIGHUP: the plan again) ─► look
//!                                                      └─► metrics ─► http
//! ```

mod address;
mod disks;
mod error;
mod families;
mod file;
pub(crate) mod flags;
mod http;
mod leases;
mod limits;
mod log;
mod look;
mod machine;
mod metrics;
mod plan;
mod rights;
mod sandbox;
mod service;
mod sockets;

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use backend::Geometry;
use console::{Failure, Line, terminal};
use launch::Ready;
use measure::Bytes;
use sys::clock::monotonic_ns;
use sys::event::{Poll, SIGHUP, Signals};
use target::{Limits, Subsystem, Target, TargetConfig};

use crate::serve::flags::ServeFlags;

pub(crate) use address::{PortError, socket_address, with_port};
use disks::{Disks, title};
pub(crate) use log::Level;
use log::Log;
pub use look::TRACE;
use look::{Look, summary, trace};
use plan::{Fixed, Plan, SubsystemPlan};
use rights::Rights;
pub(crate) use sandbox::Sandbox;
use sockets::Sockets;

pub(crate) use error::ServeError;

/// A running target, with its disks, log and rights.
struct Service<'a> {
    flags: &'a ServeFlags,
    file: Option<PathBuf>,
    target: Target,
    disks: Disks,
    log: Log,
    rights: Rights,
}

/// Blocks of memory for requests of this size or more are returned to the system when freed.
const LARGE_BYTES: u32 = 512 << 10;
const PERIOD: Duration = Duration::from_millis(500);
/// Least time between two readings of events.
const PAUSE_NS: u64 = 100_000_000;

/// Runs `afar serve`.
///
/// # Errors
/// When a file, a disk or an address cannot be used.
pub fn serve(flags: &ServeFlags) -> Result<ExitCode, Failure> {
    sys::block::give_back_from(LARGE_BYTES);
    // Before anything else is opened, which might get the number of a descriptor that is closed.
    let awaiting = flags.ready_fd.map(awaiting).transpose()?;
    // Signals are taken over before any thread is started, so that none is interrupted.
    let signals = console::interrupts_and_hangups().map_err(ServeError::from)?;
    let file = plan::file_of(flags)?;
    let plan = read(flags, file.as_deref())?;
    let mut rights = Rights::of(&plan)?;
    // The style of the log is found in /proc, which may soon be closed.
    let log = Log::new(if console::is_quiet() { Level::Error } else { flags.log });
    let (config, sockets, subsystems, forgotten) = open(&plan, flags)?;
    let reduced = rights.reduce(&plan, file.as_deref())?;
    let target = start(&config, subsystems, sockets.listening)?;
    for (index, state) in plan.ana.iter().enumerate() {
        target.reach(index, *state);
    }
    for (index, state) in plan.iscsi_ana.iter().enumerate() {
        target.reach_iscsi(index, *state);
    }
    let metrics = sockets.metrics.map(|(socket, address)| expose(&target, socket, address));
    let metrics = metrics.transpose()?;
    let sealed = rights.seal()?;
    let disks = Disks::new(plan, &target);
    if !console::is_quiet() {
        let text = welcome(&target, disks.plan(), metrics);
        terminal::answer(&text)?;
        let hint = hint(&rights, &target);
        let lines = [forgotten, reduced, sealed, hint].concat();
        lines.iter().for_each(|line| terminal::say(&format!("afar: {line}\n")));
    }
    if let Some((number, awaiting)) = awaiting {
        let ready = ready(&target, metrics).write(awaiting);
        ready.map_err(|source| ServeError::ReadyFd { number, source })?;
    }
    service::is_ready();
    let mut line = Line::if_watched();
    let mut service = Service { flags, file, target, disks, log, rights };
    service.watch(&signals, &mut line)?;
    drop(line);
    service::is_stopping();
    let counters = service.target.counters().to_vec();
    service.target.stop().map_err(ServeError::from)?;
    if flags.trace {
        terminal::answer(&trace(&counters))?;
    }
    terminal::note(&summary(&counters));
    Ok(ExitCode::SUCCESS)
}

type Opened = (TargetConfig, Sockets, Vec<Subsystem>, Vec<String>);

// Opens sockets and disks, which may need more rights than serving does. Returns lines to print,
// too.
fn open(plan: &Plan, flags: &ServeFlags) -> Result<Opened, ServeError> {
    let Fixed { discovery_chap, shards, busy_poll, zero_copy, limits, .. } = &plan.fixed;
    // A descriptor for each connection, and one for each that is on its way to its shard.
    sys::process::allow_descriptors(u64::from(limits.connections) * 2 + 1024);
    let inherited = service::listening()?;
    let filled = plan.namespaces().filter_map(|one| one.uri.fills());
    for text in filled.filter_map(crate::holes::filling) {
        terminal::note(&format!("afar: {text}\n"));
    }
    // Sockets first, so that no file is created for a target that cannot listen.
    let sockets = Sockets::open(&plan.fixed, inherited)?;
    let (subsystems, forgotten) = disks::open(plan, flags.new_identity)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let config = TargetConfig {
        nvme: sockets.nvme.clone(),
        iscsi: sockets.iscsi.clone(),
        discovery_chap: discovery_chap.clone(),
        shards: shards.unwrap_or_else(|| u16::try_from(processors.min(64)).unwrap_or(1)),
        busy_poll: *busy_poll,
        zero_copy: *zero_copy,
        traces: flags.trace,
        limits: Limits { controller_ids: plan.fixed.controllers, ..*limits },
    };
    Ok((config, sockets, subsystems, forgotten))
}

// Starts the target on sockets that listen already.
fn start(
    config: &TargetConfig,
    subsystems: Vec<Subsystem>,
    listening: Vec<TcpListener>,
) -> Result<Target, ServeError> {
    let addresses = config.nvme.iter().chain(&config.iscsi).map(ToString::to_string);
    let addresses = addresses.collect::<Vec<_>>().join(", ");
    Target::start_on(config, subsystems, listening)
        .map_err(|source| ServeError::Listen { addresses, source })
}

// Serves the metrics of a target.
fn expose(
    target: &Target,
    socket: TcpListener,
    address: SocketAddr,
) -> Result<SocketAddr, ServeError> {
    let observer = target.observer().clone();
    let began_ns = monotonic_ns();
    http::start(socket, metrics::teller(observer, began_ns))
        .map(|()| address)
        .map_err(|source| ServeError::Metrics { address, source })
}

// The descriptor that --ready-fd names.
fn awaiting(number: i32) -> Result<(i32, File), ServeError> {
    let descriptor = sys::process::inherited(number).map(|descriptor| (number, descriptor.into()));
    descriptor.map_err(|source| ServeError::ReadyFd { number, source: source.source })
}

// The record for --ready-fd, once hosts can connect.
fn ready(target: &Target, metrics: Option<SocketAddr>) -> Ready {
    Ready {
        schema: Ready::SCHEMA.to_owned(),
        nvme: target.addresses().to_vec(),
        iscsi: target.iscsi_addresses().to_vec(),
        metrics,
        shards: target.shards().to_vec(),
    }
}

// Warns of a target that serves other machines with the rights of root.
fn hint(rights: &Rights, target: &Target) -> Vec<String> {
    let is_root = sys::process::effective_user() == 0 && rights.user().is_none();
    let mut addresses = target.addresses().iter().chain(target.iscsi_addresses());
    let is_reached = addresses.any(|address| !address.ip().is_loopback());
    let hint = "it serves other machines as root; --user NAME has it give that up";
    if is_root && is_reached { vec![hint.to_owned()] } else { Vec::new() }
}

// What is printed once hosts can connect.
fn welcome(target: &Target, plan: &Plan, metrics: Option<SocketAddr>) -> String {
    let mut text = String::new();
    for (plan, subsystem) in plan.subsystems.iter().zip(&*target.subsystems()) {
        for namespace in &*subsystem.namespaces() {
            let Geometry { block_count, block_shift, .. } = namespace.backend.geometry();
            let bytes = Bytes::new(block_count << block_shift);
            let uri = plan.namespaces.iter().find(|one| one.id == namespace.id);
            let uri_file = uri.and_then(|one| one.uri.file());
            let uri = uri.map_or("", |one| &one.text);
            let (title, block) = (title(&plan.nqn, namespace.id), 1_u32 << block_shift);
            let sparse = uri_file.and_then(crate::holes::told).unwrap_or_default();
            text += &format!("afar: {title} is {uri}: {bytes} in blocks of {block}{sparse}\n");
        }
    }
    if let Some(address) = metrics {
        text += &format!("afar: metrics at http://{address}/metrics, for afar top {address} too\n");
    }
    let is_reached =
        |one: &&SubsystemPlan| one.allow.as_ref().is_none_or(|hosts| !hosts.is_empty());
    let nqn = plan.subsystems.iter().find(is_reached);
    let nqn = nqn.map_or("", |subsystem| subsystem.nqn.as_str());
    let host = |address: &SocketAddr| match address.ip() {
        ip if ip.is_unspecified() => "THIS-MACHINE".to_owned(),
        ip => ip.to_string(),
    };
    for address in target.addresses() {
        let (ip, port) = (host(address), address.port());
        text += &format!("afar: serving at {address} until Ctrl-C; a Linux host mounts it with\n");
        text += &format!("      nvme connect -t tcp -a {ip} -s {port} -n {nqn}\n");
    }
    let iqn = plan.subsystems.first().map_or("", |subsystem| &subsystem.iscsi.name);
    for address in target.iscsi_addresses() {
        let portal = format!("{}:{}", host(address), address.port());
        text += &format!("afar: serving iSCSI at {address} until Ctrl-C; Linux mounts it with\n");
        text += &format!("      iscsiadm -m discovery -t sendtargets -p {portal}\n");
        text += &format!("      iscsiadm -m node -T {iqn} -p {portal} --login\n");
    }
    text
}

impl Service<'_> {
    // Logs events and draws the live line until a signal, or the end of the target. SIGHUP reads
    // the plan again.
    fn watch(&mut self, signals: &Signals, line: &mut Option<Line>) -> Result<(), ServeError> {
        // The second also wakes for events; the first is used right after some, to batch the next.
        let mut polls = [Poll::new()?, Poll::new()?];
        for poll in &polls {
            poll.add(signals, 0)?;
            poll.add(self.target.ended().descriptor(), 1)?;
        }
        polls[1].add(self.target.observer().witness().waker().descriptor(), 2)?;
        let mut ready = Vec::new();
        let mut last = Look::at(self.target.counters());
        let mut told_ns = 0;
        loop {
            let is_soon = monotonic_ns() < told_ns + PAUSE_NS;
            let timeout = match (is_soon, line.is_some() || self.log.next_ns().is_some()) {
                (true, _) => Some(Duration::from_nanos(PAUSE_NS)),
                (false, true) => Some(PERIOD),
                (false, false) => None,
            };
            polls[usize::from(!is_soon)].wait(timeout, &mut ready)?;
            if self.tell(ready.iter().any(|one| one.token == 2)) {
                told_ns = monotonic_ns();
            }
            // A shard that has failed says why when the target is stopped.
            if ready.iter().any(|one| one.token == 1) {
                return Ok(());
            }
            while let Some(signal) = signals.next() {
                if signal != SIGHUP {
                    return Ok(());
                }
                self.look_again();
            }
            if let Some(line) = line {
                let look = Look::at(self.target.counters());
                line.draw(&look.since(&last));
                last = look;
            }
        }
    }

    // Logs events, or the ends of periods. Returns `has_events`.
    fn tell(&mut self, has_events: bool) -> bool {
        let witness = self.target.observer().witness();
        let text = if has_events {
            witness.waker().acknowledge();
            let (events, untold) = witness.take();
            self.log.lines(&events, &untold, monotonic_ns())
        } else {
            self.log.end_periods(monotonic_ns())
        };
        if !text.is_empty() {
            terminal::say(&text);
        }
        has_events
    }

    // After SIGHUP: reads the plan and the sizes of files again, and follows both.
    fn look_again(&mut self) {
        let plan = read(self.flags, self.file.as_deref());
        let files: Vec<PathBuf> = plan.iter().flat_map(Plan::files).map(Path::to_owned).collect();
        let followed = plan.and_then(|plan| self.disks.follow(plan, &self.target));
        match followed {
            Err(error) => {
                let remedy = self.rights.remedy(&error, &files);
                terminal::say(&format!(
                    "afar serve: {error}{remedy}; everything stays as it was\n"
                ));
            }
            Ok(lines) if lines.is_empty() => terminal::note("afar: nothing has changed\n"),
            Ok(lines) => lines.iter().for_each(|line| terminal::note(&format!("afar: {line}\n"))),
        }
    }
}

/// The plan, from the configuration file, or from flags if there is none.
fn read(flags: &ServeFlags, file: Option<&Path>) -> Result<Plan, ServeError> {
    match file {
        Some(path) => Ok(file::read(path)?),
        None => Plan::of_flags(flags),
    }
}
