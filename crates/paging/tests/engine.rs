//! The engine against times computed by hand, and against queueing theory.

use measure::{BitsPerSec, Duration, Fraction, Instant, LinkConfig, LinkMode, Pages};
use paging::engine::{PageStatus, References, ResolveKind, WriteBack};
use paging::trace::{self, Access};
use paging::{
    Action, Engine, EngineConfig, Event, PageIndex, PolicyKind, Prefetch, ResidencyConfig,
};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// 4096 bytes at 40 Gb/s.
const PAGE_TIME: Duration = Duration::from_ps(819_200);
const RTT: Duration = Duration::from_us(5);

fn link(mode: LinkMode) -> LinkConfig {
    LinkConfig { mode, rtt: RTT, bandwidth: Some(BitsPerSec::from_gbps(40)), profile: None }
}

fn config(policy: PolicyKind, budget: u64) -> EngineConfig {
    EngineConfig {
        residency: ResidencyConfig {
            policy,
            budget: Pages::new(budget),
            headroom: Pages::ZERO,
            ready: Pages::ZERO,
            probation: None,
            seed: 5,
        },
        link: link(LinkMode::HalfDuplex),
        references: References::Exact,
        write_back: WriteBack::Charged,
        prefetch: Prefetch::None,
        prefetch_in_flight_max: 64,
    }
}

fn page(n: u32) -> PageIndex {
    PageIndex::new(n)
}

/// Rounded to tenths of a nanosecond, in which all times of these tests are whole.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are small")]
fn us(us: f64) -> Instant {
    Instant::from_ps((us * 10_000.0).round() as u64 * 100)
}

fn fault(engine: &mut Engine, n: u32, write: bool, at: Instant) -> Vec<Action> {
    engine.handle(Event::Fault { page: page(n), write, at }, at);
    actions(engine)
}

fn actions(engine: &mut Engine) -> Vec<Action> {
    std::iter::from_fn(|| engine.poll_action()).collect()
}

fn resolve(n: u32, ready_at: Instant, kind: ResolveKind) -> Action {
    Action::Resolve { page: page(n), ready_at, kind }
}

fn retune(budget: Option<u64>, link: Option<LinkConfig>) -> Event {
    Event::Retune { budget: budget.map(Pages::new), link }
}

fn rename(from: u32, to: u32, count: u64) -> Event {
    Event::Rename { from: page(from), to: page(to), count: Pages::new(count) }
}

fn discard(n: u32, count: u64) -> Event {
    Event::Discard { first: page(n), count: Pages::new(count) }
}

fn evict(n: u32, dirty: bool, free_at: Instant) -> Action {
    Action::Evict { page: page(n), dirty, free_at }
}

/// An engine in which `remote` pages from 0 on are remote, at time zero, with nothing local: each
/// was read and then given up for a page that was freed.
fn with_remote(config: EngineConfig, remote: u32) -> Engine {
    let budget = config.residency.budget;
    let mut engine = Engine::new(config);
    for n in 0..remote {
        fault(&mut engine, n, false, Instant::ZERO);
    }
    engine.handle(retune(Some(0), None), Instant::ZERO);
    engine.handle(retune(Some(budget.get()), None), Instant::ZERO);
    actions(&mut engine);
    assert_eq!(engine.frames_in_use(), Pages::ZERO);
    engine
}

/// Three faults at once on a 40 Gb/s link with a round trip of 5 µs.
#[test]
fn faults_at_once_share_the_link() {
    let ready = |mode| {
        let link = link(mode);
        let mut engine = with_remote(EngineConfig { link, ..config(PolicyKind::FIFO, 8) }, 3);
        let actions = (0..3).flat_map(|n| fault(&mut engine, n, false, Instant::ZERO));
        actions.collect::<Vec<_>>()
    };
    let fetched = |times: [f64; 3]| {
        let fetch = |(n, time)| resolve(n, us(time), ResolveKind::Fetch);
        (0..3).zip(times).map(fetch).collect::<Vec<_>>()
    };
    assert_eq!(ready(LinkMode::HalfDuplex), fetched([5.8192, 6.6384, 7.4576]));
    assert_eq!(ready(LinkMode::PerFault), fetched([5.8192; 3]));
}

