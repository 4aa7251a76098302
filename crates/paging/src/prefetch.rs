//! Which pages to fetch ahead of a fault.

use std::fmt;
use std::str::FromStr;

use crate::page::PageIndex;

/// Pages ahead for `stride` without a number: the cluster that Linux swap reads by default.
const STRIDE_DEPTH_DEFAULT: u8 = 8;
/// Access streams told apart at once.
const STREAMS: usize = 8;
/// The farthest a fault can be from the last one of a stream that is still being learnt, in
/// pages.
const REACH: u32 = 1024;

/// What to fetch ahead of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Prefetch {
    /// Nothing.
    #[default]
    None,
    /// This many pages that follow the faulting one.
    NextN(u8),
    /// This many pages ahead along a stride, once three faults have shown one.
    Stride(u8),
}

/// Follows the faults of one program and says what to fetch ahead.
///
/// For [`Prefetch::Stride`], faults are sorted into a few streams, so that threads or arrays read
/// side by side do not hide one another's strides. A prefetch that works removes the faults it
/// was made from: a stream goes on when the next fault is any of the pages fetched ahead or the
/// first one beyond.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    prefetch: Prefetch,
    streams: [Stream; STREAMS],
    fault_count: u64,
}

/// One run of faults with a common distance.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    last: u32,
    // Pages between faults; zero until there were two.
    stride: i64,
    // Whether two distances in a row were the same.
    confirmed: bool,
    // Fault that was last part of the stream, counted from one; zero for an unused slot.
    used_at: u64,
}

/// The pages to fetch ahead of one fault, nearest first.
#[derive(Clone, Debug)]
pub struct Ahead {
    from: PageIndex,
    stride: i64,
    step: u8,
    steps: u8,
}

impl Prefetch {
    /// How many pages are fetched ahead; `None` if nothing is.
    #[must_use]
    pub const fn depth(self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::NextN(pages) | Self::Stride(pages) => Some(pages),
        }
    }
}

impl Prefetcher {
    /// A prefetcher that has seen no fault.
    #[must_use]
    pub fn new(prefetch: Prefetch) -> Self {
        Self { prefetch, streams: [Stream::default(); STREAMS], fault_count: 0 }
    }

    /// Learns from a fault on `page` that had to be fetched, and returns the pages to fetch with
    /// it. Those may include pages that are local or were never used, which the caller skips.
    pub fn on_fault(&mut self, page: PageIndex) -> Ahead {
        let (stride, steps) = match self.prefetch {
            Prefetch::None => (0, 0),
            Prefetch::NextN(steps) => (1, steps),
            Prefetch::Stride(steps) => match self.stride_at(page.get(), steps) {
                Some(stride) => (stride, steps),
                None => (0, 0),
            },
        };
        Ahead { from: page, stride, step: 0, steps }
    }

    /// Adds a fault to the stream it belongs to. Returns the stride of that stream; `None` if it is
    /// not known.
    fn stride_at(&mut self, page: u32, steps: u8) -> Option<i64> {
        self.fault_count += 1;
        let used_at = self.fault_count;
        let continued = self.streams.iter_mut().find(|stream| stream.continues_at(page, steps));
        if let Some(stream) = continued {
            *stream = Stream { last: page, used_at, ..*stream };
            return Some(stream.stride);
        }
        let learning = self
            .streams
            .iter_mut()
            .filter(|stream| stream.is_learning_near(page))
            .min_by_key(|stream| stream.last.abs_diff(page));
        if let Some(stream) = learning {
            let stride = i64::from(page) - i64::from(stream.last);
            let confirmed = stride == stream.stride;
            *stream = Stream { last: page, stride, confirmed, used_at };
            return confirmed.then_some(stride);
        }
        let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used_at)?;
        *oldest = Stream { last: page, stride: 0, confirmed: false, used_at };
        None
    }
}

impl Stream {
    // Whether a fault on `page` is one of the next `steps` pages of the stream, or the first
    // beyond.
    fn continues_at(&self, page: u32, steps: u8) -> bool {
        let distance = i64::from(page) - i64::from(self.last);
        self.confirmed
            && distance % self.stride == 0
            && (1..=i64::from(steps) + 1).contains(&(distance / self.stride))
    }

    // Whether the stream has no stride yet and its last fault is near `page`.
    fn is_learning_near(&self, page: u32) -> bool {
        self.used_at > 0 && !self.confirmed && (1..=REACH).contains(&self.last.abs_diff(page))
    }
}

