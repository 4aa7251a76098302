//! Copying a process's memory for its child, a piece at a time.
//!
//! ```text
//! loop: piece -> copier -> done -> next piece -> ...     until nothing is left: the child goes on
//! parent touches or frees what is left -> that first
//! ```
//!
//! DESIGN NOTES
//!
//! * A separate thread copies (`copier`); only the child waits, and who frees much of the rest.
//! * Pages that the parent is about to touch or free are copied first. See `cut` for how it is kept
//!   from changing the rest. A page that the copier has at that moment may be read before or after
//!   the change; so its old contents are kept, and written once the copier is done.
//! * The copy has handles of its own on both memory files, so the parent may end meanwhile.

mod steps;

use std::sync::Arc;
use std::time::Duration;

use paging::regions::PAGE;
use paging::todo::Todo;
use sys::memory::MemoryFile;

use super::RunError;
use super::arena::Arena;
use super::copier::{Copier, Piece};

/// Bytes of a piece: some 100 µs.
const PIECE: u64 = 256 << 10;

/// The least time between two steps of a thaw.
pub(crate) const REST: Duration = Duration::from_micros(20);

/// A copy under way.
pub(crate) struct Copy {
    /// Slot of the process that is copied; `None` once it has ended.
    pub(crate) parent: Option<usize>,
    /// The process that gets the copy.
    pub(crate) child: u32,
    number: u64,
    source: Arc<MemoryFile>,
    target: Arc<MemoryFile>,
    todo: Todo,
    /// The ranges of the piece that the copier has.
    away: Vec<(u64, u64)>,
    /// Pages of that piece that may change meanwhile, with their old contents; `None` for a hole.
    kept: Vec<(u64, Option<Vec<u8>>)>,
    /// The range that a thread waits for.
    wanted: Option<(u64, u64)>,
}

impl Copy {
    /// A copy of the managed memory of `parent` to its child `child`, with a unique `number`.
    pub(crate) fn new(parent: &Arena, child: &Arena, number: u64) -> Result<Self, RunError> {
        let (source, target) = (parent.memory.share()?, child.memory.share()?);
        let parent = Some(parent.slot);
        Ok(Self { parent, ..Self::of((source, target), &child.managed(), child.tgid, number) })
    }

    // A copy of `ranges` between two memory files.
    fn of(
        (source, target): (MemoryFile, MemoryFile),
        ranges: &[(u64, u64)],
        child: u32,
        number: u64,
    ) -> Self {
        let mut todo = Todo::default();
        ranges.iter().for_each(|&(start, end)| todo.add(start, end));
        Self {
            parent: None,
            child,
            number,
            source: Arc::new(source),
            target: Arc::new(target),
            todo,
            away: Vec::new(),
            kept: Vec::new(),
            wanted: None,
        }
    }

    /// Takes a range out of what is to be copied.
    pub(crate) fn skip(&mut self, start: u64, end: u64) {
        self.todo.remove(start, end);
    }

    /// Copies what is left of a range, at once.
    pub(crate) fn preserve(&mut self, start: u64, end: u64) -> Result<(), RunError> {
        for (from, to) in self.todo.within(start, end) {
            self.source.copy_to(&self.target, from, from, to - from)?;
            self.keep(from, to)?;
        }
        self.todo.remove(start, end);
        Ok(())
    }

    // Keeps the old contents of those pages of a range that the copier has.
    fn keep(&mut self, start: u64, end: u64) -> Result<(), RunError> {
        for &(first, last) in &self.away {
            let mut page = first.max(start);
            while page < last.min(end) {
                let is_there = self.source.next_data(page, page + PAGE)?.is_some();
                let mut bytes = is_there.then(|| vec![0; 4096]);
                if let Some(bytes) = &mut bytes {
                    self.source.read_at(bytes, page)?;
                }
                self.kept.push((page, bytes));
                page += PAGE;
            }
        }
        Ok(())
    }

    // The next piece, which is then the copier's; `None` if nothing is left to copy.
    fn next_piece(&mut self) -> Result<Option<Piece>, RunError> {
        let mut left = PIECE;
        while let Some((start, end)) = self.next_left(left) {
            let Some((from, to)) = self.source.next_populated(start, end, left)? else {
                self.todo.remove(start, end);
                continue;
            };
            self.todo.remove(start, from);
            self.away.push((from, to));
            left -= to - from;
        }
        let (source, target) = (Arc::clone(&self.source), Arc::clone(&self.target));
        let piece = Piece { number: self.number, source, target, ranges: self.away.clone() };
        Ok((!self.away.is_empty()).then_some(piece))
    }