#[test]
fn latencies_add_up() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 8), 3);
    for n in 0..3 {
        fault(&mut engine, n, false, Instant::ZERO);
    }
    let latencies = engine.latencies();
    // In whole nanoseconds: waits of 0, 0.8192 and 1.6384 µs.
    assert_eq!(
        (latencies.wait.min(), latencies.wait.max()),
        (Duration::ZERO, Duration::from_ns(1638))
    );
    assert_eq!(latencies.transfer.min(), latencies.transfer.max());
    assert_eq!(latencies.transfer.max(), Duration::from_ns(819));
    assert_eq!(latencies.total.max(), Duration::from_ns(7458));
    assert_eq!((latencies.total.count(), latencies.stall.count()), (3, 0));
}

/// A fault that is handled 4 µs after it happened is ready when it would have been.
#[test]
fn delay_counts_from_the_fault() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 8), 1);
    let event = Event::Fault { page: page(0), write: false, at: us(10.0) };
    engine.handle(event, us(14.0));
    assert_eq!(actions(&mut engine), [resolve(0, us(15.8192), ResolveKind::Fetch)]);
}

#[test]
fn first_touch_pays_nothing_and_refault_pays_the_link() {
    let mut engine = Engine::new(config(PolicyKind::FIFO, 1));
    assert_eq!(
        fault(&mut engine, 0, false, us(1.0)),
        [resolve(0, us(1.0), ResolveKind::FirstTouch)]
    );
    assert_eq!(engine.status(page(0)), PageStatus::Local);
    let evicted = [evict(0, false, us(2.0)), resolve(1, us(2.0), ResolveKind::FirstTouch)];
    assert_eq!(fault(&mut engine, 1, false, us(2.0)), evicted);
    assert_eq!(engine.status(page(0)), PageStatus::Remote);
    let fetched = [evict(1, false, us(3.0)), resolve(0, us(8.8192), ResolveKind::Fetch)];
    assert_eq!(fault(&mut engine, 0, false, us(3.0)), fetched);
    assert_eq!(engine.status(page(0)), PageStatus::InFlight { ready_at: us(8.8192) });
    engine.handle(Event::Tick, us(8.8192));
    assert_eq!(engine.status(page(0)), PageStatus::Local);
    assert_eq!(engine.counters().evict_clean_count, 2);
}

#[test]
fn second_fault_joins_the_fetch_under_way() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 8), 1);
    fault(&mut engine, 0, false, us(0.0));
    let joined = [resolve(0, us(5.8192), ResolveKind::Joined)];
    assert_eq!(fault(&mut engine, 0, true, us(3.0)), joined);
    // One that comes when the page is there already waits for nothing.
    assert_eq!(fault(&mut engine, 0, false, us(6.0)), [resolve(0, us(6.0), ResolveKind::Joined)]);
    let counters = engine.counters();
    assert_eq!((counters.fetch_count, counters.joined_count), (1, 2));
    assert_eq!(engine.latencies().total.min(), Duration::from_ns(2819));
    // The write of the second fault counts.
    engine.handle(retune(Some(0), None), us(7.0));
    assert_eq!(actions(&mut engine), [evict(0, true, us(12.8192))]);
}

/// One frame, with a dirty page in it. The fault on page 1 at 10 µs starts its write-back, which
/// is acknowledged at 15.8192; a fault on page 0 itself at 12 has to come behind. Page 1 is a
/// first touch and is there at 15.8192; page 0 then needs page 1's frame, which is clean and free
/// at once, and is there another 5.8192 later.
#[test]
fn fault_without_a_free_frame_stalls() {
    let mut engine = Engine::new(config(PolicyKind::FIFO, 1));
    fault(&mut engine, 0, true, us(0.0));
    assert_eq!(fault(&mut engine, 1, false, us(10.0)), [evict(0, true, us(15.8192))]);
    assert_eq!(engine.poll_timeout(), Some(us(15.8192)));
    assert_eq!(fault(&mut engine, 0, false, us(12.0)), []);
    engine.handle(Event::Tick, us(15.8191));
    assert_eq!(actions(&mut engine), []);
    engine.handle(Event::Tick, us(20.0));
    let expected = [
        resolve(1, us(15.8192), ResolveKind::FirstTouch),
        evict(1, false, us(15.8192)),
        resolve(0, us(21.6384), ResolveKind::Fetch),
    ];
    assert_eq!(actions(&mut engine), expected);
    assert_eq!((engine.poll_timeout(), engine.counters().stall_count), (None, 2));
    let latencies = engine.latencies();
    assert_eq!(latencies.stall.max(), Duration::from_ns(5819));
    assert_eq!(latencies.wait.max(), Duration::from_ns(3819));
    assert_eq!(latencies.total.max(), Duration::from_ns(9638));
}

