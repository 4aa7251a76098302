//! DESIGN NOTES
//!
//! If each fault computed its delay for itself, nothing would enforce the bandwidth: two concurrent
//! faults would each get all of it. Here the link is shared and a transfer is a reservation on it,
//! so that queueing delay follows from the load. The per-fault delay of DiME is one mode of the
//! same object, for comparison with its published figures.

use std::fmt;
use std::str::FromStr;

use crate::error::{ParseError, Quantity};
use crate::profile::{DelayProfile, Draws};
use crate::quantity::Bytes;
use crate::rate::BitsPerSec;
use crate::time::{Duration, Instant};

/// What transfers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkMode {
    /// One queue: fetches and write-backs wait for one another.
    HalfDuplex,
    /// No queue: every transfer has the whole bandwidth to itself (DiME, Eq. 1).
    PerFault,
    /// Two queues: fetches wait for fetches, write-backs for write-backs.
    #[default]
    FullDuplex,
}

/// Which way a page travels, seen from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From remote memory to local.
    Fetch,
    /// From local memory to remote.
    WriteBack,
}

/// A link, as configured.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// What transfers share.
    pub mode: LinkMode,
    /// Round-trip time of an empty request; not used when there is a `profile`.
    pub rtt: Duration,
    /// Bits per second in one direction; `None` is infinite, and then nothing queues.
    pub bandwidth: Option<BitsPerSec>,
    /// Measured or simulated completion times, in place of `rtt` + bytes/bandwidth.
    pub profile: Option<DelayProfile>,
}

impl LinkConfig {
    /// The time of one page on an idle link; the median of a profile.
    #[must_use]
    pub fn page_delay(&self) -> Duration {
        self.delay_at(0.5)
    }

    /// The longest time of one page on an idle link.
    #[must_use]
    pub fn longest_page_delay(&self) -> Duration {
        self.delay_at(1.0)
    }

    /// The time of one page on an idle link, at a quantile of a profile.
    fn delay_at(&self, quantile: f64) -> Duration {
        match &self.profile {
            Some(profile) => profile.quantile(Bytes::PAGE, quantile),
            None => {
                let transfer = self.bandwidth.map(|rate| rate.transfer_time(Bytes::PAGE));
                self.rtt.saturating_add(transfer.unwrap_or_default())
            }
        }
    }
}

/// One reserved transfer.
///
/// `ready` = `start` + `transfer` + `latency`, and `start` = the time of the request + `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When the link starts the transfer.
    pub start: Instant,
    /// When the data has arrived (fetch) or acknowledged (write-back).
    pub ready: Instant,
    /// Time spent queueing behind other transfers.
    pub wait: Duration,
    /// Time to put the bytes on the link; zero with a profile, whose times include it.
    pub transfer: Duration,
    /// The round-trip time, or the profile's draw.
    pub latency: Duration,
}

/// A link that turns bytes into time: a serial resource with a next-free time.
///
/// For a request at `now`: start = max(now, next free), next free = start + bytes/B,
/// ready = start + bytes/B + RTT.
///
/// With a [`DelayProfile`], ready = start + a draw for that size. The draw is a whole completion
/// time, so `transfer` is zero; if a bandwidth is given as well, the link is still occupied for
/// bytes/B and later transfers queue behind it, otherwise nothing queues.
///
/// Requests should come in order of time; they are served in the order in which they come.
///
/// ```
/// use measure::{Bytes, Direction, Duration, Instant, Link, LinkConfig};
///
/// let mut link = Link::new(LinkConfig::like_gao("5us".parse()?, Some("40Gb/s".parse()?)));
/// let first = link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch);
/// let second = link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch);
/// assert_eq!(first.ready, Instant::from_ps(5_819_200));
/// assert_eq!(second.wait, Duration::from_ps(819_200));
/// # Ok::<(), measure::ParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Link {
    config: LinkConfig,
    fetch_free: Instant,
    write_back_free: Instant,
    draws: Draws,
}

impl LinkConfig {
    /// The delay of DiME, Eq. 1: 2δ + P/B for every fault by itself, with `one_way` = δ.
    ///
    /// Follows DiME in that concurrent faults do not share the bandwidth. Departs from its
    /// published module in that only fetches from remote memory need be reserved; the module
    /// delays first touches as well.
    #[must_use]
    pub fn like_dime(one_way: Duration, bandwidth: impl Into<Option<BitsPerSec>>) -> Self {
        Self {
            mode: LinkMode::PerFault,
            rtt: one_way.saturating_mul(2),
            bandwidth: bandwidth.into(),
            profile: None,
        }
    }

