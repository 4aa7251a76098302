//! An emulated flash drive: a backend around any other that takes as long as a drive's channels,
//! buffer and interface would.
//!
//! ```text
//! read  ─► interface ─► the channels of its pages ─────────► ends
//! write ─► interface ─► buffer, when it has room ──────────► ends
//!                          └─► channel after channel: program, copies, erase
//! ```
//!
//! Every part has a time from which it is free, and serves requests in the order of their arrival.
//! So a read waits for the programs before it, and a write for room in the buffer.
//!
//! Follows drives whose buffer survives a power loss: forced writes and flushes need not wait for
//! programs. Departs from drives in that reads have no priority over programs; that a page is read
//! from the channel of its address, wherever it was programmed; and that the drive is always in the
//! steady state of random writes.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use measure::Fraction;
use sys::disk::Claim;

use crate::device::{Backend, Failure, Geometry, Operation, Request, Start};
use crate::named::{Around, BackendUri, Device, Kind, Parse, same};
use crate::open_error::OpenError;

/// The parameters of a drive; pages have 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelConfig {
    /// Number of flash channels, which work in parallel.
    channels: u32,
    /// Fixed time of every command.
    command_ns: u64,
    /// Bandwidth of the interface in each direction.
    interface_bytes_per_us: u64,
    /// Share of the interface's time that the drive has: less than all for a scaled drive.
    interface_share: Fraction,
    /// Time of a channel to read a page.
    read_ns: u64,
    /// Time of a channel to program a page.
    program_ns: u64,
    /// Time of an erase, for which a channel is busy after every `erase_pages` programs.
    erase_ns: u64,
    /// Programs of a channel between two erases.
    erase_pages: u64,
    /// Valid pages that garbage collection copies for every thousand pages of random writes.
    copies_per_mille: u64,
    /// Time to put a write into the buffer.
    buffer_ns: u64,
    /// Pages that the buffer holds, which bounds how long a read waits for programs.
    buffer_pages: u32,
}

/// A device as fast as an emulated drive.
pub struct ModelBackend {
    inner: Arc<dyn Backend>,
    config: ModelConfig,
    /// Shared by all shards, since the emulated drive is one drive. The cost of the lock is not
    /// emulated; it is far shorter than an operation of a channel.
    state: Mutex<State>,
}

struct State {
    channels: Vec<Channel>,
    /// The channel whose turn it is to program, of those that are free at the same time.
    next_channel: usize,
    /// When the interface is free, for reads and for writes.
    interface_free_ns: [u64; 2],
    /// For each place of the buffer, when its page will have been programmed.
    buffer: Vec<u64>,
    next_place: usize,
    /// The ends of the latest streams of sequential writes.
    streams: [u64; STREAMS],
    next_stream: usize,
}

#[derive(Clone, Copy)]
struct Channel {
    free_ns: u64,
    /// Programs since the last erase.
    programmed: u64,
    /// Copies that are due, in thousandths.
    copies: u64,
}

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;
/// Streams of sequential writes that are tracked.
const STREAMS: usize = 16;
/// The entry of an unused stream.
const NO_STREAM: u64 = u64::MAX;

impl ModelConfig {
    /// Samsung PM1725, as Guz et al. 2017 describe it and measured it.
    ///
    /// - Reads of 4 KiB at random, 750 000/s (Section 3): 60 channels of 80 µs.
    /// - An unloaded read of 4 KiB, 83.5 µs (Section 4.2, Figure 7a): 80 µs, 1.28 µs of the
    ///   interface and 2.22 µs of every command. Section 1 says 90 µs, of the specification.
    /// - Sequential reads, 3 GB/s (Section 3): what the channels read is 3.07 GB/s; the
    ///   interface's 3.2 GB/s leave room.
    /// - Sequential writes, 2 GB/s (Section 3): 120 µs for a program and 2.93 µs of an erase.
    /// - Writes of 4 KiB at random, 120 000/s (Section 3): 1.858 copies for each.
    /// - Not in the paper: 20 µs for an unloaded write, and a buffer of 1 MiB, behind which reads
    ///   wait some 2 ms, and 3 more for an erase.
    #[must_use]
    pub const fn pm1725() -> Self {
        Self {
            channels: 60,
            command_ns: 2_220,
            interface_bytes_per_us: 3_200,
            interface_share: Fraction::ONE,
            read_ns: 80_000,
            program_ns: 120_000,
            erase_ns: 3_000_000,
            erase_pages: 1_024,
            copies_per_mille: 1_858,
            buffer_ns: 16_500,
            buffer_pages: 256,
        }
    }