impl Iterator for Ahead {
    type Item = PageIndex;

    fn next(&mut self) -> Option<PageIndex> {
        if self.step == self.steps {
            return None;
        }
        self.step += 1;
        self.from.offset(self.stride * i64::from(self.step))
    }
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::NextN(pages) => f.pad(&format!("next-{pages}")),
            Self::Stride(pages) => f.pad(&format!("stride-{pages}")),
        }
    }
}

impl FromStr for Prefetch {
    type Err = ParsePrefetchError;

    fn from_str(text: &str) -> Result<Self, ParsePrefetchError> {
        let depth = |digits: &str| digits.parse().ok().filter(|&pages: &u8| pages > 0);
        let prefetch = match text.split_once('-') {
            None if text == "none" => Some(Self::None),
            None if text == "stride" => Some(Self::Stride(STRIDE_DEPTH_DEFAULT)),
            Some(("next", digits)) => depth(digits).map(Self::NextN),
            Some(("stride", digits)) => depth(digits).map(Self::Stride),
            _ => None,
        };
        prefetch.ok_or_else(|| ParsePrefetchError { given: text.to_owned() })
    }
}

/// A text that names no prefetch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no prefetch `{given}`: use none, next-N or stride-N with N from 1 to 255, or stride"
)]
pub struct ParsePrefetchError {
    /// The text that was given.
    pub given: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_faults(prefetch: &str, faults: &[u32]) -> Vec<Vec<u32>> {
        let mut prefetcher = Prefetcher::new(prefetch.parse().unwrap());
        let pages = |fault: &u32| prefetcher.on_fault(PageIndex::new(*fault));
        faults.iter().map(pages).map(|ahead| ahead.map(PageIndex::get).collect()).collect()
    }

    #[test]
    fn prefetch_text_round_trips() {
        for text in ["none", "next-1", "next-4", "stride-4", "stride-255"] {
            assert_eq!(text.parse::<Prefetch>().unwrap().to_string(), text);
        }
        assert_eq!("stride".parse(), Ok(Prefetch::Stride(8)));
        for text in ["", "next", "next-", "next-0", "next-256", "stride-x", "none-1", "Next-4"] {
            let error = text.parse::<Prefetch>().unwrap_err();
            assert_eq!(error, ParsePrefetchError { given: text.to_owned() });
        }
    }

    #[test]
    fn on_fault_next_follows_every_fault() {
        assert_eq!(on_faults("next-2", &[7, 100]), [vec![8, 9], vec![101, 102]]);
        assert_eq!(on_faults("none", &[7, 8]), [Vec::<u32>::new(), vec![]]);
    }

    #[test]
    fn on_fault_stops_at_the_ends_of_the_arena() {
        let last = PageIndex::MAX.get();
        assert_eq!(on_faults("next-3", &[last - 1]), [vec![last]]);
        assert_eq!(on_faults("stride-3", &[5, 3, 1]), [Vec::<u32>::new(), vec![], vec![]]);
    }

    #[test]
    fn on_fault_stride_needs_three_faults_and_survives_its_own_success() {
        assert_eq!(on_faults("stride-2", &[10, 13, 16]), [vec![], vec![], vec![19, 22]]);
        // 19 and 22 came with 16, so the next fault is on 25; then on 28 as if 28 came late.
        assert_eq!(on_faults("stride-2", &[10, 13, 16, 25, 28])[3..], [vec![28, 31], vec![31, 34]]);
        assert_eq!(on_faults("stride-2", &[90, 85, 80])[2], [75, 70]);
    }

    #[test]
    fn on_fault_streams_side_by_side_do_not_hide_one_another() {
        let ahead = on_faults("stride-1", &[10, 500_000, 11, 500_002, 12, 500_004]);
        assert_eq!(ahead[4..], [vec![13], vec![500_006]]);
    }

    #[test]
    fn on_fault_a_stray_fault_does_not_end_a_stream() {
        assert_eq!(on_faults("stride-1", &[10, 11, 12, 700, 14])[4], [15]);
    }

    #[test]
    fn on_fault_random_faults_prefetch_little() {
        // Distances that never repeat.
        let faults: Vec<u32> = (0..200_u32).map(|n| n * n).collect();
        assert_eq!(on_faults("stride-8", &faults).concat(), Vec::<u32>::new());
    }
}
