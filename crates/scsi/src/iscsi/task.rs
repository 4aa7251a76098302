//! The outstanding commands of a session.

use std::collections::HashMap;

use crate::Sense;

use super::pdu::ScsiCommand;

/// A place for one command, from its arrival until it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task(pub(super) u16);

/// Unsolicited data of a command that is to come in PDUs of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsolicited {
    /// Nothing more.
    None,
    /// Data up to byte `end`; `data_sn` is the DataSN of the next PDU.
    Until { end: u32, data_sn: u32 },
}

/// Solicited data of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Asked {
    /// R2Ts sent, and those whose data has come.
    pub(crate) sent: u32,
    pub(crate) done: u32,
    /// Where the data of the latest R2T ends.
    pub(crate) end: u32,
    /// Where the data of the oldest open R2T ends.
    pub(crate) oldest_end: u32,
    /// DataSN of the next PDU for the oldest open R2T.
    pub(crate) data_sn: u32,
}

/// An outstanding command.
#[derive(Debug, Clone)]
pub(crate) struct Outstanding {
    pub(crate) command: ScsiCommand,
    /// The number of its connection.
    pub(crate) connection: u16,
    /// Whether the command's own PDU is complete, with immediate data.
    pub(crate) is_whole: bool,
    /// Bytes of data that its owner expects; `None` before [`super::Session::expect`].
    pub(crate) wanted: Option<u32>,
    /// Whether R2Ts wait until the owner has memory.
    pub(crate) is_held: bool,
    /// Bytes that have come.
    pub(crate) received: u32,
    pub(crate) unsolicited: Unsolicited,
    pub(crate) asked: Asked,
    /// Bytes and PDUs sent to the initiator, and bytes in the current sequence.
    pub(crate) sent: u32,
    pub(crate) data_sn: u32,
    pub(crate) burst: u32,
    /// The sense, if its data is invalid.
    pub(crate) failure: Option<Sense>,
    /// Whether the owner knows that all data has come, or is invalid.
    pub(crate) is_told: bool,
    /// Whether the command was aborted: it gets no answer.
    pub(crate) is_aborted: bool,
}

/// Places for outstanding commands.
#[derive(Debug)]
pub(crate) struct Tasks {
    /// Places, added when needed, up to `count`.
    places: Vec<Option<Outstanding>>,
    count: u16,
    free: Vec<u16>,
    by_tag: HashMap<u32, u16>,
    /// Tags of the latest commands that have ended before all their data came.
    early: [Option<u32>; 64],
    next_early: usize,
    /// Places taken by immediate commands.
    immediate: usize,
}

impl Task {
    /// The number of the place, below the number of places.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl Outstanding {
    pub(crate) const fn new(command: ScsiCommand, connection: u16) -> Self {
        Self {
            command,
            connection,
            is_whole: false,
            wanted: None,
            is_held: false,
            received: 0,
            unsolicited: Unsolicited::None,
            asked: Asked { sent: 0, done: 0, end: 0, oldest_end: 0, data_sn: 0 },
            sent: 0,
            data_sn: 0,
            burst: 0,
            failure: None,
            is_told: false,
            is_aborted: false,
        }
    }

    /// Whether solicited or unsolicited data is still to come.
    pub(crate) fn is_coming(&self) -> bool {
        let is_unsolicited = self.unsolicited != Unsolicited::None;
        !self.is_whole || is_unsolicited || self.asked.sent != self.asked.done
    }

    /// Whether all data that its owner expects has come.
    pub(crate) fn is_complete(&self) -> bool {
        let has_all = self.wanted.is_some_and(|wanted| self.received >= wanted);
        has_all && !self.is_held && self.is_whole && self.unsolicited == Unsolicited::None
    }

    /// Bytes that may still be sent to the initiator.
    pub(crate) const fn room(&self) -> u32 {
        if self.command.reads { self.command.expected_bytes - self.sent } else { 0 }
    }
}

impl Tasks {
    /// `count` places; at most 65,535.
    pub(crate) fn new(count: u16) -> Self {
        Self {
            places: Vec::new(),
            count,
            free: Vec::new(),
            by_tag: HashMap::new(),
            early: [None; 64],
            next_early: 0,
            immediate: 0,
        }
    }

    /// Gives a command a place; its tag must not be in use. `None` if all places are taken.
    pub(crate) fn take(&mut self, outstanding: Outstanding) -> Option<Task> {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                let place = u16::try_from(self.places.len()).ok()?;
                if place >= self.count {
                    return None;
                }
                self.places.push(None);
                place
            }
        };
        let command = &outstanding.command;
        self.immediate += usize::from(command.is_immediate);
        self.by_tag.insert(command.itt, place);
        self.forget_early(command.itt);
        self.places[usize::from(place)] = Some(outstanding);
        Some(Task(place))
    }

    /// The command of a place.
    pub(crate) fn get(&self, task: Task) -> Option<&Outstanding> {
        self.places.get(usize::from(task.0))?.as_ref()
    }

    /// The command of a place, mutable.
    pub(crate) fn get_mut(&mut self, task: Task) -> Option<&mut Outstanding> {
        self.places.get_mut(usize::from(task.0))?.as_mut()
    }

    /// The command with this tag, unless it was aborted.
    pub(crate) fn find(&self, itt: u32) -> Option<Task> {
        self.by_tag.get(&itt).copied().map(Task)
    }

    /// All outstanding commands, aborted ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Task, &Outstanding)> {
        let places = self.places.iter().enumerate();
        places
            .filter_map(|(index, place)| Some((Task(u16::try_from(index).ok()?), place.as_ref()?)))
    }

    /// Marks a command as aborted: its tag may be reused, and its place is taken until it is
    /// released.
    pub(crate) fn abort(&mut self, task: Task) {
        let Some(outstanding) = self.get_mut(task) else { return };
        outstanding.is_aborted = true;
        let (itt, is_coming) = (outstanding.command.itt, outstanding.is_coming());
        if self.by_tag.get(&itt) == Some(&task.0) {
            self.by_tag.remove(&itt);
        }
        if is_coming {
            self.remember_early(itt);
        }
    }

    /// Frees a place. Returns the command.
    pub(crate) fn release(&mut self, task: Task) -> Option<Outstanding> {
        let outstanding = self.places.get_mut(usize::from(task.0))?.take()?;
        let itt = outstanding.command.itt;
        if self.by_tag.get(&itt) == Some(&task.0) {
            self.by_tag.remove(&itt);
        }
        if outstanding.is_coming() && !outstanding.is_aborted {
            self.remember_early(itt);
        }
        self.immediate -= usize::from(outstanding.command.is_immediate);
        self.free.push(task.0);
        Some(outstanding)
    }

    /// Whether a command with this tag has ended while its data was still coming.
    pub(crate) fn ended_early(&self, itt: u32) -> bool {
        self.early.contains(&Some(itt))
    }

    /// Notes that data for this tag is to be dropped.
    pub(crate) fn remember_early(&mut self, itt: u32) {
        self.early[self.next_early] = Some(itt);
        self.next_early = (self.next_early + 1) % self.early.len();
    }

    // Accepts data for this tag again.
    fn forget_early(&mut self, itt: u32) {
        for early in self.early.iter_mut().filter(|early| **early == Some(itt)) {
            *early = None;
        }
    }

    /// The number of outstanding commands.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The number of outstanding immediate commands.
    pub(crate) const fn immediate(&self) -> usize {
        self.immediate
    }
}
