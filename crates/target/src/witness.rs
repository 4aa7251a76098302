//! Events about hosts for the operator: counted by host and kind, and reported one by one.
//!
//! Shards note rare events (a login, a refusal, a violation), never commands, so one lock is
//! enough.
//!
//! Invariants:
//! - Memory is bounded: a [`Roster`] bounds the hosts that are counted separately, and
//!   [`EVENTS_MAX`] events wait to be reported. Events beyond are only counted.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nvme::Status;
use scsi::iscsi::LoginStatus;
use sys::event::Waker;

use super::roster::Roster;

/// Events that wait to be reported, at most.
const EVENTS_MAX: usize = 1024;

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    /// A controller was made, or a connection of a session logged in.
    LoggedIn,
    /// A controller, or a connection of a session, ended.
    Left,
    /// A Connect or a login was refused.
    Refused,
    /// An initiator failed CHAP authentication.
    WrongSecret,
    /// A connection broke the protocol.
    Violation,
    /// Data that the target requested did not come in time.
    LateData,
    /// The peer did not read what it was sent.
    Unread,
    /// A connection did not finish Connect or login in time.
    Silent,
    /// No keep-alive came in time.
    Expired,
    /// A connection was closed to make room for others.
    Evicted,
    /// A controller was reset by its host over another controller.
    Fenced,
    /// A connection was refused because there are as many as may be.
    Full,
    /// A device has lost written data, and guarantees nothing any more.
    Lost,
}

impl Happening {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::LoggedIn,
        Self::Left,
        Self::Refused,
        Self::WrongSecret,
        Self::Violation,
        Self::LateData,
        Self::Unread,
        Self::Silent,
        Self::Expired,
        Self::Evicted,
        Self::Fenced,
        Self::Full,
        Self::Lost,
    ];

    /// The kind's name as a label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoggedIn => "login",
            Self::Left => "logout",
            Self::Refused => "refused",
            Self::WrongSecret => "wrong-secret",
            Self::Violation => "violation",
            Self::LateData => "late-data",
            Self::Unread => "unread",
            Self::Silent => "silent",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Fenced => "fenced",
            Self::Full => "full",
            Self::Lost => "lost",
        }
    }
}

/// Why something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No further reason.
    Plain,
    /// A host broke a rule of NVMe/TCP.
    Nvme(nvme::Fatal),
    /// An initiator broke a rule of iSCSI.
    Iscsi(scsi::iscsi::Fatal),
    /// A Connect ended with this status.
    Status(Status),
    /// A login ended with this status.
    Login(LoginStatus),
    /// The event concerns the device of this namespace.
    Namespace(u32),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => Ok(()),
            Self::Nvme(fatal) => write!(f, "{fatal}"),
            Self::Iscsi(fatal) => write!(f, "{fatal}"),
            Self::Status(status) => write!(f, "{status:?}"),
            Self::Namespace(id) => write!(f, "namespace {id}"),
            Self::Login(status) => write!(f, "{status:?} (status {:#06x})", *status as u16),
        }
    }
}

/// How often each kind of event has happened, without kinds that have not.
pub type Counts = Vec<(Happening, u64)>;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The kind.
    pub what: Happening,
    /// The reason.
    pub why: Why,
    /// Where the connection came from, if that is known.
    pub peer: Option<SocketAddr>,
    /// The host's NQN or the initiator's name, printable; none before it has said one.
    pub host: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Book {
    counts: Roster<[u64; Happening::ALL.len()]>,
    events: VecDeque<Event>,
    untold: [u64; Happening::ALL.len()],
}

/// See the module's description.
#[derive(Debug, Clone)]
pub struct Witness {
    book: Arc<Mutex<Book>>,
    waker: Waker,
}

impl Witness {
    pub(crate) fn new() -> sys::Result<Self> {
        Ok(Self { book: Arc::default(), waker: Waker::new()? })
    }

    // Locks the book.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event, and queues it for the operator if there is room.
    pub(crate) fn note(&self, event: Event) {
        let mut book = self.book();
        book.counts.row(event.host.as_deref().unwrap_or(""))[event.what as usize] += 1;
        if book.events.len() < EVENTS_MAX {
            book.events.push_back(event);
        } else {
            book.untold[event.what as usize] += 1;
        }
        drop(book);
        self.waker.wake();
    }

    /// Readable when there is an event to take.
    #[must_use]
    pub const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Events since the last call, oldest first, and counts by kind of those that found no room.
    #[must_use]
    pub fn take(&self) -> (Vec<Event>, Counts) {
        let mut book = self.book();
        let events = std::mem::take(&mut book.events).into();
        let untold = std::mem::take(&mut book.untold);
        let untold = Happening::ALL.into_iter().zip(untold).filter(|(_, count)| *count > 0);
        (events, untold.collect())
    }

    /// Counts of events by host, in the order of names; "" for connections that have named no host.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, Counts)> {
        let book = self.book();
        let rows = book.counts.iter().map(|(host, counts)| {
            let counted = Happening::ALL.into_iter().zip(*counts).filter(|(_, count)| *count > 0);
            (host.to_owned(), counted.collect())
        });
        rows.collect()
    }
}

/// A name that is safe in logs and pages: without non-printable characters, quotes and backslashes.
pub(crate) fn printable(name: &str) -> Arc<str> {
    let is_plain = |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    name.chars().filter(is_plain).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::super::roster::{HOSTS_MAX, OTHERS};
    use super::*;

    fn event(host: &str, what: Happening) -> Event {
        Event { what, why: Why::Plain, peer: None, host: Some(printable(host)) }
    }

    #[test]
    fn events_are_told_once_and_counted_for_ever() {
        let witness = Witness::new().expect("there is an eventfd");
        witness.note(event("one", Happening::LoggedIn));
        witness.note(event("one", Happening::LoggedIn));
        witness.note(event("two\n\"x", Happening::Refused));
        let (events, untold) = witness.take();
        assert_eq!((events.len(), untold.len()), (3, 0));
        assert_eq!(events[2].host.as_deref(), Some("twox"));
        assert!(witness.take().0.is_empty());
        let counts = witness.counts();
        assert_eq!(counts[0], ("one".to_owned(), vec![(Happening::LoggedIn, 2)]));
        assert_eq!(counts[1], ("twox".to_owned(), vec![(Happening::Refused, 1)]));
    }

    #[test]
    fn neither_many_hosts_nor_many_events_take_memory_without_bound() {
        let witness = Witness::new().expect("there is an eventfd");
        for number in 0..3 * HOSTS_MAX {
            witness.note(event(&format!("host{number}"), Happening::Violation));
        }
        let counts = witness.counts();
        assert_eq!(counts.len(), HOSTS_MAX + 1);
        let others = counts.iter().find(|(host, _)| host == OTHERS).expect("there are more");
        assert_eq!(others.1, [(Happening::Violation, 2 * HOSTS_MAX as u64)]);
        let (events, untold) = witness.take();
        assert_eq!(events.len(), EVENTS_MAX);
        let beyond = (3 * HOSTS_MAX - EVENTS_MAX) as u64;
        assert_eq!(untold, [(Happening::Violation, beyond)]);
    }

    #[test]
    fn every_kind_has_its_place() {
        for (place, what) in Happening::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, place, "{what:?}");
        }
    }
}
