//! Miss-ratio curves against printed cases, against simulation, and samples against the whole.

mod oracles;

use oracles::fault_count;
use paging::reuse::{Curve, Distances, Recency, Shards, ShardsConfig};
use paging::{PageIndex, PolicyKind};
use proptest::prelude::*;
use workload::{Draw, Zipf};

fn exact(trace: impl IntoIterator<Item = u64>) -> Curve {
    let mut recency = Recency::new();
    let mut distances = Distances::new();
    for page in trace {
        distances.add(recency.access(page).map(|distance| distance as u64), 1.0);
    }
    distances.curve()
}

fn sampled(config: ShardsConfig, trace: impl IntoIterator<Item = u64>) -> Shards {
    let mut shards = Shards::new(config);
    trace.into_iter().for_each(|page| shards.access(page));
    shards
}

const ALL: ShardsConfig = ShardsConfig { rate: 1.0, pages_max: None, adjust: true, seed: 1 };

/// Misses with 1, 2, … `up_to` frames.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn misses(curve: &Curve, up_to: u64) -> Vec<u64> {
    (1..=up_to).map(|n| (curve.miss_ratio(n) * curve.accesses()).round() as u64).collect()
}

/// The difference at a hundred sizes up to all `pages`, on average.
fn error(one: &Curve, other: &Curve, pages: u64) -> f64 {
    let sizes = (1..=100).map(|step| pages * step / 100);
    sizes.map(|n| (one.miss_ratio(n) - other.miss_ratio(n)).abs()).sum::<f64>() / 100.0
}

/// Independent references by Zipf's law to pages whose numbers say nothing of their popularity.
fn zipf(pages: u64, theta: f64, length: usize) -> impl Iterator<Item = u64> {
    let (zipf, mut draw) = (Zipf::new(pages, theta), Draw::new(7));
    (0..length).map(move |_| zipf.next(&mut draw))
}

#[test]
fn curves_of_printed_strings() {
    let letters = |text: &str| text.bytes().map(u64::from).collect::<Vec<_>>();
    let cycle: Vec<u64> = (0..5).flat_map(|_| 0..4).collect();
    let cases: [(Vec<u64>, &[u64], f64, u64); 3] = [
        (letters("abcabdacbb"), &[9, 9, 6, 4, 4], 4.0, 4),
        (cycle, &[20, 20, 20, 4], 4.0, 4),
        (letters("123412512345"), &[12, 12, 10, 8, 5], 5.0, 5),
    ];
    for (trace, wanted, pages, frames_max) in cases {
        let up_to = wanted.len() as u64;
        let curve = exact(trace.iter().copied());
        assert_eq!(misses(&curve, up_to), wanted);
        assert_eq!((curve.pages(), curve.frames_max()), (pages, frames_max));
        assert_eq!(curve.miss_ratio(0), 1.0);
        // A sample of everything is the thing itself.
        assert_eq!(misses(&sampled(ALL, trace).curve(), up_to), wanted);
    }
}

#[test]
fn first_touches_miss_but_fetch_nothing() {
    let curve = exact([1, 2, 1, 2]);
    assert_eq!([0, 1, 2].map(|n| curve.fetch_ratio(n)), [0.5, 0.5, 0.0]);
    let nothing = exact([]);
    assert_eq!((nothing.miss_ratio(1), nothing.fetch_ratio(1)), (1.0, 0.0));
}

#[test]
fn removed_pages_are_first_touches_again_and_not_in_distances() {
    let mut recency = Recency::new();
    assert_eq!([1, 2, 3, 1].map(|page| recency.access(page)), [None, None, None, Some(3)]);
    assert!(recency.remove(2) && !recency.remove(2));
    assert_eq!(recency.len(), 2);
    assert_eq!([3, 2, 1].map(|page| recency.access(page)), [Some(2), None, Some(3)]);
}

/// Without a correction, pages that are sampled more often than their share drown the rest.
#[test]
fn correction_takes_out_what_a_popular_page_adds() {
    // Page 0 is half of all accesses; the rest are a cycle over 999 pages.
    let trace = || (0..100_000_u64).flat_map(|i| [0, 1 + i % 999]);
    let whole = exact(trace());
    let errors = |adjust| {
        let of_seed = |seed| {
            let config = ShardsConfig { rate: 0.1, pages_max: None, adjust, seed };
            error(&sampled(config, trace()).curve(), &whole, 1000)
        };
        (0..20).map(of_seed).sum::<f64>() / 20.0
    };
    let (without, with) = (errors(false), errors(true));
    assert!(with < 0.05 && without > 5.0 * with, "{without} {with}");
}

#[test]
fn fixed_size_keeps_its_bound_and_the_curve() {
    let trace = || zipf(50_000, 0.8, 500_000);
    let config = ShardsConfig { pages_max: Some(2000), ..ALL };
    let shards = sampled(config, trace());
    let (kept, rate) = (shards.pages(), shards.rate());
    assert!(kept <= 2000 && rate < 0.06, "{kept} {rate}");
    let found = error(&shards.curve(), &exact(trace()), 50_000);
    assert!(found <= 0.02, "{found}");
}

/// A million pages, one in a hundred of them sampled; without optimisation a tenth of that, unless
/// `AFAR_TEST_FULL` is set.
#[test]
fn sample_of_zipf_is_within_a_hundredth_of_exact() {
    let full = !cfg!(debug_assertions) || std::env::var_os("AFAR_TEST_FULL").is_some();
    let (pages, length, rate) =
        if full { (1_000_000, 10_000_000, 0.01) } else { (100_000, 1_000_000, 0.1) };
    let whole = exact(zipf(pages, 0.9, length));
    for seed in 1..=2 {
        let config = ShardsConfig { rate, pages_max: None, adjust: true, seed };
        let found = error(&sampled(config, zipf(pages, 0.9, length)).curve(), &whole, pages);
        assert!(found <= 0.01, "seed {seed}: {found}");
    }
}

proptest! {
    /// Streams long enough for the tree to be rebuilt, against counting with each number of frames.
    #[test]
    fn distances_count_what_lru_misses(
        seed in 0_u64..1000, pages in 1_u64..60, length in 0_usize..3000, frames in 1_usize..70,
    ) {
        let mut draw = Draw::new(seed);
        let mut page = || draw.below(pages).min(draw.below(pages));
        let trace: Vec<u64> = (0..length).map(|_| page()).collect();
        let curve = exact(trace.iter().copied());
        let index = |&page: &u64| PageIndex::try_from(page).expect("few pages");
        let wanted = fault_count(PolicyKind::LRU, frames, 0, trace.iter().map(index));
        let found = curve.miss_ratio(frames as u64) * curve.accesses();
        prop_assert!(trace.is_empty() || (found - wanted as f64).abs() < 1e-6, "{found} {wanted}");
    }
}
