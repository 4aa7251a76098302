//! Records of `afar predict`.

use measure::Host;
use proptest::prelude::*;
use results::prediction::{Facts, Fetches, Prediction, Slowdown, Software};

use super::{comes_back, is_as_before, many, number, texts};

fn software() -> impl Strategy<Value = Software> {
    let pairs = || many((any::<u64>(), any::<u64>()));
    (pairs(), pairs(), any::<u64>(), any::<u64>()).prop_map(
        |(fetch_ns, fetch_in_order_ns, batch_ns, touch_ns)| Software {
            fetch_ns,
            fetch_in_order_ns,
            batch_ns,
            touch_ns,
        },
    )
}

fn facts() -> impl Strategy<Value = Facts> {
    let counts = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let earlier = many((any::<usize>(), number(), number()));
    let shares = (number(), number(), any::<u64>());
    let times = (prop::option::of(any::<u64>()), any::<u64>());
    (texts(), texts(), ".{0,9}", counts, earlier, shares, times, software()).prop_map(
        |(program, allowed, trap, counts, earlier, shares, times, software)| Facts {
            version: "0.1.0".to_owned(),
            program,
            started_unix_ns: counts.0,
            host: Host::default(),
            trap,
            elapsed_ns: counts.1,
            known_ns: times.0,
            managed_peak_bytes: counts.2,
            first_touch_count: counts.3,
            sampled_share: shares.0,
            sample_seed: shares.2,
            earlier,
            blind_share: shares.1,
            soft_count: counts.4,
            allowed,
            floor_ns: times.1,
            software,
        },
    )
}

fn fetches() -> impl Strategy<Value = Fetches> {
    let counts = (number(), number(), number(), number());
    let more = (number(), number(), number(), number());
    (".{0,9}", ".{0,9}", counts, more, any::<bool>()).prop_map(
        |(local, policy, counts, more, seen_whole)| Fetches {
            local,
            policy,
            miss_ratio: counts.0,
            fetch_count: counts.1,
            fetch_deviation: counts.2,
            fetches_in_turn: counts.3,
            fetches_in_order: more.0,
            soft_count: more.1,
            eviction_count: more.2,
            write_back_count: more.3,
            seen_whole,
        },
    )
}

fn slowdown() -> impl Strategy<Value = Slowdown> {
    let times = (number(), number(), number());
    (".{0,9}", any::<u64>(), prop::option::of(any::<u64>()), times, any::<bool>()).prop_map(
        |(local, rtt_ns, bandwidth_bps, times, seen_whole)| Slowdown {
            local,
            rtt_ns,
            bandwidth_bps,
            slowdown: times.0,
            slowdown_low: times.1,
            slowdown_high: times.2,
            seen_whole,
        },
    )
}

fn prediction() -> impl Strategy<Value = Prediction> {
    (facts(), any::<u64>(), ".{0,9}", many(fetches()), many(slowdown())).prop_map(
        |(profile, alone_ns, policy, curve, points)| Prediction {
            version: "0.1.0".to_owned(),
            profile,
            alone_ns,
            of: Some(policy.clone()),
            of_bytes: Some(alone_ns),
            policy,
            curve,
            points,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn predictions_come_back(record in prediction()) {
        comes_back(&record);
    }
}

#[test]
fn predictions_are_what_they_were() {
    let profile = Facts {
        version: "0.1.0".to_owned(),
        program: vec!["/bin/sort".to_owned(), "x".to_owned()],
        started_unix_ns: 7,
        host: Host::default(),
        trap: "bpf".to_owned(),
        elapsed_ns: 1_250_000_000,
        known_ns: None,
        managed_peak_bytes: 1 << 30,
        first_touch_count: 262_144,
        sampled_share: 0.0625,
        sample_seed: 1,
        earlier: vec![(1000, 0.125, 8.0)],
        blind_share: 0.03125,
        soft_count: 90_000,
        allowed: Vec::new(),
        floor_ns: 2500,
        software: Software {
            fetch_ns: vec![(300, 1200), (8000, 1500)],
            fetch_in_order_ns: vec![(300, 1200), (9000, 1300)],
            batch_ns: 48_000,
            touch_ns: 900,
        },
    };
    let fetches = Fetches {
        local: "25%".to_owned(),
        policy: "fifo".to_owned(),
        miss_ratio: 0.125,
        fetch_count: 1000.0,
        fetch_deviation: 12.5,
        fetches_in_turn: 900.0,
        fetches_in_order: 500.0,
        soft_count: 0.0,
        eviction_count: 1100.0,
        write_back_count: 600.0,
        seen_whole: false,
    };
    let slowdown = |bandwidth_bps| Slowdown {
        local: "25%".to_owned(),
        rtt_ns: 3000,
        bandwidth_bps,
        slowdown: 1.5,
        slowdown_low: 1.375,
        slowdown_high: 1.75,
        seen_whole: false,
    };
    let mut record = Prediction {
        version: "0.1.0".to_owned(),
        profile,
        alone_ns: 1_000_000_000,
        of: Some("peak".to_owned()),
        of_bytes: Some(1 << 30),
        policy: "fifo".to_owned(),
        curve: vec![fetches],
        points: vec![slowdown(Some(40_000_000_000)), slowdown(None)],
    };
    is_as_before("prediction", &record);
    record.profile.known_ns = Some(900_000_000);
    assert!(results::write(&record).contains("\"known_ns\": 900000000"));
    comes_back(&record);
}
