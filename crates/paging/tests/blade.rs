//! The life of pages that are far for real, beside a blade whose answers come in any order, and
//! which may lose, misplace and repeat what it is given.
//!
//! `AFAR_PAGE_OPERATIONS` says how many operations all seeds do together; each transition must have
//! met each fault.

use std::collections::BTreeMap;

use paging::blade::{Arrival, Blade, Content, Key, Leave, Lost, Meanwhile, Outcome, Place, Token};
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

const PLACES: Place = 96;
const PAGES: u64 = 64;
const SLOTS: usize = 3;
const OPERATIONS: u64 = 4_000;
const SEEDS: u64 = 300;
/// How often each transition must have met each fault, of a million operations.
const MET_MIN: u64 = 10;

/// What the blade does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Nothing,
    /// All that it has is gone, at a time.
    Forgets,
    /// It acknowledges a write and does not do it.
    Drops,
    /// It writes to another place.
    Misplaces,
    /// It writes again, later.
    Repeats,
}

const FAULTS: [Fault; 5] =
    [Fault::Nothing, Fault::Forgets, Fault::Drops, Fault::Misplaces, Fault::Repeats];

/// What happens to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Leaves,
    /// It leaves as it came, and nothing is sent.
    Held,
    Acknowledged,
    Far,
    Rescued,
    /// The blade has it already.
    RescuedLate,
    FreedOnItsWayOut,
    MovedOnItsWayOut,
    Fetched,
    Came,
    FreedOnItsWayIn,
    MovedOnItsWayIn,
    Freed,
    Moved,
    Shared,
}

const STEPS: [Step; 15] = [
    Step::Leaves,
    Step::Held,
    Step::Acknowledged,
    Step::Far,
    Step::Rescued,
    Step::RescuedLate,
    Step::FreedOnItsWayOut,
    Step::MovedOnItsWayOut,
    Step::Fetched,
    Step::Came,
    Step::FreedOnItsWayIn,
    Step::MovedOnItsWayIn,
    Step::Freed,
    Step::Moved,
    Step::Shared,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Local,
    Leaving(Token),
    Far,
    Coming(Token),
}

/// A page as its program sees it: what it holds, and where that is.
#[derive(Clone, Copy, Debug)]
struct Page {
    holds: u64,
    state: State,
}

/// A transfer that the blade has not answered.
#[derive(Clone, Copy, Debug)]
struct Asked {
    token: Token,
    key: Key,
    place: Place,
    /// What is written; none for a read.
    writes: Option<u64>,
}

type Met = BTreeMap<(Step, Fault), u64>;

struct World {
    rng: Pcg64Mcg,
    fault: Fault,
    blade: Blade,
    pages: BTreeMap<Key, Page>,
    /// What the blade has, as it has it.
    kept: Vec<u64>,
    asked: Vec<Asked>,
    /// Pages that it has acknowledged, and that have their frames.
    acknowledged: Vec<(Token, Key)>,
    /// Writes that it repeats later.
    repeats: Vec<(Place, u64)>,
    next: u64,
    met: Met,
    /// It has done something wrong.
    is_wrong: bool,
}

