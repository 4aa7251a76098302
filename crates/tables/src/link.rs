//! A link in a table that the kernel side reads, as in `bpf/link.h` and `bpf/law.h`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use measure::{Bytes, Direction, LinkConfig, LinkMode};
use sys::memory::SharedView;

/// Words of one link.
pub const LINK_WORDS: usize = 16;
/// Entries of the table of completion times.
pub const PROFILE_ENTRIES: usize = 4096;
/// How transfers share a link, by their number in the table.
const LINK_MODES: [LinkMode; 3] = [LinkMode::HalfDuplex, LinkMode::PerFault, LinkMode::FullDuplex];

/// The link of one tier.
pub struct LinkTable<'a> {
    words: &'a [AtomicU64],
    halves: &'a [AtomicU32],
}

impl<'a> LinkTable<'a> {
    /// The link with this number in a table of links.
    #[must_use]
    pub fn of(links: &'a SharedView, number: usize) -> Self {
        let words = &links.words64()[number * LINK_WORDS..][..LINK_WORDS];
        let halves = &links.words32()[number * LINK_WORDS * 2..][..LINK_WORDS * 2];
        Self { words, halves }
    }

    /// Writes `link` to the table, and the quantiles of its profile, if any, to `profile`. Draws
    /// from the profile follow from `seed`.
    pub fn set(&self, link: &LinkConfig, profile: &[AtomicU32], seed: u64) {
        let page = link.bandwidth.map_or(0, |rate| rate.transfer_time(Bytes::PAGE).as_ps());
        self.rtt_ps().store(link.rtt.as_ps(), Ordering::Release);
        self.page_ps().store(page, Ordering::Release);
        let mode = LINK_MODES.iter().position(|mode| *mode == link.mode).unwrap_or(0);
        self.mode().store(u32::try_from(mode).unwrap_or(0), Ordering::Release);
        if let Some(times) = &link.profile {
            let quantiles = times.table(Bytes::PAGE, PROFILE_ENTRIES);
            for (entry, time) in profile.iter().zip(quantiles) {
                let ns = u32::try_from(time.as_ns()).unwrap_or(u32::MAX);
                entry.store(ns, Ordering::Relaxed);
            }
        }
        self.profile_state().store(seed, Ordering::Relaxed);
        self.profiled().store(u32::from(link.profile.is_some()), Ordering::Release);
    }

    /// The round trip, in picoseconds.
    pub fn rtt_ps(&self) -> &'a AtomicU64 {
        &self.words[0]
    }
    /// How long a page is on the link, in picoseconds; 0 without a bandwidth.
    pub fn page_ps(&self) -> &'a AtomicU64 {
        &self.words[1]
    }
    /// What a fetch takes without a delay, in nanoseconds: it is part of the delay.
    pub fn constant_ns(&self) -> &'a AtomicU64 {
        &self.words[2]
    }
    /// The kind of link, as a position in `LINK_MODES`.
    pub fn mode(&self) -> &'a AtomicU32 {
        &self.halves[6]
    }
    /// 1 if times come from a profile instead of round trip and bandwidth.
    pub fn profiled(&self) -> &'a AtomicU32 {
        &self.halves[7]
    }
    /// The state of the generator that draws from the profile.
    pub fn profile_state(&self) -> &'a AtomicU64 {
        &self.words[4]
    }
    /// When the direction of fetches is free, in picoseconds of the run.
    pub fn fetch_free_ps(&self) -> &'a AtomicU64 {
        &self.words[8]
    }
    /// When the direction of write-backs is free, if the two are separate.
    pub fn write_free_ps(&self) -> &'a AtomicU64 {
        &self.words[9]
    }
}

impl LinkTable<'_> {
    /// Reserves one page's time in `direction` at `now`. Returns when its last bit is sent, and
    /// when a round trip or a draw from `profile` is over, too; picoseconds of the run.
    pub fn reserve(&self, direction: Direction, now: u64, profile: &[AtomicU32]) -> (u64, u64) {
        let page = self.page_ps().load(Ordering::Relaxed);
        let way = match (self.shares(), direction) {
            (LinkMode::PerFault, _) => None,
            (LinkMode::FullDuplex, Direction::WriteBack) => Some(self.write_free_ps()),
            _ => Some(self.fetch_free_ps()),
        };
        let sent = match way.filter(|_| page > 0) {
            Some(free) => {
                let next = |free: u64| Some(free.max(now) + page);
                // The closure never returns `None`, so this cannot fail.
                let before = free.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
                before.unwrap_or(now).max(now) + page
            }
            None => now + page,
        };
        let latency = if self.profiled().load(Ordering::Relaxed) == 0 {
            self.rtt_ps().load(Ordering::Relaxed)
        } else {
            let state = self.profile_state().fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::AcqRel);
            let draw = usize::try_from(mix(state) >> 32).unwrap_or(0) & (PROFILE_ENTRIES - 1);
            u64::from(profile[draw].load(Ordering::Relaxed)) * 1000
        };
        (sent, sent + latency)
    }

    fn shares(&self) -> LinkMode {
        let number = self.mode().load(Ordering::Relaxed) as usize;
        LINK_MODES.get(number).copied().unwrap_or_default()
    }
}