/// There is a free frame, but the page's own write-back is under way until 15.8192 µs: a fetch
/// must not overtake it.
#[test]
fn fault_on_a_page_being_written_back_waits_for_it() {
    let mut config = config(PolicyKind::FIFO, 2);
    config.residency.headroom = Pages::new(1);
    config.prefetch = Prefetch::NextN(1);
    let mut engine = Engine::new(config);
    fault(&mut engine, 0, true, us(0.0));
    fault(&mut engine, 1, false, us(10.0));
    engine.handle(discard(1, 1), us(11.0));
    assert_eq!(engine.frames_in_use(), Pages::new(1));
    assert_eq!(fault(&mut engine, 0, false, us(12.0)), []);
    engine.handle(Event::Tick, us(15.8192));
    let fetched = resolve(0, us(21.6384), ResolveKind::Fetch);
    assert_eq!(actions(&mut engine), [fetched]);
}

/// With a frame kept free, the same fault does not stall: the write-back is done ahead.
#[test]
fn headroom_takes_write_backs_off_the_critical_path() {
    let mut config = config(PolicyKind::FIFO, 2);
    config.residency.headroom = Pages::new(1);
    let mut engine = Engine::new(config);
    fault(&mut engine, 0, true, us(0.0));
    let ahead = [resolve(1, us(10.0), ResolveKind::FirstTouch), evict(0, true, us(15.8192))];
    assert_eq!(fault(&mut engine, 1, false, us(10.0)), ahead);
    let next = [resolve(2, us(20.0), ResolveKind::FirstTouch), evict(1, false, us(20.0))];
    assert_eq!(fault(&mut engine, 2, false, us(20.0)), next);
    assert_eq!(engine.counters().stall_count, 0);
}

/// Four frames, one to be kept free, three dirty pages. At 10 µs two remote pages fault. The first
/// takes the free frame, and a dirty page is written back ahead: behind the fetch on a shared
/// link, beside it otherwise. The second fault waits for that frame and then for its fetch. If
/// write-backs are not charged, it only waits for the link.
#[test]
fn write_backs_use_the_link() {
    for (mode, write_back, free_us, ready_us) in [
        (LinkMode::HalfDuplex, WriteBack::Charged, 16.6384, 22.4576),
        (LinkMode::FullDuplex, WriteBack::Charged, 15.8192, 21.6384),
        (LinkMode::PerFault, WriteBack::Charged, 15.8192, 21.6384),
        (LinkMode::HalfDuplex, WriteBack::Ignored, 10.0, 16.6384),
    ] {
        let mut config =
            EngineConfig { link: link(mode), write_back, ..config(PolicyKind::FIFO, 4) };
        config.residency.headroom = Pages::new(1);
        let mut engine = with_remote(config, 2);
        for n in 11..14 {
            fault(&mut engine, n, true, us(0.0));
        }
        let first = fault(&mut engine, 0, false, us(10.0));
        let fetched = resolve(0, us(15.8192), ResolveKind::Fetch);
        assert_eq!(first, [fetched, evict(11, true, us(free_us))], "{mode}");
        let mut second = fault(&mut engine, 1, false, us(10.0));
        engine.handle(Event::Tick, us(100.0));
        second.extend(actions(&mut engine));
        assert!(
            second.contains(&resolve(1, us(ready_us), ResolveKind::Fetch)),
            "{mode}: {second:?}"
        );
        let stalls = u64::from(write_back == WriteBack::Charged);
        assert_eq!(engine.counters().stall_count, stalls, "{mode}");
    }
}

