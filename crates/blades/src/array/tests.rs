use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;

use super::*;
use crate::blade::Page;

const PAGES: u32 = 4 * STRIPE;

/// What the test sees of a blade, and does to it.
#[derive(Default)]
struct Inside {
    kept: BTreeMap<u32, Page>,
    asked: Vec<(Token, u32, Option<Page>)>,
    ready: VecDeque<Answer>,
    is_gone: bool,
    drops_writes: bool,
    reads: u32,
}

impl Inside {
    // Does one of the things it was asked for, whichever.
    fn work(&mut self, which: usize) {
        if self.asked.is_empty() {
            return;
        }
        let (token, row, page) = self.asked.swap_remove(which % self.asked.len());
        let result = match page {
            _ if self.is_gone => Err("it is gone".to_owned()),
            Some(page) => {
                if !self.drops_writes {
                    self.kept.insert(row, page);
                }
                Ok(None)
            }
            None => {
                self.reads += 1;
                Ok(Some(self.kept.get(&row).cloned().unwrap_or_else(|| page_of(0))))
            }
        };
        self.ready.push_back(Answer { token, result });
    }
}

#[derive(Clone, Default)]
struct Fake {
    inside: Arc<Mutex<Inside>>,
}

impl Fake {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blade for Fake {
    fn pages(&self) -> u32 {
        PAGES
    }

    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]) {
        assert!(place < PAGES, "place {place} is beyond the blade");
        self.inside().asked.push((token, place, Some(Arc::new(*bytes))));
    }

    fn read(&mut self, token: Token, place: u32, _wanted: Wanted) {
        assert!(place < PAGES, "place {place} is beyond the blade");
        self.inside().asked.push((token, place, None));
    }

    fn release(&mut self, places: u32) {
        self.inside().kept.retain(|&place, _| place >= places);
    }

    fn next(&mut self) -> Option<Answer> {
        self.inside().ready.pop_front()
    }
}

fn page_of(byte: u8) -> Page {
    Arc::new([byte; PAGE_BYTES])
}

/// An array of fakes, and what was written through it.
struct World {
    fakes: Vec<Fake>,
    array: BladeArray,
    token: Token,
    written: BTreeMap<u32, u8>,
    /// Writes and reads under way: places, and what is written.
    out: BTreeMap<Token, (u32, u8)>,
    into: BTreeMap<Token, u32>,
}

/// How a transfer ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Written,
    Read,
    Failed(String),
}

impl World {
    fn new(blades: usize, copies: usize) -> Self {
        let fakes: Vec<Fake> = (0..blades).map(|_| Fake::default()).collect();
        let named = fakes.iter().enumerate();
        let members = named.map(|(number, fake)| {
            let blade: Box<dyn Blade> = Box::new(fake.clone());
            (format!("blade-{number}"), blade)
        });
        let array = BladeArray::new(members.collect(), copies).expect("they make an array");
        let (out, into) = (BTreeMap::new(), BTreeMap::new());
        Self { fakes, array, token: 0, written: BTreeMap::new(), out, into }
    }

    // Whether nothing that names a place is under way.
    fn is_free(&self, place: u32) -> bool {
        self.out.values().all(|one| one.0 != place) && self.into.values().all(|&one| one != place)
    }

    fn write(&mut self, place: u32, byte: u8) {
        self.token += 1;
        self.out.insert(self.token, (place, byte));
        self.array.write(self.token, place, &page_of(byte));
    }

    fn read(&mut self, place: u32) {
        self.token += 1;
        self.into.insert(self.token, place);
        self.array.read(self.token, place, Wanted::Now);
    }

    /// Takes all answers there are, and holds each against what was written.
    fn hear(&mut self) -> Vec<End> {
        let mut ends = Vec::new();
        while let Some(Answer { token, result }) = self.array.next() {
            match (self.out.remove(&token), result) {
                (Some(_), Err(why)) => ends.push(End::Failed(why)),
                (Some((place, byte)), Ok(page)) => {
                    assert!(page.is_none());
                    self.written.insert(place, byte);
                    ends.push(End::Written);
                }
                (None, Err(why)) => {
                    self.into.remove(&token).expect("it was asked");
                    ends.push(End::Failed(why));
                }
                (None, Ok(page)) => {
                    let place = self.into[&token];
                    let byte = self.written.get(&place).copied().unwrap_or(0);
                    if page.expect("a read has a page") == page_of(byte) {
                        self.into.remove(&token);
                        ends.push(End::Read);
                    } else if !self.array.distrusts(token, "it has lost the page") {
                        self.into.remove(&token);
                        ends.push(End::Failed("lost".to_owned()));
                    }
                }
            }
        }
        ends
    }

    /// Lets all blades do what they were asked for, until nothing is left.
    fn settle(&mut self) -> Vec<End> {
        let mut ends = self.hear();
        while self.fakes.iter().any(|fake| !fake.inside().asked.is_empty()) {
            self.fakes.iter().for_each(|fake| fake.inside().work(0));
            ends.extend(self.hear());
        }
        assert!(self.out.is_empty() && self.into.is_empty(), "a transfer has no end");
        ends
    }
}

