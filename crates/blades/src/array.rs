//! Several blades as one: places are striped over all of them, and each place is on as many as
//! there are to be copies.
//!
//! ```text
//! three blades, two copies; a number is a stripe of places
//!           blade 0   blade 1   blade 2
//!   row 0      0         1         2       first copies
//!   row 1      2         0         1       second copies
//!   row 2      3         4         5
//! ```
//!
//! # Laws
//!
//! * A page has been written when every blade that is in and has a copy of it has acknowledged it,
//!   and at least one has.
//! * A blade that fails once, or has once lost what it had acknowledged, is out: no further request
//!   goes to it. So each blade that is in has every page that was written.
//! * A read goes to the copy whose blade has least to do, and to another one if that blade goes
//!   out. It fails only when no copy is left.
//!
//! Copies on a blade that is out are not replaced on another: the run goes on with fewer.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;

use paging::blade::Token;

use super::blade::{Answer, Blade, PAGE_BYTES, Wanted};

/// Consecutive places on one blade: 128 KiB.
const STRIPE: u32 = 32;

/// One of several blades.
struct Member {
    name: String,
    blade: Box<dyn Blade>,
    under_way: usize,
    is_out: bool,
}

/// A set of members, one bit for each.
type Set = u64;

#[derive(Debug, Clone, Copy)]
enum Transfer {
    /// A write: the members that have not acknowledged it yet, and how many have.
    Out { awaited: Set, kept: u32 },
    /// A read of `place` from member `of`, after those in `tried`.
    In { place: u32, of: usize, tried: Set },
}

/// See the module's description.
pub struct BladeArray {
    members: Vec<Member>,
    copies: usize,
    pages: u32,
    transfers: BTreeMap<Token, Transfer>,
    /// The page that was answered last (transfer, place, member), which the caller may distrust.
    last: Option<(Token, u32, usize)>,
    answers: VecDeque<Answer>,
    news: Vec<String>,
}

/// Why blades cannot form an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// Each copy needs a blade of its own.
    #[error("{copies} copies of each page need as many blades, and {blades} are named")]
    Copies {
        /// Copies of each page.
        copies: usize,
        /// How many blades there are.
        blades: usize,
    },
    /// More than [`BladeArray::MEMBERS_MAX`].
    #[error("{0} blades are named; 64 are the most")]
    Members(usize),
    /// The smallest blade has no room for a stripe.
    #[error("the smallest blade has {0} pages of 4 KiB, too few for a stripe of each copy")]
    Small(u32),
}

impl BladeArray {
    /// Most blades of an array.
    pub const MEMBERS_MAX: usize = Set::BITS as usize;

    /// An array of `blades`, each with the name that messages use, and `copies` of each page. Of a
    /// blade that is larger than the smallest, the rest is unused.
    ///
    /// # Errors
    /// When there are too few blades for the copies, too many, or one is too small.
    pub fn new(blades: Vec<(String, Box<dyn Blade>)>, copies: usize) -> Result<Self, ArrayError> {
        if copies == 0 || copies > blades.len() {
            return Err(ArrayError::Copies { copies, blades: blades.len() });
        }
        if blades.len() > Self::MEMBERS_MAX {
            return Err(ArrayError::Members(blades.len()));
        }
        let least = blades.iter().map(|(_, blade)| blade.pages()).min().unwrap_or(0);
        let stripes = u64::from(least / STRIPE) / copies as u64 * blades.len() as u64;
        let pages =
            u32::try_from(stripes * u64::from(STRIPE)).unwrap_or(u32::MAX / STRIPE * STRIPE);
        if pages == 0 {
            return Err(ArrayError::Small(least));
        }
        let member = |(name, blade)| Member { name, blade, under_way: 0, is_out: false };
        Ok(Self {
            members: blades.into_iter().map(member).collect(),
            copies,
            pages,
            transfers: BTreeMap::new(),
            last: None,
            answers: VecDeque::new(),
            news: Vec::new(),
        })
    }

    // The member that has copy number `copy` of a place, and the place on its blade.
    fn seat(&self, place: u32, copy: usize) -> (usize, u32) {
        let (stripe, rest) = (place / STRIPE, place % STRIPE);
        let count = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let copies = u32::try_from(self.copies).unwrap_or(u32::MAX);
        let shift = u32::try_from(copy).unwrap_or(u32::MAX);
        let row = stripe / count * copies + shift;
        (((stripe + shift) % count) as usize, row * STRIPE + rest)
    }

    // The copies of a place on members that are in: member, and place on its blade.
    fn seats(&self, place: u32) -> Vec<(usize, u32)> {
        let all = (0..self.copies).map(|copy| self.seat(place, copy));
        all.filter(|&(member, _)| !self.members[member].is_out).collect()
    }

    // Answers a transfer with an error.
    fn fails(&mut self, token: Token, why: String) {
        self.answers.push_back(Answer { token, result: Err(why) });
    }

    // Reads from the copy outside of `tried` whose blade has least to do. Returns false if there is
    // none.
    fn ask(&mut self, token: Token, (place, wanted): (u32, Wanted), tried: Set) -> bool {
        let untried = |&(member, _): &(usize, u32)| tried & bit(member) == 0;
        let seats = self.seats(place).into_iter().filter(untried);
        let Some((member, row)) = seats.min_by_key(|&(member, _)| self.members[member].under_way)
        else {
            return false;
        };
        self.transfers.insert(token, Transfer::In { place, of: member, tried });
        self.members[member].under_way += 1;
        self.members[member].blade.read(token, row, wanted);
        true
    }

