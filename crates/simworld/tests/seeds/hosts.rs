//! Several hosts of one namespace, over both protocols: they overlap, fence one another off, abort
//! what they have begun and come again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simworld::World;
use sys::event::Waker;
use workload::Draw;

use crate::Outcome;
use crate::asked::Kind;
use crate::faults::{Fault, Faults};
use crate::house::{House, IQN, NQN};
use crate::model::{BLOCK, Model, Moment};
use crate::peers::iscsi::IscsiPeer;
use crate::peers::nvme::NvmePeer;
use crate::peers::{Op, Peer, Reply};
use crate::scope::Scope;

/// Hosts: those but the last over the protocol that the reservation is of.
const HOSTS: u8 = 4;
/// Commands of each, and how many overlap.
pub(crate) const COMMANDS: u64 = 130;
const DEPTH: usize = 8;
/// Blocks that all of them read and write; a counter is behind them.
const BLOCKS: usize = 48;
const LONGEST: u64 = 12;
const COUNTER: u64 = BLOCKS as u64;
const SIZE: u64 = 1 << 20;
const MS: u64 = 1_000_000;
/// Looks soon after one another before it is believed that nobody has anything to do.
const SOON: u32 = 40;
/// It has ended by then.
const ENDS_NS: u64 = 600_000 * MS;
/// The keep-alive time, what commands may take then, and a second.
const GIVEN_UP_NS: u64 = 5_000 * MS;

/// What all hosts know, for it is one test.
struct Known {
    model: Model,
    under_way: BTreeMap<(u8, u64), Kind>,
    commands: u64,
    overlapping: usize,
    /// Of each host: when it was fenced off last, from the call on until it was answered.
    fenced: Vec<Option<[Moment; 2]>>,
    /// Of each host: when it has registered last, from the call on until it was answered.
    registered: Vec<(Moment, Option<Moment>)>,
    done: BTreeMap<Kind, u64>,
    /// Of each host: changes that have not been answered.
    outstanding: Vec<BTreeSet<u64>>,
    /// Values of the counter from which somebody has gone on.
    counted: BTreeMap<u64, u8>,
}

type Shared = Arc<Mutex<Known>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Known> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a host has under way.
struct Command {
    kind: Kind,
    op: Op,
    began: Moment,
    /// Its change of the model; 0 for none.
    change: u64,
}

struct Host {
    who: u8,
    seed: u64,
    is_nvme: bool,
    /// The reservation is of the other protocol: it may only read.
    is_barred: bool,
    known: Shared,
    draw: Draw,
    under_way: BTreeMap<u64, Command>,
    begun: u64,
    /// How many it begins.
    commands: u64,
    /// What it takes the counter for.
    counter: Option<u64>,
}

/// Runs a seed.
///
/// # Panics
/// When an answer is wrong or does not come.
pub(crate) fn run(seed: u64, scope: &Scope) -> Outcome<Kind> {
    let commands = scope.commands_of(COMMANDS);
    World::run(seed, |world| {
        let mut house = House::new(world, SIZE, scope.lies);
        let known = Known {
            model: Model::new(BLOCKS),
            under_way: BTreeMap::new(),
            commands: 0,
            overlapping: 0,
            fenced: vec![None; usize::from(HOSTS)],
            registered: vec![(0, Some(0)); usize::from(HOSTS)],
            done: BTreeMap::new(),
            outstanding: vec![BTreeSet::new(); usize::from(HOSTS)],
            counted: BTreeMap::new(),
        };
        let shared: Shared = Arc::new(Mutex::new(known));
        first(world, &house, seed.is_multiple_of(2));
        let left = Arc::new(());
        let begin = |who| start(world, &house, &shared, (who, seed, commands), &left);
        let threads: Vec<_> = (0..HOSTS).map(begin).collect();
        let mut faults = Faults::of(world, scope, &Fault::OF_HOSTS, MS / 4);
        let mut met = BTreeMap::new();
        let (mut none, mut idle_looks) = (Model::new(0), 0);
        while Arc::strong_count(&left) > 1 {
            let left = &lock(&shared).under_way.clone();
            assert!(world.now_ns() < ENDS_NS, "seed {seed}: it does not end: {left:?}");
            // Faults are for those who have something under way.
            if lock(&shared).under_way.len() < DEPTH {
                idle_looks += 1;
                world.pass(if idle_looks < SOON { MS / 20 } else { 10 * MS });
                continue;
            }
            idle_looks = 0;
            if let Some(fault) = faults.act(world, &mut house, &mut none) {
                for kind in lock(&shared).under_way.values() {
                    *met.entry((fault, *kind)).or_default() += 1;
                }
            }
            world.pass(faults.due_ns().saturating_sub(world.now_ns()).clamp(1, 100 * MS));
        }
        faults.end(world, &mut house);
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let known = lock(&shared);
        let (commands, overlapping) = (known.commands, known.overlapping);
        let (done, digest) = (known.done.clone(), world.digest());
        drop(known);
        drop(house);
        Outcome { met, done, commands, overlapping, digest }
    })
}

