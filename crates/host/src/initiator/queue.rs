//! A session on a ring: commands under way over its connections.
//!
//! ```text
//! request ─► (waits for the window) ─► command on the idlest connection ─► fate ─┬─► Ended
//!               ▲                                                                │
//!               └───── asked again, or the next command of the request ◄─────────┘
//! ```
//!
//! Invariants:
//! - A command's data and answers are on the connection it was sent on (RFC 7143 4.2.5.1).
//! - A lost connection ends the session: error recovery level 0 (RFC 7143 7.1.4.4). The next login
//!   bears the same ISID, so the target ends all tasks of the lost session.
//! - A connection that is silent for too long is pinged, and lost without an answer.

use std::collections::VecDeque;

use scsi::iscsi::{
    Answer, AsyncMessage, Ended as Over, Initiator, Request as Wanted, Tag, Transfer,
};
use sys::block::Block;
use sys::ring::{Completed, Ring};

use crate::{HostError, Moved, Pending, Pipe, Queue};
use backend::Ended;
use backend::{Failure, Operation, Request};

use super::command::{Asked, Load, Next, Progress, Shape};
use super::config::InitiatorConfig;
use super::fate::{Fate, IMPOSSIBLE, NOT_READY};
use super::session::Session;
use super::wire::network;

/// A connection of the session.
struct Link {
    pipe: Pipe,
    /// Commands under way on the connection.
    tasks: usize,
    /// When the target was last heard, and whether it was pinged since.
    heard_ns: u64,
    is_pinged: bool,
}

/// A request that has not ended.
struct Task<T> {
    pending: Pending<T>,
    progress: Progress,
    /// The command under way, and the number of its connection.
    asked: Asked,
    link: u16,
    tries: u8,
    /// When the request was submitted, by the queue's last known time.
    began_ns: u64,
}

/// See the module's description.
pub(crate) struct SessionQueue<T> {
    initiator: Initiator,
    links: Vec<Link>,
    shape: Shape,
    /// Commands under way, by the lower half of their tags.
    tasks: Vec<Option<Task<T>>>,
    /// Commands that wait for the target's command window.
    waiting: VecDeque<Task<T>>,
    ping_after_ns: u64,
    ping_timeout_ns: u64,
    command_timeout_ns: u64,
    /// The last known time, and when command time-outs are checked next.
    now_ns: u64,
    look_ns: u64,
    is_lost: bool,
}

/// How often a command is repeated after unit attentions or a full task set.
const TRIES: u8 = 10;

/// The place of a command in `SessionQueue::tasks`.
const fn place(tag: Tag) -> usize {
    (tag.0 & 0xffff) as usize
}

impl<T: Send> SessionQueue<T> {
    /// Takes over a session in which nothing is under way.
    pub(super) fn new(
        session: Session,
        shape: Shape,
        config: &InitiatorConfig,
        token: u64,
    ) -> Result<Self, HostError> {
        let now_ns = session.stream().now_ns();
        let mut queue = Self {
            initiator: session.initiator,
            links: Vec::new(),
            shape,
            tasks: Vec::new(),
            waiting: VecDeque::new(),
            ping_after_ns: config.ping_after.as_ns(),
            ping_timeout_ns: config.ping_timeout.as_ns(),
            command_timeout_ns: config.command_timeout.as_ns(),
            now_ns,
            look_ns: now_ns + config.command_timeout.as_ns() / 4,
            is_lost: false,
        };
        let mut unread = Vec::new();
        for (token, wire) in (token..).step_by(2).zip(session.wires) {
            let failed = network("set up a connection");
            wire.stream.wait_to_read(None).map_err(&failed)?;
            wire.stream.wait_to_write(None).map_err(&failed)?;
            unread.push(wire.unread().to_vec());
            let pipe = Pipe::new(wire.stream, token);
            queue.links.push(Link { pipe, tasks: 0, heard_ns: now_ns, is_pinged: false });
        }
        for (number, bytes) in (0..).zip(unread) {
            queue.read(number, &bytes, &mut Vec::new());
        }
        Ok(queue)
    }

    // Sends the next command of a request, or queues it. Returns the request's end if none follows.
    fn go_on(&mut self, mut task: Task<T>) -> Option<Ended<T>> {
        match self.shape.next(&task.pending.request, task.progress) {
            Next::Nothing => Some(task.pending.end(Ok(()))),
            Next::Impossible => Some(task.pending.end(Err(IMPOSSIBLE))),
            Next::Ask(asked) => {
                task.asked = asked;
                if self.waiting.is_empty() && self.initiator.can_submit() {
                    self.send(task);
                } else {
                    self.waiting.push_back(task);
                }
                None
            }
        }
    }