    // Acts on a member's answer. Returns the answer of the array; `None` if others are awaited.
    fn take(&mut self, member: usize, Answer { token, result }: Answer) -> Option<Answer> {
        self.members[member].under_way = self.members[member].under_way.saturating_sub(1);
        if self.members[member].is_out {
            return None;
        }
        match result {
            Err(why) => {
                self.put_out(member, &why);
                None
            }
            Ok(page) => match self.transfers.get_mut(&token)? {
                Transfer::Out { awaited, kept } => {
                    *awaited &= !bit(member);
                    *kept += 1;
                    let is_done = *awaited == 0;
                    is_done.then(|| {
                        self.transfers.remove(&token);
                        Answer { token, result: Ok(None) }
                    })
                }
                &mut Transfer::In { place, .. } => {
                    self.transfers.remove(&token);
                    self.last = Some((token, place, member));
                    Some(Answer { token, result: Ok(page) })
                }
            },
        }
    }

    // Puts a member out: its open transfers go on without it.
    fn put_out(&mut self, member: usize, why: &str) {
        if self.members[member].is_out {
            return;
        }
        self.members[member].is_out = true;
        if self.copies > 1 {
            let name = &self.members[member].name;
            self.news.push(format!("{name} is out, and the run goes on without it: {why}"));
        }
        let concerns = |transfer: &Transfer| match transfer {
            Transfer::Out { awaited, .. } => awaited & bit(member) != 0,
            Transfer::In { of, .. } => *of == member,
        };
        let all = self.transfers.iter().filter(|(_, transfer)| concerns(transfer));
        let all: Vec<(Token, Transfer)> =
            all.map(|(&token, &transfer)| (token, transfer)).collect();
        for (token, transfer) in all {
            self.goes_on(token, transfer, member, why);
        }
    }

    // Continues a transfer without a member that is out: by another copy, or as an error.
    fn goes_on(&mut self, token: Token, transfer: Transfer, without: usize, why: &str) {
        match transfer {
            Transfer::Out { awaited, kept } => {
                let awaited = awaited & !bit(without);
                if awaited != 0 {
                    self.transfers.insert(token, Transfer::Out { awaited, kept });
                    return;
                }
                self.transfers.remove(&token);
                if kept == 0 {
                    return self.fails(token, why.to_owned());
                }
                self.answers.push_back(Answer { token, result: Ok(None) });
            }
            Transfer::In { place, tried, .. } => {
                // The read has waited already, so it is urgent.
                if !self.ask(token, (place, Wanted::Now), tried | bit(without)) {
                    self.transfers.remove(&token);
                    self.fails(token, why.to_owned());
                }
            }
        }
    }

    // The message for a place of which no copy is left.
    fn none_left(&self, place: u32) -> String {
        let names = (0..self.copies).map(|copy| &*self.members[self.seat(place, copy).0].name);
        let names: Vec<&str> = names.collect();
        format!("no blade is left that has the page: {} out", names.join(" and "))
    }
}

// The set of one member.
const fn bit(member: usize) -> Set {
    1 << member
}

impl Blade for BladeArray {
    fn pages(&self) -> u32 {
        self.pages
    }

    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]) {
        let seats = self.seats(place);
        if seats.is_empty() {
            let why = self.none_left(place);
            return self.fails(token, why);
        }
        let awaited = seats.iter().fold(0, |set, &(member, _)| set | bit(member));
        self.transfers.insert(token, Transfer::Out { awaited, kept: 0 });
        for (member, row) in seats {
            self.members[member].under_way += 1;
            self.members[member].blade.write(token, row, bytes);
        }
    }

    fn read(&mut self, token: Token, place: u32, wanted: Wanted) {
        if !self.ask(token, (place, wanted), 0) {
            let why = self.none_left(place);
            self.fails(token, why);
        }
    }

    fn release(&mut self, places: u32) {
        let rows = places.div_ceil(STRIPE) / u32::try_from(self.members.len()).unwrap_or(1) + 1;
        let rows = rows * u32::try_from(self.copies).unwrap_or(1) * STRIPE;
        for member in self.members.iter_mut().filter(|member| !member.is_out) {
            member.blade.release(rows.min(member.blade.pages()));
        }
    }

    fn flush(&mut self) {
        self.members.iter_mut().for_each(|member| member.blade.flush());
    }

    fn next(&mut self) -> Option<Answer> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Some(answer);
            }
            let mut is_quiet = true;
            for member in 0..self.members.len() {
                while let Some(answer) = self.members[member].blade.next() {
                    is_quiet = false;
                    if let Some(answer) = self.take(member, answer) {
                        return Some(answer);
                    }
                }
            }
            if is_quiet && self.answers.is_empty() {
                return None;
            }
        }
    }

    fn distrusts(&mut self, token: Token, why: &str) -> bool {
        let Some((_, place, member)) = self.last.take().filter(|last| last.0 == token) else {
            return false;
        };
        let why = format!("--far {}: {why}", self.members[member].name);
        self.put_out(member, &why);
        self.ask(token, (place, Wanted::Now), bit(member))
    }

    fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    fn bells(&self) -> Vec<BorrowedFd<'_>> {
        self.members.iter().flat_map(|member| member.blade.bells()).collect()
    }

    fn acknowledge(&self) {
        self.members.iter().for_each(|member| member.blade.acknowledge());
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.members.iter().filter_map(|member| member.blade.deadline_ns()).min()
    }
}

#[cfg(test)]
mod tests;
