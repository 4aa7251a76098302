//! A disk under load while everything happens to its target: no answer is wrong, and all come.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use backend::{Failure, Operation, Request};
use host::{Disk, DiskConfig};
use measure::Duration;
use simworld::World;
use sys::event::Waker;

use crate::Outcome;
use crate::faults::{Fault, Faults};
use crate::house::{House, Speech};
use crate::model::{BLOCK, Model, Moment};
use crate::scope::Scope;

/// Commands of a seed, and how many overlap.
pub(crate) const COMMANDS: u64 = 500;
const DEPTH: usize = 16;
/// Blocks that are read and written: few, so that commands meet.
const BLOCKS: usize = 96;
/// Blocks of a command at most.
const LONGEST: u64 = 24;
const SIZE: u64 = 1 << 20;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Read,
    Write,
    Forced,
    Flush,
    Zero,
    Discard,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Forced, Self::Flush, Self::Zero, Self::Discard];
}

/// A command under way.
struct Command {
    kind: Kind,
    first: usize,
    began: Moment,
    change: u64,
}

struct Load<'w> {
    world: &'w World,
    disk: Disk,
    model: Model,
    under_way: BTreeMap<u64, Command>,
    done: BTreeMap<Kind, u64>,
    begun: u64,
    told: (Sender<Told>, Receiver<Told>),
    waker: Waker,
}

type Told = (u64, Result<Vec<u8>, Failure>);

/// Runs a seed.
///
/// # Panics
/// When an answer is wrong or does not come.
pub(crate) fn run(seed: u64, speech: Speech, scope: &Scope) -> Outcome<Kind> {
    let all = scope.commands_of(COMMANDS);
    World::run(seed, |world| {
        let mut house = House::new(world, SIZE, scope.lies);
        let user = world.process();
        let config = DiskConfig {
            paths: house.ways(speech),
            queues: 2,
            depth: 16,
            reconnect_delay: Duration::from_ms(500),
            loss_timeout: Duration::from_ms(600_000),
            io_timeout: Duration::from_ms(5_000),
            trusts_identity: false,
        };
        let disk = Disk::attach_in(&user.world(), config, Box::new(|_| {}));
        let mut load = Load {
            world,
            disk: disk.expect("it is there"),
            model: Model::new(BLOCKS),
            under_way: BTreeMap::new(),
            done: BTreeMap::new(),
            begun: 0,
            told: channel(),
            waker: Waker::new().expect("there are descriptors"),
        };
        let mut faults = Faults::of(world, scope, &Fault::ALL, 1_000_000);
        let (mut met, mut overlapping) = (BTreeMap::new(), 0);
        while load.begun < all || !load.under_way.is_empty() {
            while load.begun < all && load.under_way.len() < DEPTH {
                load.begin();
            }
            overlapping = overlapping.max(load.under_way.len());
            if let Some(fault) = faults.act(world, &mut house, &mut load.model) {
                for command in load.under_way.values() {
                    *met.entry((fault, command.kind)).or_default() += 1;
                }
            }
            if load.begun == all {
                faults.end(world, &mut house);
                load.wait(60_000_000_000);
            } else {
                load.wait(faults.due_ns().saturating_sub(world.now_ns()).max(1));
            }
            load.hear(seed);
        }
        load.read_all(seed);
        let (commands, digest) = (load.begun, world.digest());
        let done = std::mem::take(&mut load.done);
        drop(load);
        // A way that is being looked for is not waited for.
        user.kill();
        drop(house);
        Outcome { met, done, commands, overlapping, digest }
    })
}

impl Load<'_> {
    fn draw(&self, bound: u64) -> usize {
        usize::try_from(self.world.draw(bound)).unwrap_or(0)
    }

    fn begin(&mut self) {
        let kind = match self.world.draw(16) {
            0..6 => Kind::Read,
            6..10 => Kind::Write,
            10..12 => Kind::Forced,
            12 | 13 => Kind::Flush,
            14 => Kind::Zero,
            _ => Kind::Discard,
        };
        let length = 1 + self.draw(LONGEST);
        let first = self.draw((BLOCKS - length) as u64 + 1);
        self.ask(kind, first, length);
    }

    fn ask(&mut self, kind: Kind, first: usize, length: usize) {
        let mut change = 0;
        let mut data = Vec::new();
        let operation = match kind {
            Kind::Read => Operation::Read,
            Kind::Flush => Operation::Flush,
            Kind::Zero => Operation::Zero { deallocates: self.draw(2) == 0, forced: false },
            Kind::Discard => Operation::Discard,
            Kind::Write | Kind::Forced => Operation::Write { forced: kind == Kind::Forced },
        };
        let began = self.model.begin();
        if !matches!(kind, Kind::Read | Kind::Flush) {
            self.model.choose(!matches!(kind, Kind::Write | Kind::Forced));
            let is_wild = kind == Kind::Discard;
            change = self.model.change([first, length], kind == Kind::Forced, is_wild);
        }
        if matches!(kind, Kind::Write | Kind::Forced) {
            data = change.to_le_bytes().repeat(length * BLOCK / 8);
        }
        let (offset, bytes) = match kind {
            Kind::Flush => (0, 0),
            _ => ((first * BLOCK) as u64, (length * BLOCK) as u64),
        };
        self.begun += 1;
        let number = self.begun;
        self.under_way.insert(number, Command { kind, first, began, change });
        let (sender, waker) = (self.told.0.clone(), self.waker.clone());
        let done = move |result: Result<&[u8], Failure>| {
            let _gone = sender.send((number, result.map(<[u8]>::to_vec)));
            waker.wake();
        };
        self.disk.submit(Request { operation, offset, length: bytes }, &data, Box::new(done));
    }

    fn wait(&self, ns: u64) {
        let _used = self.world.wait(&self.waker, ns);
    }

    fn hear(&mut self, seed: u64) {
        while let Ok((number, result)) = self.told.1.try_recv() {
            let Command { kind, first, began, change } =
                self.under_way.remove(&number).expect("it is answered once");
            let bytes = result.unwrap_or_else(|failure| {
                panic!("seed {seed}: command {number}, {kind:?} at block {first}: {failure}")
            });
            *self.done.entry(kind).or_default() += 1;
            match kind {
                Kind::Read => {
                    let wrong = self.model.check(first, began, &bytes);
                    let now_ms = self.world.now_ns() / 1_000_000;
                    assert_eq!(
                        wrong, None,
                        "seed {seed}: read {number} of block {first} on, {now_ms} ms"
                    );
                }
                Kind::Flush => self.model.flushed(began),
                _ => self.model.changed(change),
            }
        }
    }

    // What is there when all is over.
    fn read_all(&mut self, seed: u64) {
        self.ask(Kind::Read, 0, BLOCKS);
        while !self.under_way.is_empty() {
            self.wait(60_000_000_000);
            self.hear(seed);
        }
    }
}
