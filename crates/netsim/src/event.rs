//! What happens next: events in the order of (time, phase, sequence).
//!
//! DESIGN NOTES
//! - Within an instant packets arrive first, then free ports choose what to send, then timers go
//!   off in the order of their kinds. So a port chooses among all packets of its instant.
//! - Nearly every event is less than a microsecond ahead and many are at the same instant. A
//!   wheel of short spans holds those, in lists through one arena that stays in the first-level
//!   cache; a span is sorted when its turn comes. A heap holds what is further ahead: timers.
//! - Within a span one word is an event's place: the time since the span began, the phase, the
//!   sequence. What the event does follows from the phase, so an event is two words. This holds
//!   as long as a span begins only when something of it is taken at once: what is added then is
//!   in that span or later. So `peek` does not look beyond a span while ports are to be served.
//! - The variant as-published-2016 has another rule, `Order::Heap`: events of one instant and
//!   phase come in whatever order the heap of its simulator left them. Then every packet that is
//!   queued, every end of a transmission and every start of a flow is an event, as it was there.
//!   "One instant" was within a femtosecond of a sum in floating point; so sums in floating point
//!   are carried along, and decide, where that rule holds. They never become results.
//! - The sequence makes the order total: two events never compare equal, so neither the sort nor
//!   the heap has a choice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use measure::Instant;

use crate::heap::Heap;

/// Picoseconds in a span, as a power of two: a few events per span in a busy fabric.
const SPAN_BITS: u32 = 11;
/// Spans of the wheel; 2 µs ahead.
const SPANS: usize = 1024;
const WORDS: usize = SPANS / 64;
const NONE: u32 = u32::MAX;

/// When in its instant an event happens.
pub(crate) type Phase = u8;

/// Which of several events of one instant and phase is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one that was added first.
    Sequence,
    /// The one that a heap of the C++ library has on top.
    Heap,
}

/// Flows start.
const START: Phase = 0;
/// Packets come to a queue.
const QUEUE: Phase = 1;
/// Packets arrive at their hosts.
const ARRIVE: Phase = 2;
/// Free ports choose.
pub(crate) const SERVE: Phase = 3;
/// Timers of kind 0; kind `k` goes off in phase `TIMER + k`.
const TIMER: Phase = 4;

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The next flow starts.
    Start,
    /// `packet` is to wait at `port`.
    Queue { port: u32, packet: u32 },
    /// `packet` reaches the switch at the far end of `port`'s link.
    Pass { port: u32, packet: u32 },
    /// `packet` reaches the host at the far end of `port`'s link.
    Arrive { port: u32, packet: u32 },
    /// `port` has sent what it was sending.
    Serve { port: u32 },
    /// A timer of the transport.
    Timer(Timer),
}

/// A timer of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timer {
    /// What goes off; of several timers at one instant the lowest kind is first.
    pub(crate) kind: u8,
    /// Distinguishes timers that were set for the same purpose.
    pub(crate) tag: u16,
    /// The flow or host.
    pub(crate) of: u32,
}

impl What {
    /// The phase of its instant in which the event happens.
    const fn phase(self) -> Phase {
        match self {
            Self::Start => START,
            Self::Queue { .. } | Self::Pass { .. } => QUEUE,
            Self::Arrive { .. } => ARRIVE,
            Self::Serve { .. } => SERVE,
            Self::Timer(timer) => TIMER + timer.kind,
        }
    }
}

/// Where in an event's place its phase is, above the sequence.
const PHASE_SHIFT: u32 = 48;
/// Bits of `place` below the time since the span began.
const TIME_SHIFT: u32 = u64::BITS - SPAN_BITS;
const PHASE_MASK: u64 = (1 << (TIME_SHIFT - PHASE_SHIFT)) - 1;

/// An event of `Order::Sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    /// Before this one in its span are those whose place is lower.
    place: u64,
    /// The port, the flow or the host.
    of: u32,
    packet: u32,
}

impl Event {
    #[inline]
    const fn new(at: u64, sequence: u64, what: What) -> Self {
        let (of, packet) = match what {
            What::Start => (0, 0),
            What::Queue { port, packet }
            | What::Pass { port, packet }
            | What::Arrive { port, packet } => (port, packet),
            What::Serve { port } => (port, 0),
            What::Timer(timer) => (timer.of, 0),
        };
        let phase = (what.phase() as u64) << PHASE_SHIFT;
        Self { place: at << TIME_SHIFT | phase | sequence, of, packet }
    }

    /// The phase in `place`.
    #[inline]
    const fn phase(&self) -> Phase {
        (self.place >> PHASE_SHIFT & PHASE_MASK) as Phase
    }

