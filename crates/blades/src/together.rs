//! Delayed transfers, for which no thread waits: neighbours on a disk are sent as one request.

use paging::blade::Token;

use super::blade::PAGE_BYTES;

/// Most pages of a request: 128 KiB, which most controllers take as one command.
const PAGES_MAX: usize = 32;

/// A delayed transfer.
struct One {
    token: Token,
    place: u32,
    /// The page to write; `None` for a read.
    page: Option<Box<[u8; PAGE_BYTES]>>,
}

/// One request for consecutive pages of a disk: a write if there is data, else a read.
#[derive(Debug, PartialEq, Eq)]
pub struct Together {
    /// The place of the first page.
    pub first: u32,
    /// The transfers of the pages, in order.
    pub tokens: Vec<Token>,
    /// The pages to write; empty for a read.
    pub data: Vec<u8>,
}

/// See the module's description.
#[derive(Default)]
pub struct Kept(Vec<One>);

impl Kept {
    /// Delays a write.
    pub fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]) {
        self.0.push(One { token, place, page: Some(Box::new(*bytes)) });
    }

    /// Delays a read.
    pub fn read(&mut self, token: Token, place: u32) {
        self.0.push(One { token, place, page: None });
    }

    /// Takes all delayed transfers as requests, reads first.
    #[must_use]
    pub fn take(&mut self) -> Vec<Together> {
        let mut all = std::mem::take(&mut self.0);
        all.sort_by_key(|one| (one.page.is_some(), one.place));
        let follows = |one: &One, next: &One| {
            one.page.is_some() == next.page.is_some()
                && one.place.checked_add(1) == Some(next.place)
        };
        let runs = all.chunk_by(follows).flat_map(|run| run.chunks(PAGES_MAX));
        runs.map(together).collect()
    }
}

// The request for a run of neighbours.
fn together(run: &[One]) -> Together {
    let pages = || run.iter().filter_map(|one| one.page.as_deref());
    let mut data = Vec::with_capacity(pages().count() * PAGE_BYTES);
    pages().for_each(|page| data.extend_from_slice(page));
    Together { first: run[0].place, tokens: run.iter().map(|one| one.token).collect(), data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_go_together_and_keep_their_bytes() {
        let mut kept = Kept::default();
        for place in [9, 7, 8, 20] {
            kept.write(u64::from(place), place, &[u8::try_from(place).expect("small"); PAGE_BYTES]);
        }
        kept.read(100, 10);
        kept.read(101, 11);
        // Two pages have one place, after a fork.
        kept.read(102, 10);
        let all = kept.take();
        let told: Vec<(u32, &[Token], usize)> =
            all.iter().map(|one| (one.first, &*one.tokens, one.data.len())).collect();
        let reads: [(u32, &[Token], usize); 2] = [(10, &[100], 0), (10, &[102, 101], 0)];
        assert_eq!(told[..2], reads);
        let writes: [(u32, &[Token], usize); 2] =
            [(7, &[7, 8, 9], 3 * PAGE_BYTES), (20, &[20], PAGE_BYTES)];
        assert_eq!(told[2..], writes);
        for (number, page) in all[2].data.chunks(PAGE_BYTES).enumerate() {
            assert!(page.iter().all(|&byte| usize::from(byte) == 7 + number));
        }
        assert_eq!(kept.take(), []);
    }

    #[test]
    fn a_request_has_a_bound() {
        let mut kept = Kept::default();
        (0..70).for_each(|place| kept.read(u64::from(place), place));
        let sizes: Vec<usize> = kept.take().iter().map(|one| one.tokens.len()).collect();
        assert_eq!(sizes, [32, 32, 6]);
    }
}