// Somebody holds the reservation from now on: whoever is not registered may not write.
fn first(world: &World, house: &House<'_>, is_nvme: bool) {
    let process = world.process();
    let own = process.world();
    let peer: Option<Box<dyn Peer>> = match is_nvme {
        true => NvmePeer::connect(&*own, &house.nvme[0].to_string(), NQN, 99)
            .map(|peer| Box::new(peer) as _),
        false => IscsiPeer::connect(&*own, &house.iscsi[0].to_string(), IQN, 99)
            .map(|peer| Box::new(peer) as _),
    };
    let mut peer = peer.expect("it is there");
    for op in [Op::Register(99), Op::Acquire(99)] {
        peer.begin(&op).expect("there is room");
        let told = std::iter::repeat_with(|| peer.hear().expect("it is there"))
            .find(|told| !told.is_empty());
        assert_eq!(told.map(|told| told[0].1.clone()), Some(Reply::Done(Vec::new())));
    }
}

fn start(
    world: &World,
    house: &House<'_>,
    shared: &Shared,
    (who, seed, commands): (u8, u64, u64),
    left: &Arc<()>,
) -> sys::world::Thread {
    let process = world.process();
    let own = process.world();
    let is_barred = who + 1 == HOSTS;
    let is_nvme = seed.is_multiple_of(2) != is_barred;
    let all = if is_nvme { &house.nvme } else { &house.iscsi };
    let addresses: Vec<String> = all.iter().map(ToString::to_string).collect();
    let mut host = Host {
        who,
        seed,
        is_nvme,
        is_barred,
        known: Arc::clone(shared),
        draw: Draw::new(seed << 8 | u64::from(who)),
        under_way: BTreeMap::new(),
        begun: 0,
        commands,
        counter: None,
    };
    let (left, named) = (Arc::clone(left), Arc::clone(&own));
    let work = move || {
        let _left = left;
        host.work(&*own, &addresses);
    };
    named.start(format!("host-{who}"), Box::new(work)).expect("there are threads")
}

impl Host {
    fn draw(&mut self, bound: u64) -> u64 {
        self.draw.below(bound)
    }

    fn key(&self) -> u64 {
        u64::from(self.who) + 1
    }

    fn work(&mut self, world: &dyn sys::world::World, addresses: &[String]) {
        let waker = Waker::new().expect("there are descriptors");
        while self.begun < self.commands {
            // A controller that nobody has told of the loss gives its host up (Base 3.9).
            if self.is_nvme && !self.under_way.is_empty() {
                let _time = world.wait(&waker, Some(world.now_ns() + GIVEN_UP_NS));
            }
            // A session ends when its initiator logs in again by the same port (RFC 7143 6.3.5).
            let way = if self.is_nvme { self.draw(2) } else { u64::from(self.who % 2) };
            let way = usize::try_from(way).unwrap_or(0);
            let (address, who) = (&addresses[way], self.who + 1);
            let peer: Option<Box<dyn Peer>> = match self.is_nvme {
                true => NvmePeer::connect(world, address, NQN, who).map(|peer| Box::new(peer) as _),
                false => {
                    IscsiPeer::connect(world, address, IQN, who).map(|peer| Box::new(peer) as _)
                }
            };
            match peer {
                Some(mut peer) => self.talk(&mut *peer, &waker),
                None => {
                    let until_ns = world.now_ns() + 1 + self.draw(50 * MS);
                    let _time = world.wait(&waker, Some(until_ns));
                }
            }
        }
    }

