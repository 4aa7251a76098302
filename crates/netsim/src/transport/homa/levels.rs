//! Which messages share a priority level: cutoffs by size.

use crate::flow::Frame;

/// A message: its bytes, its unscheduled bytes on the wire and all its bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size {
    bytes: u64,
    unscheduled: u64,
    all: u64,
}

impl Size {
    /// The sizes of a message of `bytes`, of which `round_trip` packets are unscheduled.
    pub(super) fn of(bytes: u64, frame: Frame, round_trip: u32) -> Self {
        let packets = frame.packets(bytes);
        let all = bytes + u64::from(packets) * u64::from(frame.header);
        let full = u64::from(round_trip) * u64::from(frame.full());
        Self { bytes, unscheduled: if packets <= round_trip { all } else { full }, all }
    }
}

/// Divides the levels among unscheduled and scheduled bytes on the wire (§3.4) in proportion, and
/// unscheduled bytes evenly among theirs. Returns the cutoffs and the number of scheduled levels.
pub(super) fn cutoffs(mut sizes: Vec<Size>, levels: u32) -> (Vec<u64>, usize) {
    sizes.sort_unstable();
    let total: u64 = sizes.iter().map(|size| size.all).sum();
    let first: u64 = sizes.iter().map(|size| size.unscheduled).sum();
    let levels = u64::from(levels);
    let count = ((first * levels + total / 2) / total.max(1)).clamp(1, levels - 1);
    let longest = sizes.last().map(|size| size.bytes);
    let mut cutoffs = Vec::new();
    let (mut sum, mut levels_full) = (0, 0);
    for size in &sizes {
        sum += size.unscheduled;
        // A size that fills several levels gets the first of them.
        let full = sum * count / first;
        if full > levels_full && longest > Some(size.bytes) {
            levels_full = full;
            if cutoffs.last() != Some(&size.bytes) {
                cutoffs.push(size.bytes);
            }
        }
    }
    (cutoffs, usize::try_from(levels - count).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of so many bytes of which a hundred are unscheduled, without headers.
    fn sizes(bytes: impl Iterator<Item = u64>) -> Vec<Size> {
        let frame = Frame { payload: 1, header: 0, is_padded: false };
        bytes.map(|bytes| Size::of(bytes, frame, 100)).collect()
    }

    #[test]
    fn levels_share_unscheduled_bytes_equally() {
        // All is unscheduled: 7 levels for 36 parts, of which sizes make 1, 3, 6, 10, 15, 21, 28.
        assert_eq!(cutoffs(sizes((1..=8).cycle().take(8000)), 8), (vec![3, 5, 6, 7], 1));
        // Fine sizes have all of them.
        let (cuts, _) = cutoffs(sizes(1..=100), 8);
        let parts: Vec<u64> = cuts.iter().map(|cut| cut * (cut + 1) * 7 / 10_100).collect();
        assert_eq!(parts, [1, 2, 3, 4, 5, 6]);
        // One long message in a hundred: what is unscheduled of it counts with the short ones.
        let mixed = (0..100).map(|index| if index == 0 { 10_000 } else { 2 });
        assert_eq!(cutoffs(sizes(mixed), 8), (Vec::new(), 7));
    }

    #[test]
    fn messages_of_a_packet_have_levels_by_their_bytes_on_the_wire() {
        let frame = Frame { payload: 1460, header: 40, is_padded: false };
        let size = |bytes| Size::of(bytes, frame, 8);
        assert_eq!(size(10), Size { bytes: 10, unscheduled: 50, all: 50 });
        assert_eq!(size(14_600), Size { bytes: 14_600, unscheduled: 12_000, all: 15_000 });
        // As many of 10 bytes as of 60 fill one level and two.
        let all = (0..900).map(|index| size(if index % 2 == 0 { 10 } else { 60 }));
        assert_eq!(cutoffs(all.collect(), 4), (vec![10], 1));
    }
}