#[test]
fn each_copy_of_each_place_has_a_seat_of_its_own() {
    for (blades, copies) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (5, 3), (3, 3)] {
        let world = World::new(blades, copies);
        let pages = world.array.pages();
        let count = u32::try_from(blades / copies).expect("few");
        assert!(pages >= PAGES * count / 2, "{blades} blades, {copies} copies: {pages} pages");
        let mut seats = std::collections::BTreeSet::new();
        for place in 0..pages {
            let all = world.array.seats(place);
            let on: std::collections::BTreeSet<usize> = all.iter().map(|seat| seat.0).collect();
            assert_eq!(on.len(), copies, "two copies of {place} are on one blade");
            for seat in all {
                assert!(seat.1 < PAGES && seats.insert(seat), "{seat:?} of {place}");
            }
        }
    }
}

#[test]
fn a_write_waits_for_every_copy() {
    let mut world = World::new(2, 2);
    world.write(7, 1);
    world.fakes[0].inside().work(0);
    assert_eq!(world.hear(), [], "one of two blades has it");
    world.fakes[1].inside().work(0);
    assert_eq!(world.hear(), [End::Written]);
}

#[test]
fn a_blade_that_is_gone_is_done_without() {
    let mut world = World::new(2, 2);
    world.write(7, 1);
    world.settle();
    world.fakes[0].inside().is_gone = true;
    // One that was under way, and some that come later.
    world.write(8, 2);
    assert_eq!(world.settle(), [End::Written]);
    assert!(world.array.news()[0].starts_with("blade-0 is out, and the run goes on without it"));
    for place in [7, 8] {
        world.read(place);
        assert_eq!(world.settle(), [End::Read]);
    }
    assert_eq!(world.fakes[0].inside().asked.len(), 0, "it is asked no more");
    world.fakes[1].inside().is_gone = true;
    world.read(7);
    assert_eq!(world.settle(), [End::Failed("it is gone".to_owned())]);
    world.read(7);
    let none = "no blade is left that has the page: blade-0 and blade-1 out";
    assert_eq!(world.settle(), [End::Failed(none.to_owned())]);
}

#[test]
fn a_blade_that_has_lost_a_page_is_not_believed_again() {
    let mut world = World::new(2, 2);
    (0..4).for_each(|place| world.write(place, 9));
    world.settle();
    // It has begun anew, and is empty.
    world.fakes[0].inside().kept.clear();
    for place in 0..4 {
        world.read(place);
        assert_eq!(world.settle(), [End::Read]);
    }
    assert_eq!(world.fakes[0].inside().reads, 1, "it was asked again");
    assert_eq!(world.array.news().len(), 1);
    assert_eq!(world.array.news().len(), 0, "it is told once");
}

#[test]
fn without_copies_the_first_loss_is_the_end() {
    let mut world = World::new(2, 1);
    world.write(0, 1);
    world.write(STRIPE, 2);
    world.settle();
    world.fakes[0].inside().is_gone = true;
    world.read(0);
    assert_eq!(world.settle(), [End::Failed("it is gone".to_owned())]);
    world.read(STRIPE);
    assert_eq!(world.settle(), [End::Read]);
    assert_eq!(world.array.news(), Vec::<String>::new());
}

#[test]
fn what_makes_no_array_is_refused() {
    let memory = |pages| -> (String, Box<dyn Blade>) {
        ("a".to_owned(), Box::new(crate::MemoryBlade::new(pages)))
    };
    let of = |blades, copies| BladeArray::new(blades, copies).err();
    let few = ArrayError::Copies { copies: 2, blades: 1 };
    assert_eq!(of(vec![memory(PAGES)], 2), Some(few));
    assert_eq!(of(vec![memory(PAGES), memory(40)], 2), Some(ArrayError::Small(40)));
    let many = (0..65).map(|_| memory(PAGES)).collect();
    assert_eq!(of(many, 1), Some(ArrayError::Members(65)));
}

/// What happens next: who, what, where.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32),
    Read(u32),
    Work(usize, usize),
}

fn steps(blades: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..2 * STRIPE).prop_map(Step::Write),
        4 => (0..2 * STRIPE).prop_map(Step::Read),
        8 => (0..blades, 0..64_usize).prop_map(|(who, which)| Step::Work(who, which)),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    /// Whatever one blade does (it is gone, empty, forgets what it acknowledges), and in whichever
    /// order all of them answer: no transfer fails, and every page is what was written last.
    #[test]
    fn one_blade_of_several_does_no_harm(
        steps in steps(3),
        bad in 0..3_usize,
        fault in 0..3_u8,
        at in 0..100_usize,
    ) {
        let mut world = World::new(3, 2);
        let mut byte = 0;
        let mut ends = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            if number == at {
                let mut inside = world.fakes[bad].inside();
                match fault {
                    0 => inside.is_gone = true,
                    1 => inside.kept.clear(),
                    _ => inside.drops_writes = true,
                }
            }
            match step {
                Step::Write(place) if world.is_free(place) => {
                    byte = byte % 250 + 1;
                    world.write(place, byte);
                }
                Step::Read(place) if world.out.values().all(|one| one.0 != place) => {
                    world.read(place);
                }
                Step::Write(_) | Step::Read(_) => {}
                Step::Work(who, which) => world.fakes[who].inside().work(which),
            }
            ends.extend(world.hear());
        }
        ends.extend(world.settle());
        let failed = ends.iter().find(|end| matches!(end, End::Failed(_)));
        prop_assert!(failed.is_none(), "{failed:?}");
    }
}