#[test]
fn discard_makes_the_next_touch_a_first_touch() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 8), 3);
    fault(&mut engine, 0, false, us(0.0));
    engine.handle(Event::Tick, us(10.0));
    fault(&mut engine, 1, false, us(10.0));
    // Page 0 is local, page 1 in flight, page 2 remote.
    engine.handle(discard(0, u64::MAX), us(11.0));
    assert_eq!(engine.frames_in_use(), Pages::ZERO);
    for n in 0..3 {
        assert_eq!(engine.status(page(n)), PageStatus::Absent);
        let touched = [resolve(n, us(20.0), ResolveKind::FirstTouch)];
        assert_eq!(fault(&mut engine, n, false, us(20.0)), touched);
    }
}

#[test]
fn discard_of_a_page_that_is_waited_for_still_resolves_it() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 1), 2);
    fault(&mut engine, 9, true, us(0.0));
    assert_eq!(fault(&mut engine, 0, false, us(1.0)), [evict(9, true, us(6.8192))]);
    assert_eq!(fault(&mut engine, 0, true, us(2.0)), []);
    engine.handle(discard(0, 1), us(3.0));
    assert_eq!(fault(&mut engine, 0, false, us(4.0)), []);
    engine.handle(Event::Tick, us(6.8192));
    let kinds = [ResolveKind::FirstTouch, ResolveKind::Joined, ResolveKind::Joined];
    let expected = kinds.map(|kind| resolve(0, us(6.8192), kind));
    assert_eq!(actions(&mut engine), expected);
    // The write among them counts.
    engine.handle(retune(Some(0), None), us(10.0));
    assert_eq!(actions(&mut engine), [evict(0, true, us(15.8192))]);
}

#[test]
fn retune_changes_what_comes_after() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 8), 2);
    let before = [resolve(0, us(5.8192), ResolveKind::Fetch)];
    assert_eq!(fault(&mut engine, 0, false, us(0.0)), before);
    let slower = LinkConfig { rtt: Duration::from_us(9), ..link(LinkMode::HalfDuplex) };
    engine.handle(retune(None, Some(slower)), us(0.0));
    // Behind page 0 on the link, as before.
    let after = [resolve(1, us(10.6384), ResolveKind::Fetch)];
    assert_eq!(fault(&mut engine, 1, false, us(0.0)), after);
    assert_eq!(engine.status(page(0)), PageStatus::InFlight { ready_at: us(5.8192) });
}

#[test]
fn rename_moves_what_is_local_and_what_is_remote() {
    let mut engine = with_remote(config(PolicyKind::FIFO, 8), 3);
    fault(&mut engine, 0, true, us(0.0));
    engine.handle(Event::Tick, us(10.0));
    fault(&mut engine, 1, false, us(10.0));
    // Page 0 is local and dirty, page 1 in flight, page 2 remote.
    engine.handle(rename(0, 50, 3), us(11.0));
    let status = |n| engine.status(page(n));
    assert_eq!([0, 1, 2].map(status), [PageStatus::Absent; 3]);
    assert_eq!(
        [50, 51, 52].map(status),
        [PageStatus::Local, PageStatus::Remote, PageStatus::Remote]
    );
    actions(&mut engine);
    engine.handle(retune(Some(0), None), us(20.0));
    assert_eq!(actions(&mut engine), [evict(50, true, us(25.8192))]);
    // Pages that were never touched take the place of what was there.
    engine.handle(rename(0, 50, 3), us(30.0));
    assert_eq!([50, 51, 52].map(|n| engine.status(page(n))), [PageStatus::Absent; 3]);
}

/// All frames pinned: the program must go on, and the report must say so.
#[test]
fn pinned_budget_overcommits_instead_of_hanging() {
    let mut engine = Engine::new(config(PolicyKind::LRU, 2));
    engine.handle(Event::Pin { first: page(0), count: Pages::new(4) }, us(0.0));
    for n in 0..4 {
        let touched = [resolve(n, us(1.0), ResolveKind::FirstTouch)];
        assert_eq!(fault(&mut engine, n, true, us(1.0)), touched);
    }
    assert_eq!(engine.counters().overcommit_count, 2);
    assert_eq!(engine.frames_in_use(), Pages::new(4));
    // Unpinned, the surplus goes.
    engine.handle(Event::Unpin { first: page(0), count: Pages::new(4) }, us(2.0));
    assert_eq!(engine.frames_in_use(), Pages::new(4));
    engine.handle(Event::Tick, us(20.0));
    assert_eq!(engine.frames_in_use(), Pages::new(2));
}

