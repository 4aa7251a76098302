//! Miss ratios by formula and by small models, against printed numbers and simulation.

mod oracles;

use oracles::fault_count;
use paging::reuse::{Mini, MiniConfig, Popularity};
use paging::{PageIndex, PolicyKind};
use workload::{Draw, Zipf};

const SEED: u64 = 7;

/// Zipf's law with a = 1 over a thousand pages.
fn zipf() -> impl Iterator<Item = f64> {
    (1..=1000).map(|rank| 1.0 / f64::from(rank))
}

/// Independent references by it.
fn references(length: usize) -> Vec<PageIndex> {
    let mut sum = 0.0;
    let up_to: Vec<f64> = zipf()
        .map(|share| {
            sum += share;
            sum
        })
        .collect();
    let mut draw = Draw::new(SEED);
    let page = |_| {
        let drawn = draw.unit() * sum;
        let rank = up_to.partition_point(|&up_to| up_to <= drawn);
        PageIndex::try_from(rank as u64).expect("there are a thousand ranks")
    };
    (0..length).map(page).collect()
}

fn ratio(popularity: &Popularity, policy: PolicyKind, frames: u64) -> f64 {
    popularity.miss_ratio(policy, frames).expect("there is a formula")
}

#[test]
fn formulas_of_lru_and_fifo_are_the_printed_ones() {
    let popularity = Popularity::new(zipf(), 1.0);
    let lru = [(10, 0.7905), (100, 0.4235), (250, 0.2623), (500, 0.1325)];
    let fifo = [(10, 0.8211), (100, 0.4798), (250, 0.3112), (500, 0.1676)];
    let cases = [(PolicyKind::LRU, lru), (PolicyKind::FIFO, fifo), (PolicyKind::RANDOM, fifo)];
    for (policy, expected) in cases {
        for (frames, wanted) in expected {
            let found = ratio(&popularity, policy, frames);
            assert!((found - wanted).abs() < 1e-4, "{policy} at {frames}: {found}");
        }
    }
    assert_eq!(popularity.miss_ratio(PolicyKind::S3FIFO, 10), None);
}

#[test]
fn formula_of_clock_is_near_the_simulation_and_below_that_of_fifo() {
    let popularity = Popularity::new(zipf(), 1.0);
    let trace = references(400_000);
    for frames in [10, 100, 250, 500] {
        let [clock, fifo] = [PolicyKind::CLOCK, PolicyKind::FIFO]
            .map(|policy| ratio(&popularity, policy, frames as u64));
        let faults = fault_count(PolicyKind::CLOCK, frames, SEED, trace.iter().copied());
        let simulated = faults as f64 / trace.len() as f64;
        assert!((clock - simulated).abs() < 0.005, "{frames}: {clock}, not {simulated}");
        assert!(clock < fifo, "{frames}: {clock} {fifo}");
    }
}

/// A page of n is local with probability C/n whatever the policy.
#[test]
fn equally_popular_pages_miss_what_has_no_frame() {
    let popularity = Popularity::new([3.0; 200], 1.0);
    for policy in [PolicyKind::LRU, PolicyKind::FIFO, PolicyKind::CLOCK] {
        for frames in [0, 1, 50, 199, 200, 1000] {
            let wanted = 1.0 - (frames as f64 / 200.0).min(1.0);
            let found = ratio(&popularity, policy, frames);
            assert!((found - wanted).abs() < 1e-9, "{policy} at {frames}: {found}");
        }
    }
}

#[test]
fn pages_of_a_sample_stand_for_others() {
    let all = Popularity::new(zipf().chain(zipf()).chain([0.0]), 1.0);
    let half = Popularity::new(zipf(), 2.0);
    assert_eq!((all.pages(), half.pages()), (2000.0, 2000.0));
    let ratios = [&all, &half].map(|one| ratio(one, PolicyKind::LRU, 300));
    assert!((ratios[0] - ratios[1]).abs() < 1e-9, "{ratios:?}");
}

/// Belady's anomaly included, which no curve of distances has.
#[test]
fn model_of_all_pages_is_the_policy() {
    let string = "123412512345".repeat(3);
    let frames = vec![1, 2, 3, 4, 5];
    for policy in PolicyKind::ALL {
        let config = MiniConfig { rate: 1.0, policy, frames: frames.clone(), seed: SEED };
        let mut mini = Mini::new(config);
        string.bytes().for_each(|page| mini.access(page.into()));
        for (frames, found) in mini.miss_ratios() {
            // As numbered by the model: in the order of arrival.
            let pages = string.bytes().map(|page| PageIndex::new(u32::from(page - b'1')));
            let capacity = usize::try_from(frames).expect("few");
            let wanted = fault_count(policy, capacity, SEED, pages) as f64 / string.len() as f64;
            assert_eq!(found, wanted, "{policy} at {frames}");
        }
    }
}

/// Two thousand sampled pages are two thousand give or take 45, so one sample may be off by some
/// per cent of what misses; eight of them are off to both sides.
#[test]
fn models_of_samples_scatter_around_the_whole() {
    let pages = 20_000;
    let (law, mut draw) = (Zipf::new(pages, 0.8), Draw::new(SEED));
    let trace: Vec<u64> = (0..400_000).map(|_| law.next(&mut draw)).collect();
    let frames: Vec<u64> = (1..=10).map(|step| pages * step / 10).collect();
    for policy in [PolicyKind::FIFO, PolicyKind::CLOCK] {
        let whole = |&frames: &u64| {
            let all = trace.iter().map(|&page| PageIndex::try_from(page).expect("few"));
            let capacity = usize::try_from(frames).expect("few");
            fault_count(policy, capacity, SEED, all) as f64 / trace.len() as f64
        };
        let wanted: Vec<f64> = frames.iter().map(whole).collect();
        let mut errors = Vec::new();
        for seed in 1..=8 {
            let mut mini =
                Mini::new(MiniConfig { rate: 0.1, policy, frames: frames.clone(), seed });
            trace.iter().for_each(|&page| mini.access(page));
            errors
                .extend(mini.miss_ratios().zip(&wanted).map(|((_, found), wanted)| found - wanted));
        }
        let mean = |of: fn(&f64) -> f64| errors.iter().map(of).sum::<f64>() / errors.len() as f64;
        let (off, aside) = (mean(|error| error.abs()), mean(|&error| error).abs());
        assert!(off < 0.02 && aside < 0.01, "{policy}: {off} {aside}");
    }
}