    /// The delay of Gao et al., §3.1: a round trip, and each request's bytes/B served one after
    /// another in separate queues for sending and receiving.
    ///
    /// Follows their block device in the serial bandwidth per direction. Departs from it in that
    /// every request pays its own round trip, overlapping with others'; the device waits once per
    /// batch of requests, and holds up the next batch meanwhile.
    #[must_use]
    pub fn like_gao(rtt: Duration, bandwidth: impl Into<Option<BitsPerSec>>) -> Self {
        Self { mode: LinkMode::FullDuplex, rtt, bandwidth: bandwidth.into(), profile: None }
    }
}

impl Link {
    /// An idle link. Draws from a profile use seed 0; see [`Link::seeded`].
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self::seeded(config, 0)
    }

    /// An idle link whose draws from a profile follow from `seed`.
    #[must_use]
    pub fn seeded(config: LinkConfig, seed: u64) -> Self {
        Self {
            config,
            fetch_free: Instant::ZERO,
            write_back_free: Instant::ZERO,
            draws: Draws::new(seed),
        }
    }

    /// Reserves the link for `bytes` requested at `now`.
    pub fn reserve(&mut self, now: Instant, bytes: Bytes, direction: Direction) -> Transfer {
        let start = now.max(self.next_free(direction));
        let occupied =
            self.config.bandwidth.map_or(Duration::ZERO, |rate| rate.transfer_time(bytes));
        if self.config.bandwidth.is_some() {
            self.occupy(start.saturating_add(occupied), direction);
        }
        let (transfer, latency) = match &self.config.profile {
            Some(profile) => (Duration::ZERO, profile.draw(&mut self.draws, bytes)),
            None => (occupied, self.config.rtt),
        };
        Transfer {
            start,
            ready: start.saturating_add(transfer).saturating_add(latency),
            wait: start.saturating_since(now),
            transfer,
            latency,
        }
    }

    /// Changes the configuration from the next reservation on. Existing reservations stay, and the
    /// sequence of draws continues.
    pub fn retune(&mut self, config: LinkConfig) {
        if config.mode == LinkMode::HalfDuplex {
            // The one queue takes over the load of both.
            let busy_until = self.fetch_free.max(self.write_back_free);
            self.fetch_free = busy_until;
            self.write_back_free = busy_until;
        }
        self.config = config;
    }

    /// When a transfer in `direction` could start at the earliest; [`Instant::ZERO`] when
    /// transfers do not queue.
    #[must_use]
    pub fn next_free(&self, direction: Direction) -> Instant {
        if self.config.bandwidth.is_none() {
            return Instant::ZERO;
        }
        match (self.config.mode, direction) {
            (LinkMode::PerFault, _) => Instant::ZERO,
            (LinkMode::HalfDuplex | LinkMode::FullDuplex, Direction::Fetch) => self.fetch_free,
            (LinkMode::HalfDuplex | LinkMode::FullDuplex, Direction::WriteBack) => {
                self.write_back_free
            }
        }
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Sets when the link will be free for `direction`; nothing if transfers do not queue.
    fn occupy(&mut self, until: Instant, direction: Direction) {
        match (self.config.mode, direction) {
            (LinkMode::PerFault, _) => {}
            (LinkMode::HalfDuplex, _) => {
                self.fetch_free = until;
                self.write_back_free = until;
            }
            (LinkMode::FullDuplex, Direction::Fetch) => self.fetch_free = until,
            (LinkMode::FullDuplex, Direction::WriteBack) => self.write_back_free = until,
        }
    }
}

impl fmt::Display for LinkMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::HalfDuplex => "half-duplex",
            Self::PerFault => "per-fault",
            Self::FullDuplex => "full-duplex",
        })
    }
}