// splitmix64, as in the trap.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z
}

/// Whether a fetch over `link` takes any time.
#[must_use]
pub fn delays(link: &LinkConfig) -> bool {
    !link.rtt.is_zero() || link.bandwidth.is_some() || link.profile.is_some()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use measure::{BitsPerSec, Duration, Instant, Link};
    use sys::memory::MemoryFile;

    use super::*;

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../../farmem/bpf/link.h");
        let size = format!("_Static_assert(sizeof(struct link) == {}, ", LINK_WORDS * 8);
        assert!(header.contains(&size));
        assert!(header.contains(&format!("#define PROFILE_ENTRIES {PROFILE_ENTRIES}\n")));
        for (number, mode) in ["HALF_DUPLEX", "PER_FAULT", "FULL_DUPLEX"].iter().enumerate() {
            assert!(header.contains(&format!("#define LINK_{mode} {number}U\n")), "{mode}");
        }
    }

    /// What a reservation asks for: direction, the time of its bytes and now, in picoseconds.
    type Request = (Direction, u64, u64);

    // Bursts and pauses, in both directions.
    fn requests(seed: u64, page: u64) -> Vec<Request> {
        let mut state = seed;
        let mut now = 0;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        };
        let mut request = |_| {
            now += if next() % 3 == 0 { next() % (page * 8 + 1) } else { next() % (page / 4 + 1) };
            let direction = if next() % 2 == 0 { Direction::Fetch } else { Direction::WriteBack };
            (direction, page, now)
        };
        (0..2000).map(&mut request).collect()
    }

    fn in_c(law: &Path, mode: usize, rtt_ps: u64, profiled: bool, of: &[Request]) -> Vec<String> {
        let words = [mode as u64, rtt_ps, u64::from(profiled), 7].map(|word| word.to_string());
        let mut child = Command::new(law)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: String = of
            .iter()
            .map(|&(direction, page, now)| {
                format!("{} {page} {now}\n", u8::from(direction == Direction::WriteBack))
            })
            .collect();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    fn in_tables(config: &LinkConfig, of: &[Request]) -> Vec<String> {
        let bytes = (LINK_WORDS * 8).max(4096) + PROFILE_ENTRIES * 4;
        let file = MemoryFile::new("link", bytes as u64).unwrap();
        let view = SharedView::map(&file, bytes).unwrap();
        let profile = &view.words32()[1024..][..PROFILE_ENTRIES];
        let table = LinkTable::of(&view, 0);
        table.set(config, profile, 7);
        if config.profile.is_some() {
            // Quantiles that C has, too.
            for (entry, ns) in profile.iter().zip((7..).step_by(3)) {
                entry.store(ns, Ordering::Relaxed);
            }
        }
        let reserve = |&(direction, _, now): &Request| {
            let (sent, ready) = table.reserve(direction, now, profile);
            format!("{sent} {ready}")
        };
        of.iter().map(reserve).collect()
    }

    fn in_measure(config: &LinkConfig, of: &[Request]) -> Vec<String> {
        let mut link = Link::new(config.clone());
        let reserve = |&(direction, _, now): &Request| {
            let one = link.reserve(Instant::from_ps(now), Bytes::PAGE, direction);
            format!("{} {}", (one.start + one.transfer).as_ps(), one.ready.as_ps())
        };
        of.iter().map(reserve).collect()
    }

    /// The law as the kernel side has it, as the supervisor has it, and as it is defined: the same
    /// times to the picosecond for the same reservations.
    #[test]
    fn all_implementations_of_the_law_agree() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let law = std::env::temp_dir().join(format!("afar-law-{}", std::process::id()));
        let built = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args(["-O2", "-Wall", "-Werror", "-I"])
            .args([here.join("../farmem/bpf"), "-o".into(), law.clone(), here.join("tests/law.c")])
            .status();
        assert!(built.unwrap().success());
        let rtt = Duration::from_us(5);
        for (number, mode) in LINK_MODES.into_iter().enumerate() {
            for (seed, mbps) in [(1, 100), (2, 1_000), (3, 40_000)] {
                let rate = BitsPerSec::new(mbps * 1_000_000);
                let config = LinkConfig { mode, rtt, bandwidth: Some(rate), profile: None };
                let page = rate.transfer_time(Bytes::PAGE).as_ps();
                let of = requests(seed, page);
                let wanted = in_measure(&config, &of);
                assert_eq!(in_tables(&config, &of), wanted, "{mode} {mbps}: supervisor");
                let kernel = in_c(&law, number, rtt.as_ps(), false, &of);
                assert_eq!(kernel, wanted, "{mode} {mbps}: kernel side");
                let profile = measure::DelayProfile::parse("4096,2\n4096,4").ok();
                let drawn = LinkConfig { profile, ..config };
                let kernel = in_c(&law, number, rtt.as_ps(), true, &of);
                assert_eq!(in_tables(&drawn, &of), kernel, "{mode} {mbps}: draws");
            }
        }
        std::fs::remove_file(law).unwrap();
    }
}