    /// Intel P3600 of 400 GB, as Klimovic et al. 2016 measured it.
    ///
    /// - Reads of 4 KiB at random, 250 000/s (Section 3.3, Figure 3): 20 channels of 80 µs.
    /// - Not in the paper: an unloaded read, here as the PM1725's 83.5 µs; an unloaded write,
    ///   20 µs; sequential writes, 550 MB/s; writes of 4 KiB at random, 30 000/s; sequential reads,
    ///   here as what is read at random, 1.02 GB/s; a buffer of 256 KiB.
    #[must_use]
    pub const fn p3600() -> Self {
        Self {
            channels: 20,
            program_ns: 146_000,
            copies_per_mille: 2_262,
            buffer_pages: 64,
            ..Self::pm1725()
        }
    }

    /// The drive called `name`; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "pm1725" => Some(Self::pm1725()),
            "p3600" => Some(Self::p3600()),
            _ => None,
        }
    }

    /// The drive with a share of its throughput and the same latency of a page: that share of its
    /// channels and its buffer, rounded up to whole ones, and of its interface's time.
    ///
    /// Requests of more pages than it has channels take longer, and a share of less than a channel
    /// is still one: the least of a PM1725 is a sixtieth, of a P3600 a twentieth.
    #[must_use]
    pub fn scaled(self, share: Fraction) -> Self {
        let part = |whole: u32| {
            let part = (u64::from(whole) * u64::from(share.ppm())).div_ceil(PPM);
            u32::try_from(part).expect("a share of at most all is at most the whole")
        };
        Self {
            channels: part(self.channels),
            buffer_pages: part(self.buffer_pages),
            interface_share: share,
            ..self
        }
    }

    // Time to transfer `bytes` over the interface.
    const fn transfer_ns(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(1_000) / self.interface_bytes_per_us
    }
}

/// Parts per million of a whole.
const PPM: u64 = 1_000_000;