impl FromStr for LinkMode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.trim() {
            "half-duplex" => Ok(Self::HalfDuplex),
            "per-fault" => Ok(Self::PerFault),
            "full-duplex" => Ok(Self::FullDuplex),
            _ => Err(ParseError::UnknownWord {
                value: text.to_owned(),
                quantity: Quantity::LinkMode,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const B40: BitsPerSec = BitsPerSec::from_gbps(40);
    /// A page at 40 Gb/s.
    const PAGE_PS: u64 = 819_200;

    fn config(mode: LinkMode) -> LinkConfig {
        LinkConfig { mode, rtt: Duration::from_us(5), bandwidth: Some(B40), profile: None }
    }

    fn profile() -> DelayProfile {
        DelayProfile::parse("4096,2\n4096,4\n8192,6\n8192,8").unwrap()
    }

    /// DiME, Eq. 1: delay = 2δ + P/B, in picoseconds.
    #[test]
    fn like_dime_equation_1() {
        let cases = [
            (1, 10, 5_276_800),
            (1, 40, 2_819_200),
            (1, 100, 2_327_680),
            (5, 10, 13_276_800),
            (5, 40, 10_819_200),
            (5, 100, 10_327_680),
        ];
        for (one_way_us, gbps, delay_ps) in cases {
            let one_way = Duration::from_us(one_way_us);
            let mut link = Link::new(LinkConfig::like_dime(one_way, BitsPerSec::from_gbps(gbps)));
            let now = Instant::from_ns(77);
            for _ in 0..3 {
                let fetch = link.reserve(now, Bytes::PAGE, Direction::Fetch);
                assert_eq!((fetch.ready - now).as_ps(), delay_ps);
                assert_eq!(fetch.wait, Duration::ZERO);
            }
        }
    }

    /// Gao et al., Table 4: round trips in µs from the components, each with its count, and the
    /// transmission of a page at the link's rate. Totals are printed to two decimals.
    #[test]
    fn reserve_table_4_round_trips() {
        // (OS, copies, inter-rack?, total at 40 Gb/s, total at 100 Gb/s), all in 10 ns. The
        // RDMA and NIC-integration column inter-rack at 100 Gb/s is 3.65 in the table.
        let columns = [
            (95, 100, true, 704, 655),
            (95, 100, false, 528, 479),
            (0, 100, true, 514, 465),
            (0, 100, false, 338, 289),
            (0, 50, true, 414, 365),
            (0, 50, false, 238, 189),
        ];
        for (os, copy, inter_rack, total_40, total_100) in columns {
            let switching = 24 * if inter_rack { 6 } else { 2 };
            let propagation = 2 * 4 + if inter_rack { 20 * 4 } else { 0 };
            let rtt = Duration::from_ns(10 * (2 * os + 2 * copy + switching + propagation));
            for (gbps, total) in [(40, total_40), (100, total_100)] {
                let mut link = Link::new(LinkConfig::like_gao(rtt, BitsPerSec::from_gbps(gbps)));
                let fetch = link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch);
                let printed_ps: u64 = total * 10_000;
                let error_ps = fetch.ready.as_ps().abs_diff(printed_ps);
                assert!(error_ps <= 5_000, "{gbps} Gb/s: {} for {printed_ps}", fetch.ready.as_ps());
            }
        }
    }

    #[test]
    fn reserve_modes_differ_in_who_waits() {
        use Direction::{Fetch, WriteBack};
        let waits = |mode| {
            let mut link = Link::new(config(mode));
            [Fetch, WriteBack, Fetch, WriteBack].map(|direction| {
                let transfer = link.reserve(Instant::ZERO, Bytes::PAGE, direction);
                assert_eq!(transfer.transfer.as_ps(), PAGE_PS);
                assert_eq!(transfer.latency, Duration::from_us(5));
                transfer.wait.as_ps() / PAGE_PS
            })
        };
        assert_eq!(waits(LinkMode::HalfDuplex), [0, 1, 2, 3]);
        assert_eq!(waits(LinkMode::FullDuplex), [0, 0, 1, 1]);
        assert_eq!(waits(LinkMode::PerFault), [0, 0, 0, 0]);
    }

    #[test]
    fn reserve_infinite_bandwidth_costs_the_round_trip() {
        let mut link = Link::new(LinkConfig::like_gao(Duration::from_us(3), None));
        for _ in 0..3 {
            let fetch = link.reserve(Instant::from_ns(1), Bytes::from_gib(1), Direction::Fetch);
            assert_eq!(fetch.ready, Instant::from_ns(3_001));
            assert_eq!(fetch.wait, Duration::ZERO);
        }
        assert_eq!(link.next_free(Direction::Fetch), Instant::ZERO);
    }

    #[test]
    fn reserve_profile_replaces_round_trip_and_transfer() {
        let mut link = Link::new(LinkConfig {
            bandwidth: None,
            profile: Some(profile()),
            ..config(LinkMode::HalfDuplex)
        });
        for _ in 0..32 {
            let fetch = link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch);
            assert_eq!((fetch.wait, fetch.transfer), (Duration::ZERO, Duration::ZERO));
            assert!([2, 4].map(Duration::from_us).contains(&fetch.latency));
            assert_eq!(fetch.ready - fetch.start, fetch.latency);
        }
    }

