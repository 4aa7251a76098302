use std::collections::BTreeSet;

use crate::draw::Draw;
use crate::popularity::Popularity;
use crate::ycsb::Ycsb;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Read a record.
    Read,
    /// Replace a record.
    Update,
    /// Add a record.
    Insert,
    /// Read several records with consecutive numbers.
    Scan,
    /// Read a record, then replace it: one operation, whose time covers both.
    ReadModifyWrite,
}

impl Operation {
    /// All operations, in the order of [`Operation::index`].
    pub const ALL: [Self; 5] =
        [Self::Read, Self::Update, Self::Insert, Self::Scan, Self::ReadModifyWrite];

    /// Its index in [`Operation::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// Number of the record, or of the first of a scan.
    pub record: u64,
    /// Records of a scan; 1 for everything else.
    pub count: u32,
    /// Version of the value that is written: no two requests of a run have the same.
    pub version: u64,
}

/// The requests of one of several streams that share a store.
#[derive(Debug, Clone)]
pub struct Requests {
    workload: Ycsb,
    popularity: Popularity,
    draw: Draw,
    stream: u64,
    streams: u64,
    inserted: u64,
    /// How many inserts have been acknowledged, counted up to the first that has not.
    stored: u64,
    /// Acknowledged inserts beyond one that has not been acknowledged.
    stored_early: BTreeSet<u64>,
    version: u64,
}

impl Requests {
    /// Stream number `stream` of `streams`, all with the same seed. Each stream inserts records of
    /// its own. It reads and updates only the initial records and its own inserts that have been
    /// [acknowledged](Self::acknowledge).
    ///
    /// # Panics
    /// If `stream` is not one of `streams`, or the workload has a skew it cannot have.
    #[must_use]
    pub fn new(workload: &Ycsb, seed: u64, stream: u64, streams: u64) -> Self {
        assert!(stream < streams, "streams are counted from 0");
        let popularity =
            Popularity::new(workload.popularity, workload.theta, workload.record_count);
        Self {
            workload: workload.clone(),
            popularity,
            draw: Draw::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(stream)),
            stream,
            streams,
            inserted: 0,
            stored: 0,
            stored_early: BTreeSet::new(),
            version: 0,
        }
    }

    /// Draws the next request.
    pub fn next_request(&mut self) -> Request {
        let operation = self.operation();
        let record = if operation == Operation::Insert {
            self.inserted += 1;
            self.own(self.inserted - 1)
        } else {
            self.existing()
        };
        let count = match operation {
            Operation::Scan => {
                let more = self.draw.below(u64::from(self.workload.scan_records_max.max(1)));
                u32::try_from(more).unwrap_or(0) + 1
            }
            _ => 1,
        };
        self.version += 1;
        // Version 0 is that of the initial records.
        let version = self.version * self.streams + self.stream;
        Request { operation, record, count, version }
    }

    /// Notes that the insert of `record` has been answered. Later requests may use `record` as
    /// soon as all earlier inserts of this stream have been acknowledged, too.
    pub fn acknowledge(&mut self, record: u64) {
        let Some(beyond) = record.checked_sub(self.workload.record_count) else {
            return;
        };
        self.stored_early.insert(beyond / self.streams);
        while self.stored_early.remove(&self.stored) {
            self.stored += 1;
        }
    }

    /// Draws an operation of the mix.
    fn operation(&mut self) -> Operation {
        let mix = &self.workload.mix;
        let mut left = self.draw.unit();
        let shares = [mix.read, mix.update, mix.insert, mix.scan];
        for (operation, share) in Operation::ALL.into_iter().zip(shares) {
            if left < share {
                return operation;
            }
            left -= share;
        }
        // A remainder from rounding goes to the last operation with a share.
        let last = Operation::ALL.into_iter().zip(shares).rev();
        match mix.read_modify_write {
            0.0 => {
                last.into_iter().find(|pair| pair.1 > 0.0).map_or(Operation::Read, |pair| pair.0)
            }
            _ => Operation::ReadModifyWrite,
        }
    }

    /// Draws a record that is stored.
    fn existing(&mut self) -> u64 {
        let before = self.workload.record_count;
        let record = self.popularity.next(&mut self.draw, before + self.stored);
        if record < before { record } else { self.own(record - before) }
    }

    /// The number of the `nth` record that this stream inserts.
    fn own(&self, nth: u64) -> u64 {
        self.workload.record_count + nth * self.streams + self.stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ycsb::{Mix, YcsbName};

    #[test]
    fn mix_is_kept_and_streams_insert_apart() {
        let mut inserted = BTreeSet::new();
        for stream in 0..3 {
            let mut requests = Requests::new(&YcsbName::D.workload(), 1, stream, 3);
            let mut inserts = 0;
            let mut known: BTreeSet<u64> = (0..1000).collect();
            // Answers come three at a time, the last first.
            let mut unanswered = Vec::new();
            for _ in 0..20_000 {
                let Request { operation, record, .. } = requests.next_request();
                if operation == Operation::Insert {
                    inserts += 1;
                    assert!(inserted.insert(record));
                    unanswered.push(record);
                } else {
                    assert!(known.contains(&record));
                }
                if unanswered.len() == 3 {
                    for record in unanswered.drain(..).rev() {
                        known.insert(record);
                        requests.acknowledge(record);
                    }
                }
            }
            assert!((900..1100).contains(&inserts), "{inserts}");
            assert_eq!(requests.stored + unanswered.len() as u64, inserts);
        }
    }

    #[test]
    fn same_seed_same_requests_and_versions_are_unique() {
        let take = |seed, stream| {
            let mut requests = Requests::new(&YcsbName::A.workload(), seed, stream, 2);
            (0..100).map(|_| requests.next_request()).collect::<Vec<_>>()
        };
        assert_eq!(take(1, 0), take(1, 0));
        assert_ne!(take(1, 0), take(2, 0));
        let mut versions = BTreeSet::from([0]);
        assert!((0..2).flat_map(|stream| take(1, stream)).all(|r| versions.insert(r.version)));
    }

    #[test]
    fn scans_are_as_long_as_they_may_be() {
        let mut requests = Requests::new(&YcsbName::E.workload(), 1, 0, 1);
        let lengths: BTreeSet<u32> = (0..10_000)
            .map(|_| requests.next_request())
            .filter(|request| request.operation == Operation::Scan)
            .map(|request| request.count)
            .collect();
        assert_eq!((lengths.first(), lengths.last()), (Some(&1), Some(&100)));
    }

    #[test]
    fn nothing_is_drawn_that_has_no_share() {
        let mix = Mix { read: 0.1, update: 0.2, ..Mix::default() };
        let mix = mix.normalised().expect("shares");
        let workload = Ycsb { mix, ..Ycsb::default() };
        let mut requests = Requests::new(&workload, 1, 0, 1);
        let allowed = [Operation::Read, Operation::Update];
        assert!((0..50_000).all(|_| allowed.contains(&requests.next_request().operation)));
    }
}