    // Sends a command on the connection with the fewest.
    fn send(&mut self, mut task: Task<T>) {
        let least = (0..).zip(&self.links).min_by_key(|(_, link)| link.tasks);
        let number: u16 = least.map_or(0, |(number, _)| number);
        let transfer = match &task.asked.load {
            Load::None => Transfer::None,
            Load::Comes(bytes) => Transfer::Receive(*bytes),
            Load::These(bytes) => Transfer::Send(bytes),
            Load::Own => {
                let length = u32::try_from(task.pending.request.length).unwrap_or(u32::MAX);
                Transfer::Send(task.pending.bytes(0, length).unwrap_or_default())
            }
        };
        let wanted = Wanted { lun: self.shape.lun.write(), cdb: task.asked.cdb, transfer };
        let link = &mut self.links[usize::from(number)];
        let Some(tag) = self.initiator.submit(number, wanted, &mut link.pipe.out) else {
            return self.waiting.push_front(task);
        };
        link.tasks += 1;
        task.link = number;
        let place = place(tag);
        if self.tasks.len() <= place {
            self.tasks.resize_with(place + 1, || None);
        }
        self.tasks[place] = Some(task);
    }

    // Sends waiting commands as far as the command window allows.
    fn pump(&mut self) {
        while self.initiator.can_submit()
            && let Some(task) = self.waiting.pop_front()
        {
            self.send(task);
        }
    }

    // Decodes received bytes of a connection.
    fn read(&mut self, number: u16, mut rest: &[u8], ended: &mut Vec<Ended<T>>) {
        let index = usize::from(number);
        while !self.is_lost {
            let out = &mut self.links[index].pipe.out;
            match self.initiator.receive(number, &mut rest, out) {
                Ok(Some(answer)) => self.hear(number, answer, ended),
                Ok(None) => break,
                Err(_) => self.lose_all(ended),
            }
        }
        self.pump();
    }

    // Acts on an answer of the target.
    fn hear(&mut self, number: u16, answer: Answer<'_>, ended: &mut Vec<Ended<T>>) {
        match answer {
            Answer::Data(tag, offset, bytes) => {
                if let Some(Some(task)) = self.tasks.get_mut(place(tag)) {
                    task.pending.fill(offset, bytes);
                }
            }
            Answer::Wants { tag, offset, length } => {
                if let Some(Some(task)) = self.tasks.get(place(tag))
                    && let Some(data) = task.data(offset, length)
                {
                    let out = &mut self.links[usize::from(number)].pipe.out;
                    self.initiator.send_data(tag, offset, data, out);
                }
            }
            Answer::Ended(over) => ended.extend(self.end(&over)),
            // Events 1 to 3: the target requests a logout or drops connections (RFC 7143 11.9.1).
            Answer::Event(AsyncMessage { event: 1..=3, .. })
            | Answer::LoggedOut { .. }
            | Answer::Rejected { .. } => self.lose_all(ended),
            Answer::Event(_) | Answer::Pong | Answer::Targets(_) | Answer::Managed { .. } => {}
        }
    }

    // Takes an ended command and continues its request. Returns the request's end if it is over.
    fn end(&mut self, over: &Over) -> Option<Ended<T>> {
        let mut task = self.tasks.get_mut(place(over.tag)).and_then(Option::take)?;
        self.links[usize::from(task.link)].tasks -= 1;
        // UNMAP has no data residual: some targets count its parameter list as not transferred.
        let is_hint = task.pending.request.operation == Operation::Discard;
        let has_data = task.asked.load != Load::None && !is_hint;
        match Fate::of(over, has_data) {
            Fate::Done => {
                task.progress = task.asked.then;
                self.go_on(task)
            }
            Fate::Full if self.initiator.outstanding() > 0 => {
                self.waiting.push_front(task);
                None
            }
            Fate::Told | Fate::Full if task.tries < TRIES => {
                task.tries += 1;
                self.go_on(task)
            }
            Fate::Told | Fate::Full => Some(task.pending.end(Err(NOT_READY))),
            Fate::Failed(failure) => Some(task.pending.end(Err(failure))),
        }
    }