    // As long as the connection lasts.
    fn talk(&mut self, peer: &mut dyn Peer, waker: &Waker) {
        // What it had under way before is over: another association of the same host is there.
        self.seal();
        if !self.is_barred {
            self.register(peer);
        }
        loop {
            while self.begun < self.commands && self.under_way.len() < DEPTH {
                if !self.begin(peer) {
                    break;
                }
            }
            if self.under_way.is_empty() && self.begun >= self.commands {
                return;
            }
            let timeout = std::time::Duration::from_millis(10_000);
            let waited = peer.stream().wait(waker, Some(timeout)).expect("it waits");
            if !waited[0] {
                return self.lose();
            }
            let Some(told) = peer.hear() else { return self.lose() };
            for (number, reply) in told {
                self.take(number, reply, peer);
            }
        }
    }

    fn lose(&mut self) {
        let mut known = lock(&self.known);
        for number in self.under_way.keys() {
            known.under_way.remove(&(self.who, *number));
        }
    }

    // Nothing of it is under way at the target any more.
    fn seal(&mut self) {
        let mut known = lock(&self.known);
        for command in std::mem::take(&mut self.under_way).into_values() {
            known.model.seal(command.change);
        }
        known.outstanding[usize::from(self.who)].clear();
    }

    // One at a time, so that it is known when it was registered.
    fn register(&mut self, peer: &mut dyn Peer) -> bool {
        if self.under_way.values().any(|one| one.kind == Kind::Register) {
            return false;
        }
        self.ask(peer, Kind::Register, Op::Register(self.key()))
    }

    fn begin(&mut self, peer: &mut dyn Peer) -> bool {
        let count = 1 + self.draw(LONGEST);
        let first = self.draw(BLOCKS as u64 - count + 1);
        let blocks = u32::try_from(count).unwrap_or(1);
        match self.draw(22) {
            0..6 => self.ask(peer, Kind::Read, Op::Read { first, count: blocks }),
            6..11 => self.write(peer, first, count, false),
            11..13 => self.write(peer, first, count, true),
            13 => self.ask(peer, Kind::Flush, Op::Flush),
            14 => self.ask(peer, Kind::Zero, Op::Zero { first, count: blocks }),
            15 | 16 => self.count(peer),
            17 => {
                let other = self.draw(u64::from(HOSTS) - 1) + 1;
                let own = self.key();
                if other == own || self.is_barred {
                    return self.ask(peer, Kind::Flush, Op::Flush);
                }
                self.ask(peer, Kind::Preempt, Op::Preempt { own, other })
            }
            18 => self.abort(peer),
            19 if !self.is_barred => self.register(peer),
            20 => self.abort(peer),
            _ => self.ask(peer, Kind::Read, Op::Read { first: COUNTER, count: 1 }),
        }
    }

    fn write(&mut self, peer: &mut dyn Peer, first: u64, count: u64, forced: bool) -> bool {
        // The data says which change it is, which is known when it begins.
        let data = vec![0; usize::try_from(count).unwrap_or(1) * BLOCK];
        let kind = if forced { Kind::Forced } else { Kind::Write };
        self.ask(peer, kind, Op::Write { first, forced, data })
    }

    fn count(&mut self, peer: &mut dyn Peer) -> bool {
        let Some(counter) = self.counter else {
            return self.ask(peer, Kind::Read, Op::Read { first: COUNTER, count: 1 });
        };
        let [old, new] = [counter, counter + 1].map(|value| value.to_le_bytes().repeat(BLOCK / 8));
        self.ask(peer, Kind::Swap, Op::Swap { block: COUNTER, old, new })
    }

    // Aborts something of its own.
    fn abort(&mut self, peer: &mut dyn Peer) -> bool {
        let place = usize::try_from(self.draw(DEPTH as u64)).unwrap_or(0);
        let chosen = self.under_way.keys().copied().nth(place);
        let Some(number) = chosen else { return true };
        self.begun += 1;
        {
            let mut known = lock(&self.known);
            known.commands += 1;
            known.under_way.insert((self.who, u64::MAX), Kind::Abort);
        }
        let _still_talks = peer.abort(number);
        lock(&self.known).under_way.remove(&(self.who, u64::MAX));
        true
    }

