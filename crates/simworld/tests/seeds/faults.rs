//! What happens to a target and the ways to it.

use std::sync::atomic::Ordering;

use nvme::log::AnaState;
use simworld::World;

use crate::house::House;
use crate::model::Model;
use crate::scope::Scope;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// All connections of a way are reset.
    Reset,
    /// All connections of a way are lost, and what was sent to the target arrives later.
    Strand,
    /// Nothing passes on a way for a while.
    Cut,
    /// A way is slow for a while.
    Delay,
    /// Segments are lost for a while.
    Drop,
    /// A thread of the target has no processor for a while.
    Stall,
    /// The target is killed, and started again.
    Kill,
    /// The target ends well, and is started again.
    Drain,
    /// The device is slow for a while.
    Slow,
    /// The namespace is reached otherwise over a way.
    Access,
}

impl Fault {
    pub(crate) const ALL: [Self; 10] = [
        Self::Reset,
        Self::Strand,
        Self::Cut,
        Self::Delay,
        Self::Drop,
        Self::Stall,
        Self::Kill,
        Self::Drain,
        Self::Slow,
        Self::Access,
    ];

    /// Those that leave reservations as they are.
    pub(crate) const OF_HOSTS: [Self; 6] =
        [Self::Reset, Self::Cut, Self::Delay, Self::Drop, Self::Stall, Self::Slow];
}

/// Faults of a world, and what has to be undone when.
pub(crate) struct Faults<'s> {
    scope: &'s Scope,
    /// How many there were.
    count: u32,
    /// Some of all: what meets often in one world does so seldom in another.
    kinds: Vec<Fault>,
    /// Of so many, one lasts long.
    long_of: u64,
    /// Time between two, mostly at most.
    gap_ns: u64,
    next_ns: u64,
    undo: Vec<(u64, Undo)>,
}

#[derive(Debug, Clone, Copy)]
enum Undo {
    Link(usize),
    Device,
    Start,
    Access(usize),
}

const MS: u64 = 1_000_000;

impl<'s> Faults<'s> {
    pub(crate) fn of(world: &World, scope: &'s Scope, all: &[Fault], gap_ns: u64) -> Self {
        let mut kinds: Vec<Fault> = all.iter().copied().filter(|_| world.draw(2) == 0).collect();
        if kinds.is_empty() {
            kinds = all.to_vec();
        }
        let long_of = 1 + 3 * world.draw(2);
        let next_ns = world.now_ns() + world.draw(2 * MS);
        Self { scope, count: 0, kinds, long_of, gap_ns, next_ns, undo: Vec::new() }
    }

    /// When something is to be done next.
    pub(crate) fn due_ns(&self) -> u64 {
        self.undo.iter().map(|(at, _)| *at).min().unwrap_or(u64::MAX).min(self.next_ns)
    }

    /// Does what is due; the fault that happened, if one did.
    pub(crate) fn act(
        &mut self,
        world: &World,
        house: &mut House<'_>,
        model: &mut Model,
    ) -> Option<Fault> {
        let now_ns = world.now_ns();
        let (due, later): (Vec<_>, Vec<_>) = self.undo.drain(..).partition(|(at, _)| *at <= now_ns);
        self.undo = later;
        for (_, undo) in due {
            Self::undo(undo, world, house);
        }
        if now_ns < self.next_ns {
            return None;
        }
        let most = if world.draw(8) == 0 { 1000 * MS } else { self.gap_ns };
        self.next_ns = now_ns + 1 + world.draw(most);
        let drawn = usize::try_from(world.draw(self.kinds.len() as u64)).unwrap_or(0);
        let fault = self.kinds[drawn];
        self.count += 1;
        if !self.scope.has(self.count) {
            return None;
        }
        self.scope.note(self.count, fault);
        self.happen(fault, world, house, model).then_some(fault)
    }

    /// Everything is as it was.
    pub(crate) fn end(&mut self, world: &World, house: &mut House<'_>) {
        for (_, undo) in std::mem::take(&mut self.undo) {
            Self::undo(undo, world, house);
        }
    }

    // Whether it could.
    fn happen(
        &mut self,
        fault: Fault,
        world: &World,
        house: &mut House<'_>,
        model: &mut Model,
    ) -> bool {
        let way = usize::try_from(world.draw(2)).unwrap_or(0);
        let link = house.links[way];
        let most = if world.draw(self.long_of) == 0 { 4000 * MS } else { 50 * MS };
        let while_ns = MS + world.draw(most);
        let until_ns = world.now_ns() + while_ns;
        match fault {
            Fault::Reset => return world.reset(link) > 0,
            Fault::Strand => return world.strand(link, while_ns) > 0,
            Fault::Cut => world.change(link, |link| link.cut_until_ns = until_ns),
            Fault::Delay => {
                let more = world.draw(20 * MS);
                world.change(link, |link| (link.latency_ns, link.jitter_ns) = (more, more));
                self.undo.push((until_ns, Undo::Link(link)));
            }
            Fault::Drop => {
                world.change(link, |link| link.dropped_ppm = 50_000);
                self.undo.push((until_ns, Undo::Link(link)));
            }
            Fault::Stall => {
                let Some((process, _)) = house.target() else { return false };
                let names = ["afar-shard-0", "afar-shard-1", "afar-control", "afar-keeper"];
                let name = names[usize::try_from(world.draw(4)).unwrap_or(0)];
                process.stall(name, while_ns);
            }
            Fault::Kill => {
                if !house.kill() {
                    return false;
                }
                model.crashed();
                self.undo.push((until_ns, Undo::Start));
            }
            Fault::Drain => {
                if !house.drain() {
                    return false;
                }
                model.crashed();
                self.undo.push((until_ns, Undo::Start));
            }
            Fault::Slow => {
                let most = world.draw(500 * MS);
                house.medium.slow_ns.store(most, Ordering::Relaxed);
                self.undo.push((until_ns, Undo::Device));
            }
            Fault::Access => {
                let Some((_, target)) = house.target() else { return false };
                let states = [AnaState::Inaccessible, AnaState::NonOptimized];
                let state = states[usize::try_from(world.draw(2)).unwrap_or(0)];
                target.reach(way, state);
                target.reach_iscsi(way, state);
                self.undo.push((until_ns, Undo::Access(way)));
            }
        }
        true
    }

    fn undo(undo: Undo, world: &World, house: &mut House<'_>) {
        match undo {
            Undo::Link(link) => world.change(link, |link| {
                *link = simworld::Link { cut_until_ns: link.cut_until_ns, ..Default::default() };
            }),
            Undo::Device => house.medium.slow_ns.store(100_000, Ordering::Relaxed),
            Undo::Start => house.start(),
            Undo::Access(way) => {
                if let Some((_, target)) = house.target() {
                    target.reach(way, AnaState::Optimized);
                    target.reach_iscsi(way, AnaState::Optimized);
                }
            }
        }
    }
}
