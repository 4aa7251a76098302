//! A pool of memory for the data of commands: reused blocks, and limits on how much each may hold.
//!
//! Every association (an NVMe controller, an iSCSI session) has an account on each shard where it
//! has connections. Its share is reserved for it. Memory beyond the shares is lent first come,
//! first served as long as no account waits; accounts that wait get it by deficit round robin
//! (Shreedhar and Varghese, SIGCOMM 1995), and none overtakes them.
//!
//! Invariants:
//! - An account that holds nothing gets a block of any size at once.
//! - Blocks and unsent answers are held by one account each, until it releases them.

use std::collections::BTreeMap;

use sys::block::Block;

/// Bytes of the smallest block, and the number of block sizes, each twice the last.
const SMALLEST: usize = 4096;
const CLASSES: usize = 12;
/// The most credit that a waiting account can save: more than any command needs.
const CREDIT_MAX: usize = 32 << 20;

/// The owner of an account. The target assigns the numbers of controllers and sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// Connections that are not yet part of an association, and the target's own work.
    Nobody,
    /// The I/O queues of an NVMe controller.
    Controller(u16),
    /// An iSCSI session.
    Session(u16),
}

/// The account of a holder, as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account(usize);

impl Account {
    /// The account of [`Holder::Nobody`], which is always open.
    pub const NOBODY: Self = Self(0);
}

/// The limits of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Bytes that each account may always hold.
    pub share: usize,
    /// Bytes for all accounts together, beyond their shares.
    pub common: usize,
    /// The most bytes of spare blocks that stay allocated.
    pub keeps: usize,
}

/// Counters of an account since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Commands that were answered.
    pub commands: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// How often it had to wait for memory.
    pub waits: u64,
}

#[derive(Debug)]
struct Book {
    holder: Holder,
    /// Connections that use the account.
    uses: u32,
    held: usize,
    /// Bytes beyond its share that it may still get in this turn.
    credit: usize,
    /// The round in which it last had its turn.
    round: u64,
    /// Whether a request was refused and none was granted since.
    waits: bool,
    work: Work,
}

/// The memory pool of a shard.
#[derive(Debug)]
pub struct Pool {
    terms: Terms,
    spare: [Vec<Block>; CLASSES],
    /// Bytes of the spare blocks.
    kept: usize,
    /// All accounts, the indexes of the unused ones, and the account of each holder.
    books: Vec<Book>,
    free: Vec<usize>,
    numbers: BTreeMap<Holder, usize>,
    /// Bytes that accounts hold beyond their shares, in total.
    common: usize,
    /// Bytes held in total, as blocks or as unsent answers.
    held: usize,
    /// Whether an account waits, so that common memory is lent by turns.
    in_turn: bool,
    round: u64,
    /// Whether a waiting account might now be lent memory.
    has_room: bool,
    /// Whether an account was refused only for lack of credit, which another round grants.
    lacks_credit: bool,
    refusals: u64,
}