    fn ask(&mut self, peer: &mut dyn Peer, kind: Kind, mut op: Op) -> bool {
        let mut known = lock(&self.known);
        let began = known.model.begin();
        let mut change = 0;
        match &mut op {
            Op::Write { first, forced, data } => {
                known.model.choose(false);
                let first = usize::try_from(*first).unwrap_or(0);
                change = known.model.change([first, data.len() / BLOCK], *forced, false);
                *data = change.to_le_bytes().repeat(data.len() / 8);
            }
            Op::Zero { first, count } => {
                known.model.choose(true);
                let first = usize::try_from(*first).unwrap_or(0);
                change = known.model.change([first, *count as usize], false, false);
            }
            Op::Register(_) => known.registered[usize::from(self.who)] = (began, None),
            _ => {}
        }
        drop(known);
        let Some(number) = peer.begin(&op) else {
            lock(&self.known).model.never(change);
            return false;
        };
        self.begun += 1;
        let mut known = lock(&self.known);
        known.commands += 1;
        known.under_way.insert((self.who, number), kind);
        known.overlapping = known.overlapping.max(known.under_way.len());
        if change > 0 {
            known.outstanding[usize::from(self.who)].insert(change);
        }
        drop(known);
        self.under_way.insert(number, Command { kind, op, began, change });
        true
    }

    fn take(&mut self, number: u64, reply: Reply, peer: &mut dyn Peer) {
        let command = self.under_way.remove(&number).expect("it is answered once");
        let shared = Arc::clone(&self.known);
        let mut known = lock(&shared);
        known.under_way.remove(&(self.who, number));
        let Command { kind, op, began, change } = command;
        known.outstanding[usize::from(self.who)].remove(&change);
        let (who, seed) = (self.who, self.seed);
        match reply {
            Reply::Done(bytes) => {
                *known.done.entry(kind).or_default() += 1;
                let is_change = known.done(who, kind, began, change, seed);
                assert!(
                    !is_change || !self.is_barred,
                    "seed {seed}: the other protocol has written"
                );
                self.learn(&op, &bytes, began, &mut known);
            }
            Reply::Conflict => {
                known.model.never(change);
                drop(known);
                if !self.is_barred {
                    self.register(peer);
                }
            }
            Reply::Miscompare => self.counter = None,
            Reply::Aborted => {
                *known.done.entry(Kind::Abort).or_default() += 1;
                known.model.seal(change);
            }
            Reply::Failed(why) => panic!("seed {seed}: host {who}: {op:?}: {why}"),
        }
    }

    // What an answer says.
    fn learn(&mut self, op: &Op, bytes: &[u8], began: Moment, known: &mut Known) {
        let (who, seed) = (self.who, self.seed);
        match op {
            Op::Read { first: COUNTER, .. } => {
                let (word, _) = bytes.split_first_chunk::<8>().expect("a block");
                self.counter = Some(u64::from_le_bytes(*word));
            }
            Op::Read { first, .. } => {
                let first = usize::try_from(*first).unwrap_or(0);
                let wrong = known.model.check(first, began, bytes);
                assert_eq!(wrong, None, "seed {seed}: host {who} reads block {first} on");
            }
            Op::Swap { old, .. } => {
                let (word, _) = old.split_first_chunk::<8>().expect("a block");
                let old = u64::from_le_bytes(*word);
                let before = known.counted.insert(old, who);
                assert_eq!(
                    before, None,
                    "seed {seed}: hosts {before:?} and {who} both go on from {old}"
                );
                self.counter = Some(old + 1);
            }
            Op::Preempt { other, .. } => {
                known.fence(usize::try_from(other - 1).unwrap_or(0), began);
            }
            Op::Register(_) => {
                let now = known.model.begin();
                known.registered[usize::from(who)].1 = Some(now);
            }
            _ => {}
        }
    }
}

impl Known {
    // A command was done: whoever was fenced off, and has not registered since, changes nothing.
    // Whether it is such a change.
    fn done(&mut self, who: u8, kind: Kind, began: Moment, change: u64, seed: u64) -> bool {
        let own = usize::from(who);
        let is_change = matches!(kind, Kind::Write | Kind::Forced | Kind::Zero | Kind::Swap);
        if let Some([asked, fence]) = self.fenced[own].filter(|_| is_change) {
            let (_, registered) = self.registered[own];
            let is_in = registered.is_none_or(|registered| registered > asked);
            assert!(
                began < fence || is_in,
                "seed {seed}: host {who}, which was fenced off, has changed something"
            );
        }
        self.model.changed(change);
        is_change
    }

    // A host is fenced off: what it had under way has been done, or never is.
    fn fence(&mut self, other: usize, began: Moment) {
        let now = self.model.begin();
        self.fenced[other] = Some([began, now]);
        let (_, registered) = self.registered[other];
        if registered.is_some_and(|registered| registered < began) {
            for change in &self.outstanding[other] {
                self.model.seal_if(*change, began);
            }
        }
    }
}