/// `model:DRIVE[*SHARE]:DEVICE`.
pub(crate) static KIND: Kind = Kind {
    scheme: "model",
    example: "model:pm1725:",
    remedy: "write model:pm1725:DEVICE or model:p3600*0.1:DEVICE, \
        e.g. model:pm1725*0.1:memory:8GiB",
    parse: Parse::Around(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    config: ModelConfig,
    inner: BackendUri,
}

// Parses `DRIVE[*SHARE]`.
fn named(place: &str) -> Result<Around, String> {
    let (name, share) = place.split_once('*').unwrap_or((place, "1"));
    let config = ModelConfig::named(name)
        .ok_or_else(|| format!("no drive is called {name:?}; take pm1725 or p3600"))?;
    let share: Fraction = share.parse().map_err(|error| format!("{error}"))?;
    let config = config.scaled(share);
    Ok(Box::new(move |inner| Ok(BackendUri::new(Named { config, inner }))))
}

impl Device for Named {
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(Arc::new(ModelBackend::new(self.inner.open(claim)?, self.config)))
    }

    fn inside(&self) -> Option<&BackendUri> {
        Some(&self.inner)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl ModelBackend {
    /// Wraps `inner`: requests take as long as on the drive, or longer where `inner` is slower.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, config: ModelConfig) -> Self {
        Self { inner, config, state: Mutex::new(State::new(&config)) }
    }

    // Schedules a request on the drive. Returns when the drive would complete it.
    fn reserve(&self, request: &Request, now_ns: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let served_ns = match request.operation {
            Operation::Read => state.read(&self.config, request, now_ns),
            Operation::Write { .. } => state.write(&self.config, request, now_ns),
            // These neither read nor program pages.
            Operation::Flush | Operation::Zero { .. } | Operation::Discard => now_ns,
        };
        served_ns + self.config.command_ns
    }
}

impl State {
    fn new(config: &ModelConfig) -> Self {
        let count = u64::from(config.channels);
        // Channels start at different points between two erases, so that they do not erase
        // together.
        let channel = |index| Channel {
            free_ns: 0,
            programmed: index * config.erase_pages / count,
            copies: index * 1_000 / count,
        };
        Self {
            channels: (0..count).map(channel).collect(),
            next_channel: 0,
            interface_free_ns: [0; 2],
            buffer: vec![0; config.buffer_pages as usize],
            next_place: 0,
            streams: [NO_STREAM; STREAMS],
            next_stream: 0,
        }
    }

    // Schedules a read. Returns when its data has been transferred.
    fn read(&mut self, config: &ModelConfig, request: &Request, now_ns: u64) -> u64 {
        let transfer_ns = config.transfer_ns(request.length);
        let begun_ns = self.admit(config, 0, transfer_ns, now_ns);
        let first = request.offset / PAGE_BYTES;
        let end = (request.offset + request.length).div_ceil(PAGE_BYTES);
        let mut ready_ns = begun_ns;
        for page in first..end {
            let index = page % self.channels.len() as u64;
            let channel = &mut self.channels[usize::try_from(index).unwrap_or(0)];
            channel.free_ns = channel.free_ns.max(begun_ns) + config.read_ns;
            ready_ns = ready_ns.max(channel.free_ns);
        }
        ready_ns + transfer_ns
    }

    // Schedules a write. Returns when the buffer has taken it.
    fn write(&mut self, config: &ModelConfig, request: &Request, now_ns: u64) -> u64 {
        let transfer_ns = config.transfer_ns(request.length);
        let mut taken_ns = self.admit(config, 1, transfer_ns, now_ns);
        let end = request.offset + request.length;
        let continues = self.follow(request.offset, end);
        // A stream's partial last page is in the buffer already.
        let first = match continues {
            true => request.offset.div_ceil(PAGE_BYTES),
            false => request.offset / PAGE_BYTES,
        };
        let copies = if continues { 0 } else { config.copies_per_mille };
        for _ in first..end.div_ceil(PAGE_BYTES) {
            // Places are used in turn: this one is free when its last page has been programmed.
            taken_ns = taken_ns.max(self.buffer[self.next_place]);
            let channel = self.choose(taken_ns);
            let done_ns = self.channels[channel].program(config, copies, taken_ns);
            self.buffer[self.next_place] = done_ns;
            self.next_place = (self.next_place + 1) % self.buffer.len();
        }
        taken_ns + config.buffer_ns + transfer_ns
    }

    // Reserves the interface for a request. Returns when its transfer begins. Fixed times are added
    // at the request's end instead, so that channels see requests in the order of time.
    fn admit(&mut self, config: &ModelConfig, way: usize, transfer_ns: u64, now_ns: u64) -> u64 {
        let free_ns = &mut self.interface_free_ns[way];
        let begun_ns = now_ns.max(*free_ns);
        *free_ns = begun_ns + transfer_ns * PPM / u64::from(config.interface_share.ppm());
        begun_ns
    }

    // The channel that can program first, the next in turn if several can: flash is written
    // wherever there is room, so no write waits for a channel that erases.
    fn choose(&mut self, from_ns: u64) -> usize {
        let count = self.channels.len();
        let in_turn = (0..count).map(|step| (self.next_channel + step) % count);
        let first = in_turn.min_by_key(|&index| self.channels[index].free_ns.max(from_ns));
        let chosen = first.unwrap_or(0);
        self.next_channel = (chosen + 1) % count;
        chosen
    }

    // Records the end of a write. Returns whether the write continues a stream.
    fn follow(&mut self, offset: u64, end: u64) -> bool {
        let stream = self.streams.iter().position(|&at| at == offset);
        let index = stream.unwrap_or(self.next_stream);
        self.streams[index] = end;
        if stream.is_none() {
            self.next_stream = (self.next_stream + 1) % STREAMS;
        }
        stream.is_some()
    }
}

impl Channel {
    // Programs a page that is in the buffer from `from_ns` on. Returns when it is programmed;
    // copies and erases follow.
    fn program(&mut self, config: &ModelConfig, copies_per_mille: u64, from_ns: u64) -> u64 {
        let done_ns = self.free_ns.max(from_ns) + config.program_ns;
        self.copies += copies_per_mille;
        let copies = self.copies / 1_000;
        self.copies %= 1_000;
        self.programmed += 1 + copies;
        let erases = self.programmed / config.erase_pages;
        self.programmed %= config.erase_pages;
        let copied_ns = done_ns + copies * (config.read_ns + config.program_ns);
        self.free_ns = copied_ns + erases * config.erase_ns;
        done_ns
    }
}

impl Backend for ModelBackend {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        let start = self.inner.start(request, data, now_ns);
        let not_before_ns = start.not_before_ns.max(self.reserve(request, now_ns));
        Start { not_before_ns, ..start }
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        self.inner.end(request, result, now_ns)
    }

    fn refresh(&self) {
        self.inner.refresh();
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use workload::Draw;

    use super::*;
    use crate::NullBackend;

    const PAGE: u64 = 4096;
    const DISK_PAGES: u64 = 1 << 20;
    const WRITE: Operation = Operation::Write { forced: false };

    fn drive(config: ModelConfig) -> ModelBackend {
        ModelBackend::new(Arc::new(NullBackend::new(DISK_PAGES * PAGE, 12)), config)
    }

    fn tenth(config: ModelConfig) -> ModelConfig {
        config.scaled("0.1".parse().unwrap())
    }

    fn ask(drive: &ModelBackend, operation: Operation, pages: [u64; 2], now_ns: u64) -> u64 {
        let [offset, length] = pages.map(|pages| pages * PAGE);
        let mut data = vec![0; usize::try_from(length).unwrap()];
        drive.start(&Request { operation, offset, length }, &mut data, now_ns).not_before_ns
    }

    /// Requests a second with so many under way, each begun when one ends; the first third is not
    /// counted.
    fn closed_loop(
        config: ModelConfig,
        operation: Operation,
        under_way: u64,
        mut pages: impl FnMut(u64) -> [u64; 2],
    ) -> f64 {
        const REQUESTS: u64 = 150_000;
        let drive = drive(config);
        let mut ends: BinaryHeap<_> = (0..under_way).map(|_| Reverse(0)).collect();
        let mut counted_from_ns = 0;
        for number in 0..REQUESTS {
            let Reverse(now_ns) = ends.pop().unwrap();
            if number == REQUESTS / 3 {
                counted_from_ns = now_ns;
            }
            ends.push(Reverse(ask(&drive, operation, pages(number), now_ns)));
        }
        let Reverse(now_ns) = ends.pop().unwrap();
        (REQUESTS - REQUESTS / 3) as f64 * 1e9 / (now_ns - counted_from_ns) as f64
    }

    fn random() -> impl FnMut(u64) -> [u64; 2] {
        let mut draw = Draw::new(1);
        move |_| [draw.below(DISK_PAGES), 1]
    }

    #[track_caller]
    fn assert_near(measured: f64, expected: f64, share: f64) {
        let error = (measured / expected - 1.0).abs();
        assert!(error <= share, "{measured} is not {expected} within {share}");
    }

    /// What a channel needs for a page that is written.
    fn program_ns(config: &ModelConfig, copies: f64) -> f64 {
        let erase_ns = config.erase_ns as f64 / config.erase_pages as f64;
        let program_ns = config.program_ns as f64 + erase_ns;
        program_ns + copies * (config.read_ns as f64 + program_ns)
    }

    fn pages_per_sec(config: &ModelConfig, page_ns: f64) -> f64 {
        f64::from(config.channels) * 1e9 / page_ns
    }

    #[test]
    fn unloaded_latencies_are_the_papers_and_scaling_keeps_them() {
        for config in [ModelConfig::pm1725(), ModelConfig::p3600()] {
            for config in [config, tenth(config)] {
                for (operation, latency_ns) in [(Operation::Read, 83_500), (WRITE, 20_000)] {
                    assert_eq!(ask(&drive(config), operation, [7, 1], 1_000), 1_000 + latency_ns);
                }
            }
        }
        let flush = Request { operation: Operation::Flush, offset: 0, length: 0 };
        let drive = drive(ModelConfig::pm1725());
        assert_eq!(drive.start(&flush, &mut [], 5).not_before_ns, 5 + 2_220);
        assert!(!drive.is_immediate());
    }

    #[test]
    fn closed_forms_are_the_papers_figures() {
        let pm1725 = ModelConfig::pm1725();
        let reads = pages_per_sec(&pm1725, 80e3);
        assert_near(reads, 750e3, 1e-9);
        assert_near(reads * 4096.0, 3e9, 0.025);
        assert_near(pages_per_sec(&pm1725, program_ns(&pm1725, 0.0)) * 4096.0, 2e9, 0.001);
        assert_near(pages_per_sec(&pm1725, program_ns(&pm1725, 1.858)), 120e3, 0.001);
        let p3600 = ModelConfig::p3600();
        assert_near(pages_per_sec(&p3600, 80e3), 250e3, 1e-9);
        assert_near(pages_per_sec(&p3600, program_ns(&p3600, 0.0)) * 4096.0, 550e6, 0.001);
        assert_near(pages_per_sec(&p3600, program_ns(&p3600, 2.262)), 30e3, 0.001);
    }

    #[test]
    fn saturated_reads_are_limited_by_channels() {
        for config in [ModelConfig::pm1725(), ModelConfig::p3600(), tenth(ModelConfig::pm1725())] {
            let under_way = 64 * u64::from(config.channels);
            let measured = closed_loop(config, Operation::Read, under_way, random());
            assert_near(measured, pages_per_sec(&config, 80e3), 0.01);
        }
        let pm1725 = ModelConfig::pm1725();
        let sequential = |number: u64| [number * 32 % DISK_PAGES, 32];
        let measured = closed_loop(pm1725, Operation::Read, 64, sequential);
        assert_near(measured * 32.0, pages_per_sec(&pm1725, 80e3), 0.01);
    }

    #[test]
    fn a_slow_interface_limits_reads() {
        let config = ModelConfig { interface_bytes_per_us: 1_024, ..ModelConfig::pm1725() };
        let measured = closed_loop(config, Operation::Read, 1_024, random());
        assert_near(measured, 250e3, 0.01);
    }

    #[test]
    fn sustained_writes_are_limited_by_programs_copies_and_erases() {
        let configs = [(ModelConfig::pm1725(), 1.858), (ModelConfig::p3600(), 2.262)].into_iter();
        for (config, copies) in configs.chain([(tenth(ModelConfig::pm1725()), 1.858)]) {
            let measured = closed_loop(config, WRITE, 128, random());
            assert_near(measured, pages_per_sec(&config, program_ns(&config, copies)), 0.02);
            let sequential = |number: u64| [number * 8 % DISK_PAGES, 8];
            let measured = closed_loop(config, WRITE, 32, sequential) * 8.0;
            assert_near(measured, pages_per_sec(&config, program_ns(&config, 0.0)), 0.02);
        }
    }

    #[test]
    fn a_read_waits_for_the_programs_before_it() {
        let config = ModelConfig {
            channels: 1,
            erase_pages: 1_000_000,
            copies_per_mille: 1_000,
            ..ModelConfig::pm1725()
        };
        let drive = drive(config);
        assert_eq!(ask(&drive, WRITE, [5, 1], 0), 20_000);
        // A program, a copy, itself.
        assert_eq!(ask(&drive, Operation::Read, [9, 1], 0), 120_000 + 200_000 + 83_500);
        assert_eq!(ask(&drive, Operation::Read, [9, 1], 10_000), 320_000 + 80_000 + 83_500);
        assert_eq!(ask(&drive, Operation::Read, [9, 1], 1_000_000), 1_000_000 + 83_500);
    }

    #[test]
    fn writes_end_in_the_buffer_until_it_is_full() {
        let config = ModelConfig {
            channels: 1,
            erase_pages: 1_000_000,
            buffer_pages: 3,
            ..ModelConfig::pm1725()
        };
        let drive = drive(config);
        let mut next = 0;
        let mut write = |now_ns| {
            next += 1;
            ask(&drive, WRITE, [next, 1], now_ns)
        };
        // The first finds nothing to go on from, and is copied for after its program.
        let transfer_ns = 1_280;
        assert_eq!([write(0), write(0)], [20_000, 20_000 + transfer_ns]);
        assert_eq!(write(0), 20_000 + 2 * transfer_ns);
        assert_eq!(write(0), 120_000 + 20_000, "when the first is programmed");
        let second_ns = 120_000 + 200_000 + 120_000;
        assert_eq!(write(0), second_ns + 20_000);
        assert_eq!(write(9_000_000), 9_000_000 + 20_000, "it has been emptied");
    }

    #[test]
    fn small_writes_of_a_stream_share_a_page() {
        let config = ModelConfig {
            channels: 1,
            erase_pages: 1_000_000,
            copies_per_mille: 0,
            ..ModelConfig::pm1725()
        };
        let drive = drive(config);
        for number in 0..16 {
            let request = Request { operation: WRITE, offset: number * 512, length: 512 };
            drive.start(&request, &mut [0; 512], 0);
        }
        assert_eq!(drive.state.lock().unwrap().channels[0].free_ns / 120_000, 2);
    }

    #[test]
    fn scaling_keeps_at_least_one_of_each() {
        let sliver = ModelConfig::pm1725().scaled(Fraction::from_ppm(1).unwrap());
        assert_eq!((sliver.channels, sliver.buffer_pages), (1, 1));
        let tenth = tenth(ModelConfig::pm1725());
        assert_eq!((tenth.channels, tenth.buffer_pages), (6, 26));
        assert_eq!(ModelConfig::pm1725().scaled(Fraction::ONE), ModelConfig::pm1725());
        assert_eq!(ModelConfig::named("p3600"), Some(ModelConfig::p3600()));
        assert_eq!(ModelConfig::named("p3700"), None);
    }
}