    // The next range for a piece that lacks `bytes`, first where a thread waits. `None` at the end.
    fn next_left(&self, bytes: u64) -> Option<(u64, u64)> {
        let behind = self.away.last().map_or(0, |&(_, end)| end);
        let first = self.wanted.and_then(|(start, wanted_end)| {
            let (from, to) = self.todo.next(start.max(behind))?;
            (from < wanted_end).then_some((from, to.min(wanted_end)))
        });
        let next = first.or_else(|| self.todo.next(behind));
        next.filter(|_| bytes > 0)
    }

    // Writes the kept pages after the copier is done with its piece. Returns the piece's ranges.
    fn settle(&mut self) -> Result<Vec<(u64, u64)>, RunError> {
        for (page, bytes) in std::mem::take(&mut self.kept) {
            match bytes {
                Some(bytes) => self.target.write_at(&bytes, page)?,
                None => self.target.punch(page, PAGE)?,
            }
        }
        let done = std::mem::take(&mut self.away);
        done.iter().for_each(|&(start, end)| self.todo.remove(start, end));
        Ok(done)
    }
}

/// All copies under way.
#[derive(Default)]
pub(crate) struct Copies {
    under_way: Vec<Copy>,
    /// Started with the first copy.
    copier: Option<Copier>,
    /// Slots of processes whose copies are over but whose memory still thaws.
    pub(crate) thawing: Vec<usize>,
}

impl Copies {
    pub(crate) fn push(&mut self, copy: Copy) {
        self.under_way.push(copy);
    }

    /// Resets the copier's bell.
    pub(crate) fn acknowledge(&self) {
        self.copier.iter().for_each(|copier| copier.bell().acknowledge());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = PIECE / PAGE;

    // Three pieces' worth of pages of which every second is there, and holds its number.
    fn begin() -> (MemoryFile, MemoryFile, Copy) {
        let file = || MemoryFile::new("afar-test", 6 * PIECE).expect("there is memory");
        let (parent, child) = (file(), file());
        for page in (0..6 * PAGES).step_by(2) {
            write(&parent, page, page);
        }
        let share = |file: &MemoryFile| file.share().expect("there are descriptors");
        let copy = Copy::of((share(&parent), share(&child)), &[(0, 6 * PIECE)], 1, 0);
        (parent, child, copy)
    }

    fn write(memory: &MemoryFile, page: u64, value: u64) {
        memory.write_at(&value.to_ne_bytes(), page * PAGE).expect("there is memory");
    }

    fn read(memory: &MemoryFile, page: u64) -> u64 {
        let mut bytes = [0; 8];
        memory.read_at(&mut bytes, page * PAGE).expect("it is in the file");
        u64::from_ne_bytes(bytes)
    }

    fn finish(copy: &mut Copy) {
        while let Some(piece) = copy.next_piece().expect("there is memory") {
            piece.copy().expect("there is memory");
            copy.settle().expect("there is memory");
        }
    }

    #[test]
    fn what_changes_while_the_copier_has_it_is_copied_as_it_was() {
        let (parent, child, mut copy) = begin();
        let piece = copy.next_piece().expect("there is memory").expect("nothing is copied");
        // Pages of the piece, one that is not there, one of later.
        for page in [0, 6, 7, 5 * PAGES] {
            for value in [1000, 2000] {
                copy.preserve(page * PAGE, (page + 1) * PAGE).expect("there is memory");
                write(&parent, page, value + page);
            }
        }
        piece.copy().expect("there is memory");
        assert_eq!(read(&child, 6), 2006, "the copier came too late");
        copy.settle().expect("there is memory");
        finish(&mut copy);
        for page in 0..6 * PAGES {
            assert_eq!(read(&child, page), if page % 2 == 0 { page } else { 0 }, "page {page}");
        }
        // Where nothing was, nothing is.
        assert_eq!(child.allocated_bytes().expect("it is there"), 3 * PIECE);
    }

    #[test]
    fn what_somebody_waits_for_is_copied_first() {
        let (_parent, child, mut copy) = begin();
        copy.wanted = Some((4 * PIECE, 5 * PIECE));
        let piece = copy.next_piece().expect("there is memory").expect("nothing is copied");
        piece.copy().expect("there is memory");
        copy.settle().expect("there is memory");
        assert_eq!(read(&child, 4 * PAGES), 4 * PAGES);
        assert!(copy.todo.within(4 * PIECE, 5 * PIECE).is_empty());
        finish(&mut copy);
        assert_eq!((read(&child, 2), read(&child, 6 * PAGES - 2)), (2, 6 * PAGES - 2));
    }
}