    /// What the event does: unpacks the phase and `of`.
    #[inline]
    const fn what(&self) -> What {
        let Self { of, packet, .. } = *self;
        match self.phase() {
            START => What::Start,
            QUEUE => What::Pass { port: of, packet },
            ARRIVE => What::Arrive { port: of, packet },
            SERVE => What::Serve { port: of },
            phase => What::Timer(Timer { kind: phase - TIMER, tag: 0, of }),
        }
    }
}

/// An event in the list of its span.
#[derive(Debug, Clone, Copy)]
struct Node {
    event: Event,
    next: u32,
}

/// Whether `one` happens after `other` under `Order::Heap`, which does not look at the sequence.
fn is_after(one: Published, other: Published) -> bool {
    const SAME: f64 = 1e-15;
    if (one.sum - other.sum).abs() < SAME {
        one.what.phase() > other.what.phase()
    } else {
        one.sum > other.sum
    }
}

/// The events to come.
#[derive(Debug)]
pub(crate) struct Events {
    /// The events of the current span, the next one last.
    ready: Vec<Event>,
    /// The first span whose events are not in `ready`.
    span: u64,
    arena: Vec<Node>,
    free: u32,
    heads: Box<[u32; SPANS]>,
    /// A bit for each span that has events.
    used: [u64; WORDS],
    /// Events in the wheel.
    wheel_count: usize,
    /// Events beyond the wheel, each with its span.
    far: BinaryHeap<Reverse<(u64, Event)>>,
    sequence: u64,
    /// All events, if the order is `Order::Heap`.
    heap: Option<Heap<Published>>,
}

/// An event of `Order::Heap`.
#[derive(Debug, Clone, Copy)]
struct Published {
    /// The time as the simulator of 2016 summed it up, in seconds.
    sum: f64,
    at: u64,
    what: What,
}