fn sum(holds: u64) -> u32 {
    let mixed = (holds ^ holds >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    u32::try_from(mixed >> 32).expect("32 bits")
}

fn content(holds: u64) -> Content {
    Content { sum: sum(holds), print: holds }
}

impl World {
    fn new(seed: u64, fault: Fault) -> Self {
        Self {
            rng: Pcg64Mcg::new(u128::from(seed) * 2 + 1),
            fault,
            blade: Blade::new(PLACES),
            pages: BTreeMap::new(),
            kept: vec![0; PLACES as usize],
            asked: Vec::new(),
            acknowledged: Vec::new(),
            repeats: Vec::new(),
            next: 0,
            met: Met::new(),
            is_wrong: false,
        }
    }

    fn below(&mut self, most: u64) -> u64 {
        self.rng.next_u64() % most
    }

    fn key(&mut self) -> Key {
        let slot = usize::try_from(self.below(SLOTS as u64)).expect("few");
        (slot, self.below(PAGES))
    }

    fn meet(&mut self, step: Step) {
        *self.met.entry((step, self.fault)).or_default() += 1;
    }

    /// One operation; an error ends the program, as it would.
    fn step(&mut self) -> Result<(), Lost> {
        let key = self.key();
        match self.below(20) {
            0..8 => self.touch(key),
            8..12 => self.leave(key),
            12..16 => return self.answer(),
            16..18 => self.give_frame(),
            18 => self.free_or_move(key),
            _ => match self.below(6) {
                0 => self.share(key),
                1 => self.misbehave(),
                _ => self.free(key, 1),
            },
        }
        Ok(())
    }

    // Writes to a page, which has to be here.
    fn touch(&mut self, key: Key) {
        self.next += 1;
        let holds = self.next;
        match self.pages.get(&key).map(|page| page.state) {
            Some(State::Leaving(token)) => {
                // It is taken back, and not always written to.
                let is_acknowledged = self.acknowledged.iter().any(|one| one.0 == token);
                self.meet(if is_acknowledged { Step::RescuedLate } else { Step::Rescued });
                let is_written = self.below(2) == 0;
                let page = self.pages.get_mut(&key).expect("it is there");
                page.state = State::Local;
                page.holds = if is_written { holds } else { page.holds };
            }
            None | Some(State::Local) => {
                self.pages.insert(key, Page { holds, state: State::Local });
            }
            Some(State::Far) => {
                let (token, place) = self.blade.fetch(key).expect("it is far");
                self.asked.push(Asked { token, key, place, writes: None });
                self.pages.get_mut(&key).expect("it is there").state = State::Coming(token);
                self.meet(Step::Fetched);
            }
            Some(State::Coming(_)) => {}
        }
    }

    fn leave(&mut self, key: Key) {
        let Some(page) = self.pages.get_mut(&key).filter(|page| page.state == State::Local) else {
            return;
        };
        let holds = page.holds;
        let (token, place) = match self.blade.leave(key, content(holds)) {
            None => return,
            Some(Leave::Held(token)) => {
                page.state = State::Leaving(token);
                self.acknowledged.push((token, key));
                self.meet(Step::Held);
                return;
            }
            Some(Leave::Sent(token, place)) => (token, place),
        };
        page.state = State::Leaving(token);
        assert!(
            self.asked.iter().all(|asked| asked.place != place),
            "place {place} is on its way already"
        );
        self.asked.push(Asked { token, key, place, writes: Some(holds) });
        self.meet(Step::Leaves);
    }

    // The blade answers one of its transfers, whichever.
    fn answer(&mut self) -> Result<(), Lost> {
        if self.asked.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(self.below(self.asked.len() as u64)).expect("few");
        let Asked { token, key, place, writes } = self.asked.swap_remove(at);
        match writes {
            Some(holds) => {
                self.write(place, holds);
                self.acknowledged.push((token, key));
                self.meet(Step::Acknowledged);
                Ok(())
            }
            None => self.came(token, key, place),
        }
    }

    fn write(&mut self, place: Place, holds: u64) {
        let wrong = self.fault != Fault::Nothing && self.below(100) == 0;
        match self.fault {
            Fault::Drops if wrong => self.is_wrong = true,
            Fault::Misplaces if wrong => {
                let other = usize::try_from(self.below(u64::from(PLACES))).expect("few");
                self.kept[other] = holds;
                self.is_wrong = true;
            }
            _ => self.kept[place as usize] = holds,
        }
        if self.fault == Fault::Repeats && wrong {
            self.repeats.push((place, holds));
        }
    }

    // The frame of a page that the blade has is needed.
    fn give_frame(&mut self) {
        if self.acknowledged.is_empty() {
            return;
        }
        let at = usize::try_from(self.below(self.acknowledged.len() as u64)).expect("few");
        let (token, key) = self.acknowledged.swap_remove(at);
        let state = self.pages.get(&key).map(|page| page.state);
        let meanwhile = match state {
            Some(State::Leaving(one)) if one == token => Meanwhile::Untouched,
            Some(State::Local | State::Leaving(_)) => Meanwhile::Touched,
            Some(State::Far | State::Coming(_)) | None => Meanwhile::Gone,
        };
        let outcome = self.blade.left(token, |asked| {
            assert_eq!(asked, key);
            meanwhile
        });
        match outcome.expect("it was on its way out") {
            Outcome::Far(far) => {
                assert!(meanwhile == Meanwhile::Untouched && far == key);
                self.pages.get_mut(&key).expect("it is there").state = State::Far;
                self.meet(Step::Far);
            }
            Outcome::Stays => {
                assert_ne!(meanwhile, Meanwhile::Untouched);
                if state.is_none() {
                    self.meet(Step::FreedOnItsWayOut);
                }
            }
        }
    }

    fn came(&mut self, token: Token, key: Key, place: Place) -> Result<(), Lost> {
        let holds = self.kept[place as usize];
        let state = self.pages.get(&key).map(|page| page.state);
        match self.blade.arrived(token, sum(holds), || holds == 0).expect("it was on its way in") {
            Ok(Arrival::Page(page)) => {
                assert_eq!((page, state), (key, Some(State::Coming(token))), "whose it is");
                let page = self.pages.get_mut(&key).expect("it is there");
                assert_eq!(page.holds, holds, "what page {key:?} holds");
                page.state = State::Local;
                self.meet(Step::Came);
            }
            Ok(Arrival::Nobody) => {
                assert_ne!(state, Some(State::Coming(token)), "it is waited for");
                self.meet(Step::FreedOnItsWayIn);
            }
            Err(lost) => {
                assert!(self.is_wrong, "{lost}: the blade has done nothing wrong");
                return Err(lost);
            }
        }
        Ok(())
    }

    fn free(&mut self, (slot, first): Key, count: u64) {
        for page in first..first + count {
            if self.pages.remove(&(slot, page)).is_some() {
                self.meet(Step::Freed);
            }
        }
        self.blade.forget((slot, first), count);
    }

    // Some pages move to where they do not overlap themselves, or their process ends.
    fn free_or_move(&mut self, (slot, first): Key) {
        const MOST: u64 = 8;
        if self.below(40) == 0 {
            self.free((slot, 0), PAGES);
            return;
        }
        let count = 1 + self.below(MOST);
        let to = (first + MOST + self.below(PAGES - 2 * MOST)) % PAGES;
        if to.abs_diff(first) < count || to + count > PAGES || first + count > PAGES {
            return;
        }
        self.free((slot, to), count);
        self.blade.rename((slot, first), to, count);
        for page in first..first + count {
            let Some(mut moved) = self.pages.remove(&(slot, page)) else { continue };
            self.meet(match moved.state {
                State::Leaving(_) => Step::MovedOnItsWayOut,
                State::Coming(_) => Step::MovedOnItsWayIn,
                State::Local | State::Far => Step::Moved,
            });
            moved.state = match moved.state {
                State::Leaving(_) => State::Local,
                State::Coming(_) => State::Far,
                state => state,
            };
            self.pages.insert((slot, page - first + to), moved);
        }
    }

    // A process copies itself into a slot that is free.
    fn share(&mut self, (parent, _): Key) {
        let child = (parent + 1) % SLOTS;
        self.free((child, 0), PAGES);
        self.blade.share((parent, 0), child, PAGES);
        let pages: Vec<_> = self.pages.range((parent, 0)..(parent, PAGES)).collect();
        let copies: Vec<_> = pages
            .into_iter()
            .map(|(&(_, page), &Page { holds, state })| {
                let state = match state {
                    State::Local | State::Leaving(_) => State::Local,
                    State::Far | State::Coming(_) => State::Far,
                };
                ((child, page), Page { holds, state })
            })
            .collect();
        copies.iter().for_each(|_| self.meet(Step::Shared));
        self.pages.extend(copies);
    }

    fn misbehave(&mut self) {
        let is_its_time = self.below(50) == 0;
        match self.fault {
            Fault::Forgets if is_its_time => {
                self.kept.fill(0);
                self.is_wrong = true;
            }
            Fault::Repeats => {
                if let Some((place, holds)) = self.repeats.pop() {
                    self.is_wrong |= self.kept[place as usize] != holds;
                    self.kept[place as usize] = holds;
                }
            }
            _ => {}
        }
    }

    // All that is on its way arrives, and nothing keeps a place that no page has.
    fn end(mut self) -> Result<Met, Lost> {
        while !self.asked.is_empty() {
            self.answer()?;
        }
        while !self.acknowledged.is_empty() {
            self.give_frame();
        }
        assert_eq!(self.blade.under_way(), (0, 0));
        let far = self.pages.values().filter(|page| page.state == State::Far).count();
        assert_eq!(self.blade.count(), far);
        for slot in 0..SLOTS {
            self.free((slot, 0), PAGES);
        }
        // All places can be had again.
        for page in 0..u64::from(PLACES) {
            let left = self.blade.leave((0, page), content(1));
            assert!(matches!(left, Some(Leave::Sent(..))), "place {page} is lost");
        }
        assert!(
            self.blade.leave((0, u64::from(PLACES)), content(1)).is_none(),
            "there is one too many"
        );
        Ok(self.met)
    }
}

#[test]
fn no_page_is_lost_without_a_word() {
    let wanted: Option<u64> =
        std::env::var("AFAR_PAGE_OPERATIONS").ok().and_then(|count| count.parse().ok());
    let operations = wanted.unwrap_or(SEEDS * OPERATIONS);
    let (mut met, mut done, mut seed) = (Met::new(), 0, 0);
    let mut told = BTreeMap::<(Fault, &str), u64>::new();
    while done < operations {
        let fault = FAULTS[usize::try_from(seed % FAULTS.len() as u64).expect("few")];
        let mut world = World::new(seed, fault);
        let mut lost = None;
        for _ in 0..OPERATIONS {
            done += 1;
            if let Err(error) = world.step() {
                lost = Some(error);
                break;
            }
        }
        world.met.iter().for_each(|(&key, count)| *met.entry(key).or_default() += count);
        let lost = lost.or_else(|| world.end().err());
        if let Some(lost) = lost {
            assert_ne!(fault, Fault::Nothing, "seed {seed}: {lost}");
            let name = match lost {
                Lost::Gone => "gone",
                Lost::Stale => "stale",
                Lost::Misdirected(_) => "misdirected",
                Lost::Corrupt => "corrupt",
            };
            *told.entry((fault, name)).or_default() += 1;
        }
        seed += 1;
    }
    let least = done * MET_MIN / 1_000_000;
    for step in STEPS {
        for fault in FAULTS {
            let count = met.get(&(step, fault)).copied().unwrap_or(0);
            assert!(count >= least, "{step:?} met {fault:?} {count} times, not {least}");
        }
    }
    // Each is called what it is.
    for (fault, name) in
        [(Fault::Forgets, "gone"), (Fault::Drops, "stale"), (Fault::Misplaces, "misdirected")]
    {
        assert!(told.contains_key(&(fault, name)), "{fault:?} is never {name}: {told:?}");
    }
    println!("{done} operations of {seed} seeds; errors: {told:?}");
}