/// Four frames, half of them for probation. Of two pages, the older one is probed; its touch is
/// free and saves it, and page 1 goes on probation instead and is the first to be given up.
#[test]
fn soft_faults_cost_nothing_and_save_the_page() {
    let mut config = config(PolicyKind::LRU, 4);
    config.references = References::SoftFaults;
    config.residency.probation = Fraction::from_percent(50);
    let mut engine = Engine::new(config);
    let probe = |n| Action::Probe { page: page(n) };
    let touched = |n, at| resolve(n, at, ResolveKind::FirstTouch);
    assert_eq!(fault(&mut engine, 0, false, us(0.0)), [touched(0, us(0.0))]);
    assert_eq!(fault(&mut engine, 1, false, us(0.0)), [touched(1, us(0.0)), probe(0)]);
    assert_eq!(engine.status(page(0)), PageStatus::Probation);
    let soft = resolve(0, us(1.0), ResolveKind::Soft);
    assert_eq!(fault(&mut engine, 0, false, us(1.0)), [soft, probe(1)]);
    assert_eq!(engine.counters().soft_count, 1);
    fault(&mut engine, 2, false, us(2.0));
    fault(&mut engine, 3, false, us(2.0));
    let evicted = [evict(1, false, us(3.0)), touched(4, us(3.0))];
    assert_eq!(fault(&mut engine, 4, false, us(3.0))[..2], evicted);
    assert_eq!(engine.status(page(0)), PageStatus::Probation);
}

/// A remote array read in order, 100 µs per page. Each fault brings four more pages, which are
/// there in time, so every fifth access faults.
#[test]
fn prefetch_turns_four_of_five_faults_into_hits() {
    let mut config = config(PolicyKind::FIFO, 32);
    config.prefetch = Prefetch::NextN(4);
    let scan = (0..1000).chain(0..1000).map(|n| Access { page: page(n), write: false });
    let outcome = trace::run(config, Duration::from_us(100), [scan]);
    let counters = outcome.counters;
    assert_eq!((counters.first_touch_count, counters.fetch_count), (1000, 200));
    // The last pages of the first pass are still local when the second one gets there.
    assert_eq!((counters.prefetch_count, counters.prefetch_used_count), (800, 800));
    assert_eq!(counters.joined_count, 0);
}

/// At most half the budget and at most the configured number of pages are in flight when
/// anything is fetched ahead.
#[test]
fn prefetch_is_bounded() {
    for (budget, in_flight_max, ahead) in [(6, 64, 2), (100, 64, 9), (100, 3, 2), (1, 64, 0)] {
        let mut config = config(PolicyKind::FIFO, budget);
        config.prefetch = Prefetch::NextN(9);
        config.prefetch_in_flight_max = in_flight_max;
        let mut engine = with_remote(config, 20);
        fault(&mut engine, 0, false, us(0.0));
        assert_eq!(engine.counters().prefetch_count, ahead, "{budget} frames");
    }
}

/// Two faults wait for the one frame when the budget grows: the second is on the link right behind
/// the first, and what would be fetched ahead of either is not before it.
#[test]
fn prefetch_comes_after_every_fault_that_waits() {
    let mut config = config(PolicyKind::FIFO, 1);
    config.prefetch = Prefetch::NextN(3);
    let mut engine = with_remote(config, 20);
    fault(&mut engine, 30, true, us(0.0));
    fault(&mut engine, 0, false, us(1.0));
    assert_eq!(fault(&mut engine, 10, false, us(1.0)), []);
    engine.handle(retune(Some(6), None), us(2.0));
    let expected = [
        resolve(0, us(7.8192), ResolveKind::Fetch),
        resolve(10, us(8.6384), ResolveKind::Fetch),
        resolve(11, us(9.4576), ResolveKind::Prefetch),
    ];
    assert_eq!(actions(&mut engine), expected);
}