impl Events {
    pub(crate) fn new(order: Order) -> Self {
        Self {
            heap: (order == Order::Heap).then(Heap::new),
            ready: Vec::new(),
            span: 0,
            arena: Vec::new(),
            free: NONE,
            heads: Box::new([NONE; SPANS]),
            used: [0; WORDS],
            wheel_count: 0,
            far: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Adds an event of `Order::Sequence`; `at` is not before the last event taken.
    #[inline]
    pub(crate) fn add(&mut self, at: Instant, what: What) {
        let event = Event::new(at.as_ps(), self.sequence, what);
        self.sequence += 1;
        let span = at.as_ps() >> SPAN_BITS;
        if span < self.span {
            debug_assert_eq!(span + 1, self.span, "a span is over when the next one begins");
            let place = self.ready.partition_point(|other| other.place > event.place);
            self.ready.insert(place, event);
        } else if span - self.span < SPANS as u64 {
            self.put(event, span);
        } else {
            self.far.push(Reverse((span, event)));
        }
    }

    /// Adds an event of `Order::Heap`; `sum` is its time as the simulator of 2016 summed it up, in
    /// seconds.
    pub(crate) fn add_published(&mut self, at: Instant, sum: f64, what: What) {
        if let Some(heap) = &mut self.heap {
            heap.push(Published { sum, at: at.as_ps(), what }, is_after);
        }
    }

    /// The floating-point time of the next event of `Order::Heap`, in seconds; 0 without one.
    pub(crate) fn peek_sum(&self) -> f64 {
        self.heap.as_ref().and_then(Heap::peek).map_or(0.0, |event| event.sum)
    }

    /// The time and phase of the next event, which must be taken before others are added; `None`
    /// without one. If `is_near`, also `None` unless it is in the span of the last event taken.
    #[inline]
    pub(crate) fn peek(&mut self, is_near: bool) -> Option<(Instant, Phase)> {
        if let Some(heap) = &self.heap {
            return heap.peek().map(|node| (Instant::from_ps(node.at), node.what.phase()));
        }
        if self.ready.is_empty() && (is_near || !self.turn()) {
            return None;
        }
        let event = self.ready.last()?;
        let at = (self.span - 1) << SPAN_BITS | event.place >> TIME_SHIFT;
        Some((Instant::from_ps(at), event.phase()))
    }

    /// Removes and returns the next event.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<What> {
        if let Some(heap) = &mut self.heap {
            return heap.pop(is_after).map(|node| node.what);
        }
        if self.ready.is_empty() && !self.turn() {
            return None;
        }
        self.ready.pop().map(|event| event.what())
    }

    /// Adds `event` to the list of `span` in the wheel.
    #[inline]
    fn put(&mut self, event: Event, span: u64) {
        let place = slot(span);
        let node = Node { event, next: self.heads[place] };
        let index = if self.free == NONE {
            self.arena.push(node);
            u32::try_from(self.arena.len() - 1).expect("fewer than 2³² events are ever ahead")
        } else {
            let index = self.free;
            let old = &mut self.arena[index as usize];
            self.free = old.next;
            *old = node;
            index
        };
        self.heads[place] = index;
        self.used[place / 64] |= 1 << (place % 64);
        self.wheel_count += 1;
    }

    /// Moves the wheel to the span of the first event of the heap. Returns whether there is one.
    #[cold]
    #[inline(never)]
    fn turn_far(&mut self) -> bool {
        let Some(&Reverse((span, _))) = self.far.peek() else { return false };
        self.span = span;
        self.draw_in();
        true
    }

    /// Moves the events of the heap that are within reach of the wheel into it.
    fn draw_in(&mut self) {
        while let Some(&Reverse((span, event))) = self.far.peek() {
            if span - self.span >= SPANS as u64 {
                break;
            }
            self.far.pop();
            self.put(event, span);
        }
    }

    /// Moves on to the next span with events and sorts them into `ready`. Returns whether there is
    /// one.
    fn turn(&mut self) -> bool {
        if self.wheel_count == 0 && !self.turn_far() {
            return false;
        }
        self.draw_in();
        let ahead = self.next_used();
        self.span += ahead;
        // Moving on has brought more of the heap within reach, but nothing before this span.
        let place = slot(self.span);
        let mut index = std::mem::replace(&mut self.heads[place], NONE);
        self.used[place / 64] &= !(1 << (place % 64));
        while index != NONE {
            let node = &mut self.arena[index as usize];
            let next = std::mem::replace(&mut node.next, self.free);
            self.ready.push(node.event);
            self.free = index;
            index = next;
        }
        self.wheel_count -= self.ready.len();
        match &mut self.ready[..] {
            [] | [_] => {}
            [one, other] => {
                if one.place < other.place {
                    std::mem::swap(one, other);
                }
            }
            several => several.sort_unstable_by_key(|event| Reverse(event.place)),
        }
        self.span += 1;
        true
    }

    /// How many spans ahead of `span` the next one with events is.
    fn next_used(&self) -> u64 {
        let start = slot(self.span);
        let (word, bit) = (start / 64, start % 64);
        let first = self.used[word] >> bit;
        if first != 0 {
            return u64::from(first.trailing_zeros());
        }
        let mut ahead = 64 - bit as u64;
        for step in 1..=WORDS {
            let bits = self.used[(word + step) % WORDS];
            if bits != 0 {
                return ahead + u64::from(bits.trailing_zeros());
            }
            ahead += 64;
        }
        unreachable!("the wheel counts its events")
    }
}

/// The place of `span` in the wheel.
fn slot(span: u64) -> usize {
    usize::try_from(span % SPANS as u64).expect("a remainder fits")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timer(of: u32) -> What {
        What::Timer(Timer { kind: 0, tag: 0, of })
    }

    #[test]
    fn phases_order_an_instant_and_sequence_a_phase() {
        let mut events = Events::new(Order::Sequence);
        let at = Instant::from_ns(5);
        let all = [
            timer(1),
            What::Serve { port: 2 },
            What::Arrive { port: 3, packet: 3 },
            What::Timer(Timer { kind: 1, tag: 0, of: 4 }),
            timer(5),
            What::Arrive { port: 6, packet: 6 },
        ];
        for what in all {
            events.add(at, what);
        }
        let taken: Vec<What> = std::iter::from_fn(|| events.take()).collect();
        assert_eq!(taken, [all[2], all[5], all[1], all[0], all[4], all[3]]);
    }

    proptest! {
        /// Against a sorted list, with gaps from within a span to far beyond the wheel.
        #[test]
        fn events_come_in_order(
            steps in prop::collection::vec((0_u32..34, any::<u64>(), any::<bool>()), 1..300),
        ) {
            let mut events = Events::new(Order::Sequence);
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            let mut now = 0;
            for (number, &(bits, gap, take)) in (0_u32..).zip(&steps) {
                let at = now + gap % (1 << bits);
                events.add(Instant::from_ps(at), timer(number));
                model.push((at, u64::from(number), number));
                if take {
                    model.sort_unstable();
                    let (at, _, number) = model.remove(0);
                    prop_assert_eq!(events.peek(false), Some((Instant::from_ps(at), TIMER)));
                    prop_assert_eq!(events.take(), Some(timer(number)));
                    now = at;
                }
            }
            model.sort_unstable();
            for (_, _, number) in model {
                prop_assert_eq!(events.take(), Some(timer(number)));
            }
            prop_assert_eq!(events.take(), None);
        }
    }
}