impl Pool {
    /// A pool with nothing lent.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        let mut pool = Self {
            terms,
            spare: [const { Vec::new() }; CLASSES],
            kept: 0,
            books: Vec::new(),
            free: Vec::new(),
            numbers: BTreeMap::new(),
            common: 0,
            held: 0,
            in_turn: false,
            round: 0,
            has_room: false,
            lacks_credit: false,
            refusals: 0,
        };
        assert_eq!(pool.open(Holder::Nobody), Account::NOBODY);
        pool
    }

    /// Opens the account of `holder`, or adds a user to it.
    pub fn open(&mut self, holder: Holder) -> Account {
        if let Some(number) = self.numbers.get(&holder) {
            self.books[*number].uses += 1;
            return Account(*number);
        }
        let book = Book {
            holder,
            uses: 1,
            held: 0,
            credit: 0,
            round: 0,
            waits: false,
            work: Work::default(),
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.books[number] = book;
                number
            }
            None => {
                self.books.push(book);
                self.books.len() - 1
            }
        };
        self.numbers.insert(holder, number);
        Account(number)
    }

    /// Removes a user. The last one, who must hold nothing, closes the account.
    pub fn close(&mut self, Account(number): Account) {
        let book = &mut self.books[number];
        book.uses -= 1;
        if book.uses == 0 {
            self.numbers.remove(&book.holder);
            self.free.push(number);
        }
    }

    /// Counts an answered command of an account that has moved `bytes`.
    pub fn note(&mut self, Account(number): Account, bytes: u32) {
        let work = &mut self.books[number].work;
        work.commands += 1;
        work.bytes += u64::from(bytes);
    }

    /// The counters of an account, and the bytes that it holds.
    pub fn work(&self, Account(number): Account) -> (Work, u64) {
        let book = &self.books[number];
        (book.work, book.held as u64)
    }

    /// Whether the account has a single user.
    pub fn has_one_user(&self, Account(number): Account) -> bool {
        self.books[number].uses == 1
    }

    /// Lends a block of at least `bytes`, with any contents; `None` if the account has to wait.
    pub fn lend(&mut self, account: Account, bytes: usize) -> Option<Block> {
        let size = size(bytes);
        if !self.may_hold(account, size) {
            self.books[account.0].waits = true;
            self.books[account.0].work.waits += 1;
            self.in_turn = true;
            self.refusals += 1;
            return None;
        }
        let book = &mut self.books[account.0];
        book.credit = book.credit.saturating_sub(size);
        book.waits = false;
        Some(self.lend_anyway(account, bytes))
    }

    // Returns whether an account may hold `more` bytes now.
    fn may_hold(&mut self, account: Account, more: usize) -> bool {
        let Terms { share, common, .. } = self.terms;
        let book = &self.books[account.0];
        if book.held == 0 || book.held + more <= share {
            return true;
        }
        let beyond = beyond(book.held + more, share) - beyond(book.held, share);
        let has_room = self.common + beyond <= common;
        let has_credit = !self.in_turn || book.credit >= more;
        if has_room && !has_credit {
            (self.lacks_credit, self.has_room) = (true, true);
        }
        has_room && has_credit
    }

    /// Lends a block without limits, for data that is bounded elsewhere.
    pub fn lend_anyway(&mut self, account: Account, bytes: usize) -> Block {
        let class = class(bytes);
        let block = match self.spare.get_mut(class).and_then(Vec::pop) {
            Some(block) => {
                self.kept -= block.len();
                block
            }
            None => Block::new(size(bytes)),
        };
        self.hold(account, 0, block.len());
        block
    }

    /// Takes a block back from `account`.
    pub fn give(&mut self, account: Account, block: Block) {
        self.hold(account, block.len(), 0);
        let fits = self.kept + block.len() <= self.terms.keeps;
        let class = class(block.len());
        if let Some(spare) = self.spare.get_mut(class)
            && fits
            && block.len() == SMALLEST << class
        {
            self.kept += block.len();
            spare.push(block);
        }
    }

    /// Changes the bytes that an account holds: `after` instead of `before`.
    pub fn hold(&mut self, account: Account, before: usize, after: usize) {
        let share = self.terms.share;
        let book = &mut self.books[account.0];
        let old = beyond(book.held, share);
        book.held = (book.held + after).saturating_sub(before);
        let new = beyond(book.held, share);
        self.common = (self.common + new).saturating_sub(old);
        self.held = (self.held + after).saturating_sub(before);
        self.has_room |= after < before && self.in_turn;
    }

    /// Returns whether a waiting account may now get memory, and resets that.
    pub const fn take_room(&mut self) -> bool {
        std::mem::replace(&mut self.has_room, false)
    }

    /// Begins a round, in which every waiting account has one turn.
    pub const fn begin_round(&mut self) {
        self.round += 1;
        self.lacks_credit = false;
    }

    /// Gives an account its turn: credit for one more share of common memory, once in a round.
    /// Unused credit lasts only while the account waits.
    pub fn turn(&mut self, Account(number): Account) {
        let quantum = self.terms.share.max(SMALLEST);
        let round = self.round;
        let book = &mut self.books[number];
        if book.round != round {
            let saved = if book.waits { book.credit } else { 0 };
            book.round = round;
            book.credit = (saved + quantum).min(CREDIT_MAX);
        }
    }

    /// Whether any memory is left for an account, in its share or in common.
    pub fn has_any_for(&self, Account(number): Account) -> bool {
        let Terms { share, common, .. } = self.terms;
        self.books[number].held < share.max(1) || self.common < common
    }

    /// Whether another round would grant a request that this one refused.
    pub const fn needs_round(&self) -> bool {
        self.lacks_credit
    }

    /// Sets whether any account still waits; if none does, memory is lent first come, first served.
    pub const fn settle(&mut self, anybody_waits: bool) {
        self.in_turn = anybody_waits;
    }

    /// Bytes that each account may always hold.
    pub const fn share(&self) -> usize {
        self.terms.share
    }

    /// Bytes that all accounts hold.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// How often any account had to wait.
    pub const fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Frees spare blocks and unused accounts at the end of the list.
    pub fn shrink(&mut self) {
        self.spare = [const { Vec::new() }; CLASSES];
        self.kept = 0;
        while self.books.last().is_some_and(|book| book.uses == 0) {
            self.books.pop();
        }
        let count = self.books.len();
        self.free.retain(|number| *number < count);
        self.books.shrink_to_fit();
        self.free.shrink_to_fit();
    }
}

// Bytes of `held` beyond `share`.
const fn beyond(held: usize, share: usize) -> usize {
    held.saturating_sub(share)
}

// The size class of a block of at least `bytes`.
fn class(bytes: usize) -> usize {
    let pages = bytes.div_ceil(SMALLEST).next_power_of_two();
    pages.trailing_zeros() as usize
}