    // Ends the session and all requests as lost.
    fn lose_all(&mut self, ended: &mut Vec<Ended<T>>) {
        if self.is_lost {
            return;
        }
        self.is_lost = true;
        for link in &self.links {
            link.pipe.cut(link.tasks > 0);
        }
        let sent = self.tasks.iter_mut().filter_map(Option::take);
        let lost = sent.chain(self.waiting.drain(..));
        ended.extend(lost.map(|task| task.pending.end(Err(Failure::Lost))));
    }
}

impl<T> Task<T> {
    // A part of the command's data to send.
    fn data(&self, offset: u32, length: u32) -> Option<&[u8]> {
        match &self.asked.load {
            Load::These(bytes) => bytes.get(offset as usize..offset as usize + length as usize),
            _ => self.pending.bytes(offset, length),
        }
    }
}

impl<T: Send> Queue<T> for SessionQueue<T> {
    fn submit(&mut self, request: Request, block: Option<Block>, tag: T) -> Option<Ended<T>> {
        let pending = Pending { request, block, tag };
        if self.is_lost {
            return Some(pending.end(Err(Failure::Lost)));
        }
        let asked = Asked { cdb: [0; 16], load: Load::None, then: Progress::default() };
        let progress = Progress::default();
        let began_ns = self.now_ns;
        self.go_on(Task { pending, progress, asked, link: 0, tries: 0, began_ns })
    }

    fn flush(&mut self, ring: &mut Ring) {
        if !self.is_lost {
            self.links.iter_mut().for_each(|link| link.pipe.flush(ring));
        }
    }

    fn has(&self, token: u64) -> bool {
        self.links.iter().any(|link| link.pipe.has(token))
    }

    fn complete(&mut self, completed: Completed, now_ns: u64, ended: &mut Vec<Ended<T>>) {
        let all = (0..).zip(&mut self.links);
        let mut its = all.filter(|(_, link)| link.pipe.has(completed.token));
        let Some((number, link)) = its.next() else { return };
        self.now_ns = now_ns;
        match link.pipe.complete(completed) {
            Moved::Came(input, count) => {
                (link.heard_ns, link.is_pinged) = (now_ns, false);
                self.read(number, &input[..count], ended);
                self.links[usize::from(number)].pipe.give_back(input);
            }
            Moved::Went => {}
            Moved::Broken => self.lose_all(ended),
        }
    }

    fn outstanding(&self) -> usize {
        self.initiator.outstanding() + self.waiting.len()
    }

    fn any(&self, is_like: &dyn Fn(&T) -> bool) -> bool {
        let sent = self.tasks.iter().flatten();
        sent.chain(&self.waiting).any(|task| is_like(&task.pending.tag))
    }

    fn deadline_ns(&self) -> Option<u64> {
        let pings = self.links.iter().map(|link| self.deadline_of(link));
        let look = (self.outstanding() > 0).then_some(self.look_ns);
        pings.chain(look).min().filter(|_| !self.is_lost)
    }

    fn look(&mut self, now_ns: u64, ended: &mut Vec<Ended<T>>) {
        self.now_ns = now_ns;
        if self.is_lost {
            return;
        }
        if now_ns >= self.look_ns {
            self.look_ns = now_ns + self.command_timeout_ns / 4;
            let mut tasks = self.tasks.iter().flatten().chain(&self.waiting);
            // No abort of a command is sure to arrive, so the session ends.
            if tasks.any(|task| now_ns - task.began_ns >= self.command_timeout_ns) {
                return self.lose_all(ended);
            }
        }
        for number in 0..self.links.len() {
            if now_ns < self.deadline_of(&self.links[number]) {
                continue;
            }
            if self.links[number].is_pinged {
                return self.lose_all(ended);
            }
            let link = &mut self.links[number];
            link.is_pinged = true;
            self.initiator.ping(u16::try_from(number).unwrap_or(0), &mut link.pipe.out);
        }
    }

    fn lose(&mut self, ended: &mut Vec<Ended<T>>) {
        self.lose_all(ended);
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn is_idle(&self) -> bool {
        self.links.iter().all(|link| link.pipe.is_idle())
    }
}

impl<T> SessionQueue<T> {
    // When a connection is to be pinged, or lost if it was.
    const fn deadline_of(&self, link: &Link) -> u64 {
        let asked = if link.is_pinged { self.ping_timeout_ns } else { 0 };
        link.heard_ns.saturating_add(self.ping_after_ns).saturating_add(asked)
    }
}
