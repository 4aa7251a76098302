//! The tables that the BPF delay and the supervisor share; `bpf/swap.h` is the same in C.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use measure::LinkConfig;
use sys::bpf::{BpfError, Object};
use sys::memory::SharedView;

use tables::{LINK_WORDS, LinkTable, PROFILE_ENTRIES, delays};

// Aligns the object as the BPF loader requires.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/swap.bpf.o")));

const CONTROL_BYTES: usize = 192;
const EVENTS_MAX: usize = 1 << 16;
/// Halves (32 bits) of an event.
const EVENT_HALVES: usize = 10;

/// A fault that brought pages back from the swap device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SwapEvent {
    /// Nanoseconds since the start of the run.
    pub(crate) time_ns: u64,
    /// Page within the swap device.
    pub(crate) slot: u32,
    pub(crate) tid: u32,
    pub(crate) tgid: u32,
    /// Pages that came, those read ahead included.
    pub(crate) pages: u32,
    /// Nanoseconds that the fault waited for the link.
    pub(crate) wait_ns: u32,
    pub(crate) requested_ns: u32,
    /// Nanoseconds that the delay took.
    pub(crate) delayed_ns: u32,
    /// Nanoseconds of the whole fault, the kernel's part included; 0 if its end was not seen.
    pub(crate) total_ns: u32,
}

/// The counts of the kernel side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) fetches: u64,
    pub(crate) silent: u64,
}

impl Counts {
    /// Bytes that were read or written.
    pub(crate) fn turnover(self) -> u64 {
        self.read_bytes + self.write_bytes
    }
}

/// The loaded delay; dropping it unloads it.
pub(crate) struct Delay {
    _object: Object,
    control: SharedView,
    link: SharedView,
    profile: SharedView,
    events: SharedView,
    event_tail: u64,
}

/// Checks whether the delay can be loaded here.
pub(crate) fn probe() -> Result<(), BpfError> {
    Delay::load(0, u32::MAX).map(drop)
}

impl Delay {
    /// Loads the delay for the processes of a control group and a device, both by the kernel's
    /// numbers.
    pub(crate) fn load(group: u64, device: u32) -> Result<Self, BpfError> {
        let mut object = Object::load(&OBJECT.0, &[])?;
        let delay = Self {
            control: object.view("afar_control", CONTROL_BYTES)?,
            link: object.view("afar_link", LINK_WORDS * 8)?,
            profile: object.view("afar_profile", PROFILE_ENTRIES * 4)?,
            events: object.view("afar_events", EVENTS_MAX * EVENT_HALVES * 4)?,
            event_tail: 0,
            _object: {
                object.attach("afar_fault", "page_fault_user")?;
                object.attach("afar_fault", "page_fault_kernel")?;
                object.attach_major_faults("afar_fault_done")?;
                object.attach("afar_request", "block_bio_queue")?;
                object
            },
        };
        let words = delay.control.words64();
        words[0].store(sys::clock::monotonic_ns(), Ordering::Release);
        words[1].store(group, Ordering::Release);
        delay.control.words32()[4].store(device, Ordering::Release);
        Ok(delay)
    }

    /// Sets the link; draws from its profile follow from `seed`.
    pub(crate) fn set(&self, link: &LinkConfig, seed: u64) {
        LinkTable::of(&self.link, 0).set(link, self.profile.words32(), seed);
        self.control.words32()[5].store(u32::from(delays(link)), Ordering::Release);
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> Counts {
        let count = |place: usize| self.control.words64()[place].load(Ordering::Relaxed);
        Counts {
            read_bytes: count(11),
            write_bytes: count(13),
            fetches: count(14),
            silent: count(15),
        }
    }

    /// Returns and resets the number of faults that the log had no room for.
    pub(crate) fn take_lost(&self) -> u64 {
        self.control.words64()[9].swap(0, Ordering::AcqRel)
    }

    /// Reads the next event of the log; `None` if there is none.
    pub(crate) fn next_event(&mut self) -> Option<SwapEvent> {
        let event = take(&self.events, self.event_tail)?;
        self.event_tail += 1;
        self.tail().store(self.event_tail, Ordering::Release);
        Some(event)
    }

    // How many events have been read, for the kernel side.
    fn tail(&self) -> &AtomicU64 {
        &self.control.words64()[16]
    }
}

// Reads the event at `tail` and frees its entry; `None` if it is empty.
fn take(events: &SharedView, tail: u64) -> Option<SwapEvent> {
    let place = usize::try_from(tail).unwrap_or(0) & (EVENTS_MAX - 1);
    let halves = &events.words32()[place * EVENT_HALVES..][..EVENT_HALVES];
    let half = |at: usize| AtomicU32::load(&halves[at], Ordering::Relaxed);
    let pages = halves[5].load(Ordering::Acquire);
    if pages == 0 {
        return None;
    }
    let event = SwapEvent {
        time_ns: u64::from(half(0)) | u64::from(half(1)) << 32,
        slot: half(2),
        tid: half(3),
        tgid: half(4),
        pages,
        wait_ns: half(6),
        requested_ns: half(7),
        delayed_ns: half(8),
        total_ns: half(9),
    };
    halves[5].store(0, Ordering::Release);
    Some(event)
}

#[cfg(test)]
mod tests {
    use sys::memory::MemoryFile;

    use super::*;

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../bpf/swap.h");
        let sizes = [("swap_control", CONTROL_BYTES), ("swap_event", EVENT_HALVES * 4)];
        for (name, bytes) in sizes {
            let line = format!("_Static_assert(sizeof(struct {name}) == {bytes}, ");
            assert!(header.contains(&line), "{line}");
        }
        let entries = format!("#define SWAP_EVENTS_MAX (1 << {})\n", EVENTS_MAX.trailing_zeros());
        assert!(header.contains(&entries));
    }

    #[test]
    fn an_event_is_taken_once_and_not_before_it_is_complete() {
        let bytes = EVENTS_MAX * EVENT_HALVES * 4;
        let file = MemoryFile::new("events", bytes as u64).unwrap();
        let events = SharedView::map(&file, bytes).unwrap();
        let halves = &events.words32()[EVENT_HALVES..][..EVENT_HALVES];
        for (half, value) in halves.iter().zip([1, 2, 3, 4, 5, 0, 7, 8, 9, 10]) {
            half.store(value, Ordering::Relaxed);
        }
        assert_eq!(take(&events, 1), None);
        halves[5].store(6, Ordering::Release);
        let wanted = SwapEvent {
            time_ns: 1 | 2 << 32,
            slot: 3,
            tid: 4,
            tgid: 5,
            pages: 6,
            wait_ns: 7,
            requested_ns: 8,
            delayed_ns: 9,
            total_ns: 10,
        };
        assert_eq!(take(&events, 1 + EVENTS_MAX as u64), Some(wanted));
        assert_eq!(take(&events, 1), None);
    }
}
