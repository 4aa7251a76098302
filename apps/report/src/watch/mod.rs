//! `afar watch`: what is running, as a live page for a browser on this machine.
//!
//! ```text
//! directory, runs, target ─► Watched ─► Shown (sections) ─► event ─► server: SSE ─► page
//!      a thread that looks, while somebody watches ──────────┘        a thread that answers
//! ```
//!
//! Invariants:
//! - The page is for whoever knows its token, on this machine: the server listens on 127.0.0.1,
//!   answers to no other name, and the page may send requests to no other host.
//! - Nothing is looked at while nobody watches, and looks take a hundredth of a processor at most.
//! - What is kept has a bound: a history of [`history::MOMENTS_MAX`] moments, one event, and
//!   [`server::WATCHERS_MAX`] streams of it.
//! - What is watched may end, vanish and begin anew: the page says so, and goes on.

mod directory;
mod error;
pub(super) mod flags;
mod history;
mod pace;
mod page;
mod picture;
mod run;
mod server;
mod shown;
mod sources;
mod target;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use console::{Failure, Output};
use results::live::Watching;
use sys::event::{Poll, Signals};

use super::flags::bound;
use flags::WatchFlags;
use pace::Watchers;
use shown::Watched;

pub(crate) use error::WatchError;
pub use sources::{Sources, TargetLooks};

/// Runs `afar watch`.
///
/// # Errors
/// When there is nothing to watch, or no page can be offered.
pub fn watch(flags: &WatchFlags, sources: Sources) -> Result<ExitCode, Failure> {
    let bound = bound(&flags.bound)?;
    let json = Output::wanted(flags.json.as_deref())?;
    let signals = console::interrupts_and_hangups().map_err(WatchError::from)?;
    let watched = watched(flags.what.as_deref(), bound, sources)?;
    let port = flags.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|source| WatchError::Port { port, source })?;
    let name = watched.name();
    let watchers = Arc::new(Watchers::default());
    let (url, events) =
        server::start(listener, &name, Arc::clone(&watchers)).map_err(WatchError::Serve)?;
    std::thread::Builder::new()
        .name("afar-look".to_owned())
        .spawn(move || look(watched, &watchers, &events))
        .map_err(WatchError::Serve)?;
    let text = format!("{url}\n");
    let record = Watching { version: env!("CARGO_PKG_VERSION").to_owned(), watched: name, url };
    console::answer(|| text, vec![(json, &|| results::write(&record))])?;
    wait(&signals)?;
    Ok(ExitCode::SUCCESS)
}

// The directory, run or target that `what` names; all runs if it is `None`.
fn watched(
    what: Option<&str>,
    bound: f64,
    sources: Sources,
) -> Result<Box<dyn Watched>, WatchError> {
    let Some(what) = what else { return Ok(Box::new(run::Runs::new(sources.runs))) };
    let path = Path::new(what);
    if let Ok(pid) = what.parse() {
        return Ok(Box::new(run::Run::new(pid, sources).map_err(WatchError::Run)?));
    }
    if path.exists() || what.contains('/') {
        let directory = directory::Directory::new(path, bound, sources);
        let wrong = |why| WatchError::Directory { path: path.to_owned(), why };
        return Ok(Box::new(directory.map_err(wrong)?));
    }
    if what.contains(':') {
        let target = target::Target::new(what, sources.target);
        return Ok(Box::new(target.map_err(WatchError::Target)?));
    }
    Err(WatchError::Nothing(what.to_owned()))
}

// Looks while somebody watches, and sends what has changed, until the process ends.
fn look(mut watched: Box<dyn Watched>, watchers: &Watchers, events: &server::Events) {
    sys::priority::be_nice();
    let mut event = page::Event::default();
    loop {
        watchers.wait();
        let begun = sys::clock::thread_ns();
        if event.update(watched.look()) {
            events.send(&event);
        }
        let cost = Duration::from_nanos(sys::clock::thread_ns() - begun);
        std::thread::sleep(pace::pause(cost));
    }
}

/// Waits for Ctrl-C or a hangup.
fn wait(signals: &Signals) -> Result<(), WatchError> {
    let mut poll = Poll::new()?;
    poll.add(signals, 0)?;
    let mut ready = Vec::new();
    while signals.next().is_none() {
        poll.wait(None, &mut ready)?;
    }
    Ok(())
}