// The size of the block that is lent for `bytes`.
fn size(bytes: usize) -> usize {
    (SMALLEST << class(bytes)).max(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn pool(share: usize, common: usize) -> Pool {
        Pool::new(Terms { share, common, keeps: 8 << 10 })
    }

    fn two(pool: &mut Pool) -> [Account; 2] {
        [1, 2].map(|id| pool.open(Holder::Controller(id)))
    }

    #[test]
    fn what_is_lent_is_used_again() {
        let mut pool = pool(16 << 10, 0);
        let [one, _] = two(&mut pool);
        let first = pool.lend(one, 5000).expect("it is its share");
        assert_eq!(first.len(), 8192);
        let place = first.as_ptr();
        let second = pool.lend(one, 4096).expect("it is its share");
        assert!(pool.lend(one, 4097).is_none(), "12 KiB are lent, and 8 are asked for");
        pool.give(one, first);
        let again = pool.lend(one, 8000).expect("it is its share");
        assert_eq!(again.as_ptr(), place);
        pool.give(one, again);
        pool.give(one, second);
        assert_eq!(pool.kept, 8 << 10, "the second is not kept");
        assert_eq!(pool.held(), 0);
        assert_eq!(pool.lend(one, MIB).expect("who has nothing gets it").len(), MIB);
    }

    #[test]
    fn what_one_holds_takes_nothing_of_the_share_of_another() {
        let mut pool = pool(MIB, 4 * MIB);
        let [greedy, other] = two(&mut pool);
        let taken: Vec<_> = std::iter::from_fn(|| pool.lend(greedy, MIB)).collect();
        assert_eq!(taken.len(), 5, "its share and all that is common");
        let own: Vec<_> = std::iter::from_fn(|| pool.lend(other, 4096)).collect();
        assert_eq!(own.len(), 256, "a share in small pieces");
    }

    #[test]
    fn an_answer_is_held_until_it_has_gone() {
        let mut pool = pool(MIB, 0);
        let [one, other] = two(&mut pool);
        let block = pool.lend(one, MIB).expect("it is its share");
        pool.give(one, block);
        pool.hold(one, 0, MIB + 24);
        assert!(pool.lend(one, 4096).is_none());
        assert!(pool.lend(other, 4096).is_some());
        pool.hold(one, MIB + 24, 0);
        assert!(pool.take_room() && pool.lend(one, 4096).is_some());
    }

    // Gives every account that wants more its turn, until that gives nobody anything.
    fn rounds(pool: &mut Pool, wanting: &mut [(Account, usize, Vec<Block>)]) {
        loop {
            pool.begin_round();
            let before = pool.held();
            for (account, bytes, blocks) in &mut *wanting {
                pool.turn(*account);
                while let Some(block) = pool.lend(*account, *bytes) {
                    blocks.push(block);
                }
            }
            if pool.held() == before && !pool.needs_round() {
                return;
            }
        }
    }

    #[test]
    fn those_that_wait_get_as_many_bytes_each() {
        let mut pool = pool(MIB, 64 * MIB);
        let [large, small] = two(&mut pool);
        // Somebody waits, so nobody is lent to out of turn.
        pool.settle(true);
        let mut wanting = [(large, 4 * MIB, Vec::new()), (small, 64 << 10, Vec::new())];
        rounds(&mut pool, &mut wanting);
        let bytes =
            wanting.each_ref().map(|(_, _, blocks)| blocks.iter().map(|one| one.len()).sum());
        let [large, small]: [usize; 2] = bytes;
        assert!(large + small > 56 * MIB, "{large} and {small}");
        assert!(large.abs_diff(small) <= 8 * MIB, "{large} and {small}");
    }

    #[test]
    fn nobody_overtakes_those_that_wait() {
        let mut pool = pool(MIB, 2 * MIB);
        let [first, second] = two(&mut pool);
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.lend(first, MIB)).collect();
        let own = pool.lend(second, MIB).expect("its share");
        assert!(pool.lend(second, MIB).is_none(), "it waits");
        pool.give(first, taken.pop().expect("it has some"));
        assert!(pool.lend(first, MIB).is_none(), "it is not its turn");
        pool.begin_round();
        pool.turn(second);
        let next = pool.lend(second, MIB).expect("it is its turn");
        pool.settle(false);
        pool.give(second, own);
        pool.give(second, next);
        assert!(pool.lend(first, MIB).is_some(), "nobody waits");
    }

    #[test]
    fn an_account_is_one_for_all_that_use_it_and_ends_with_the_last() {
        let mut pool = pool(MIB, 0);
        let one = pool.open(Holder::Session(1));
        assert_eq!(pool.open(Holder::Session(1)), one);
        pool.close(one);
        assert_eq!(pool.open(Holder::Session(1)), one);
        pool.close(one);
        pool.close(one);
        assert_eq!(pool.open(Holder::Controller(9)), one, "its place is free");
    }
}