/// Read without thinking, the pages fetched ahead are still in flight when they are wanted: every
/// fault waits its turn on the link, and the scan runs at the speed of the link.
#[test]
fn prefetch_of_a_fast_scan_is_joined() {
    let mut config = config(PolicyKind::FIFO, 64);
    config.prefetch = Prefetch::Stride(8);
    let scan = (0..1000).chain(0..1000).map(|n| Access { page: page(n), write: false });
    let outcome = trace::run(config, Duration::ZERO, [scan]);
    let counters = outcome.counters;
    assert_eq!(counters.fetch_count + counters.joined_count, 1000);
    assert!(counters.joined_count > 800);
    assert_eq!(counters.prefetch_count, counters.prefetch_used_count);
    let fetched = counters.fetch_count + counters.prefetch_count;
    assert!(outcome.elapsed >= PAGE_TIME.saturating_mul(fetched));
}

/// Poisson arrivals on remote pages make the link an M/D/1 queue: the mean wait at load ρ is
/// ρS / 2(1 − ρ), S = 0.8192 µs.
#[test]
fn wait_is_that_of_an_md1_queue() {
    for (load, expected_us) in [(0.1, 0.0455), (0.5, 0.4096), (0.8, 1.6384)] {
        let mut engine = with_remote(config(PolicyKind::FIFO, 200), 1000);
        let mut rng = Pcg32::seed_from_u64(11);
        let mut now_us = 0.0;
        for n in 0..60_000 {
            let uniform = (f64::from(rng.next_u32()) + 0.5) / 2f64.powi(32);
            now_us -= uniform.ln() * 0.8192 / load;
            // Each page was given up eight hundred faults ago.
            fault(&mut engine, n % 1000, false, us(now_us));
        }
        let latencies = engine.latencies();
        assert_eq!((latencies.wait.count(), engine.counters().stall_count), (60_000, 0));
        let mean_us = latencies.wait.mean().as_ns_f64() / 1e3;
        let error = (mean_us / expected_us - 1.0).abs();
        assert!(error < 0.05, "at load {load}: {mean_us} µs, not {expected_us}");
    }
}

/// n threads that think 10 µs, then fault, 5 µs + 0.8192 µs: one alone has a cycle of 15.8192
/// µs; 32 keep the link busy all the time.
#[test]
fn threads_share_the_link_of_a_closed_system() {
    let faults_per_us = |threads: u32| {
        let budget = u64::from(threads) * 4;
        let each = 400;
        let trace = |thread: u32| {
            let first = thread * 10;
            let pages = (0..each).map(move |n| page(first + n % 10));
            pages.map(|page| Access { page, write: false })
        };
        let config = config(PolicyKind::FIFO, budget);
        let outcome = trace::run(config, Duration::from_us(10), (0..threads).map(trace));
        // The first touches, ten per thread, cost thinking only.
        let touches_us = 10.0 * 10.0;
        let elapsed_us = outcome.elapsed.as_ns_f64() / 1e3 - touches_us;
        outcome.counters.fetch_count as f64 / elapsed_us
    };
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.005;
    assert!(near(faults_per_us(1), 0.0632), "{}", faults_per_us(1));
    assert!(near(faults_per_us(32), 1.2207), "{}", faults_per_us(32));
}

/// `DiME`'s setting: 2000 pages written once and then again, 1000 frames, δ = 10 µs, infinite
/// bandwidth, write-backs not charged. Refaults take exactly two times δ, and nothing else takes
/// any time.
#[test]
fn like_dime_every_refault_takes_twice_the_one_way_delay() {
    let one_way = Duration::from_us(10);
    let mut config = config(PolicyKind::FIFO, 1000);
    config.link = LinkConfig::like_dime(one_way, None);
    config.write_back = WriteBack::Ignored;
    let writes = (0..2000).chain(0..2000).map(|n| Access { page: page(n), write: true });
    let outcome = trace::run(config, Duration::ZERO, [writes]);
    assert_eq!(outcome.fault_count(), 4000);
    assert_eq!(outcome.elapsed, Duration::from_us(20).saturating_mul(2000));
    assert_eq!(outcome.counters.evict_dirty_count, 3000);
}