    #[test]
    fn reserve_profile_with_bandwidth_queues() {
        let mut link =
            Link::new(LinkConfig { profile: Some(profile()), ..config(LinkMode::HalfDuplex) });
        for index in 0..8 {
            let fetch = link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch);
            assert_eq!(fetch.wait.as_ps(), index * PAGE_PS);
            assert_eq!(fetch.transfer, Duration::ZERO);
            assert_eq!(fetch.ready - fetch.start, fetch.latency);
        }
    }

    #[test]
    fn seeded_draws_follow_from_the_seed() {
        let draws = |seed| {
            let profile = Some(profile());
            let mut link = Link::seeded(LinkConfig { profile, ..config(LinkMode::PerFault) }, seed);
            let mut fetch = || link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch).latency;
            (0..64).map(|_| fetch()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn retune_keeps_what_is_reserved() {
        let mut link = Link::new(config(LinkMode::FullDuplex));
        for _ in 0..4 {
            link.reserve(Instant::ZERO, Bytes::PAGE, Direction::WriteBack);
        }
        assert_eq!(link.next_free(Direction::Fetch), Instant::ZERO);

        link.retune(LinkConfig {
            bandwidth: Some(BitsPerSec::from_gbps(10)),
            ..config(LinkMode::HalfDuplex)
        });
        let fetch = link.reserve(Instant::ZERO, Bytes::PAGE, Direction::Fetch);
        assert_eq!(fetch.wait.as_ps(), 4 * PAGE_PS);
        assert_eq!(fetch.transfer.as_ps(), 4 * PAGE_PS);

        link.retune(config(LinkMode::PerFault));
        assert_eq!(link.next_free(Direction::Fetch), Instant::ZERO);
        link.retune(config(LinkMode::FullDuplex));
        assert_eq!(link.next_free(Direction::WriteBack).as_ps(), 8 * PAGE_PS);
        assert_eq!(link.config(), &config(LinkMode::FullDuplex));
    }

    #[test]
    fn reserve_saturates_at_the_end_of_time() {
        let mut link = Link::new(config(LinkMode::HalfDuplex));
        let huge = Bytes::new(u64::MAX);
        for _ in 0..2 {
            let fetch = link.reserve(Instant::MAX, huge, Direction::Fetch);
            assert_eq!(fetch.ready, Instant::MAX);
        }
    }

    #[test]
    fn mode_text() {
        for mode in [LinkMode::HalfDuplex, LinkMode::PerFault, LinkMode::FullDuplex] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!(
            "dime".parse::<LinkMode>().unwrap_err().to_string(),
            "\"dime\": not a kind of link; use full-duplex, half-duplex or per-fault"
        );
    }

    fn requests() -> impl Strategy<Value = Vec<(u64, u64, Direction)>> {
        let direction = prop_oneof![Just(Direction::Fetch), Just(Direction::WriteBack)];
        prop::collection::vec((0..2 * PAGE_PS, 1..65_536_u64, direction), 1..200)
    }

    proptest! {
        /// Per queue: no two transfers overlap, the link is idle only when nothing waits, and
        /// what it carries in its busy time is its bandwidth times that time.
        #[test]
        fn reserve_conserves_work_and_bandwidth(requests in requests(), is_shared: bool) {
            let mode = if is_shared { LinkMode::HalfDuplex } else { LinkMode::FullDuplex };
            let mut link = Link::new(config(mode));
            let mut now = Instant::ZERO;
            let mut log = Vec::new();
            for (gap_ps, bytes, direction) in requests {
                now = now + Duration::from_ps(gap_ps);
                let transfer = link.reserve(now, Bytes::new(bytes), direction);
                prop_assert_eq!(transfer.start, now + transfer.wait);
                let carried = transfer.start + transfer.transfer;
                prop_assert_eq!(transfer.ready, carried + transfer.latency);
                log.push((now, bytes, direction, transfer));
            }
            for queue in [Direction::Fetch, Direction::WriteBack] {
                let mut free = Instant::ZERO;
                let (mut busy_ps, mut bytes_sum) = (0, 0);
                for (now, bytes, direction, transfer) in &log {
                    if !is_shared && *direction != queue {
                        continue;
                    }
                    prop_assert!(transfer.start >= free, "two transfers overlap");
                    let is_at_once = transfer.start == free || transfer.start == *now;
                    prop_assert!(is_at_once, "idle with work");
                    free = transfer.start + transfer.transfer;
                    busy_ps += transfer.transfer.as_ps();
                    bytes_sum += bytes;
                }
                prop_assert_eq!(link.next_free(queue), free);
                // 40 Gb/s is 200 ps a byte exactly.
                prop_assert_eq!(busy_ps, bytes_sum * 200);
            }
        }

        #[test]
        fn reserve_per_fault_ignores_the_past(requests in requests()) {
            let mut link = Link::new(config(LinkMode::PerFault));
            let mut now = Instant::ZERO;
            for (gap_ps, bytes, direction) in requests {
                now = now + Duration::from_ps(gap_ps);
                let bytes = Bytes::new(bytes);
                let mut alone = Link::new(config(LinkMode::PerFault));
                prop_assert_eq!(
                    link.reserve(now, bytes, direction),
                    alone.reserve(now, bytes, direction)
                );
            }
        }
    }
}
