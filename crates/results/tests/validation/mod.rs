//! Records of `afar run --validate`.

use proptest::prelude::*;
use results::{Agreement, Emulated, Estimate, FetchTimes, ValidatedSide, Validation};

use super::{comes_back, estimate, is_as_before, many, number, sure, texts};

fn times() -> impl Strategy<Value = FetchTimes> {
    (any::<u64>(), number(), number(), number())
        .prop_map(|(count, mean_us, p50_us, p99_us)| FetchTimes { count, mean_us, p50_us, p99_us })
}

fn side() -> impl Strategy<Value = ValidatedSide> {
    let counts = (number(), number());
    (".{0,9}", estimate(), estimate(), counts, times()).prop_map(
        |(wait, seconds, slowdown, (fetch_count, moved_bytes), fetch)| ValidatedSide {
            wait,
            seconds,
            slowdown,
            fetch_count,
            moved_bytes,
            fetch,
        },
    )
}

fn agreement() -> impl Strategy<Value = Agreement> {
    use Agreement::{Agrees, Counts, Differs, Disturbed, Insensitive, Undecided};
    prop::sample::select(vec![Agrees, Differs, Counts, Undecided, Insensitive, Disturbed])
}

fn emulated() -> impl Strategy<Value = Emulated> {
    let ratios = (estimate(), number(), number());
    let disturbed = (any::<u64>(), prop::option::of(".{0,9}"));
    (".{0,9}", side(), ratios, agreement(), disturbed).prop_map(
        |(name, side, (ratio, fetch_ratio, moved_ratio), agreement, disturbed)| Emulated {
            name,
            side,
            ratio,
            fetch_ratio,
            moved_ratio,
            agreement,
            disturbed_count: disturbed.0,
            first_disturbance: disturbed.1,
        },
    )
}

fn validation() -> impl Strategy<Value = Validation> {
    let of = prop::option::of(".{0,9}");
    let names = (".{0,9}", ".{0,9}", of, ".{0,9}", ".{0,9}");
    let bounds = (any::<u64>(), number(), number(), prop::option::of(".{0,9}"));
    let found = (prop::option::of(times()), prop::option::of(estimate()));
    (texts(), names, bounds, found, prop::option::of(side()), many(emulated())).prop_map(
        |(command, names, bounds, found, real, emulated)| Validation {
            version: "0.1.0".to_owned(),
            command,
            far: names.0,
            local: names.1,
            of: names.2,
            policy: names.3,
            prefetch: names.4,
            seed: bounds.0,
            within: bounds.1,
            counts_within: bounds.2,
            invalid: bounds.3,
            profile: found.0,
            native_seconds: found.1,
            real,
            emulated,
        },
    )
}

proptest! {
    #[test]
    fn validations_come_back(record in validation()) {
        comes_back(&record);
    }
}

#[test]
fn validations_are_what_they_were() {
    let fetch = FetchTimes { count: 5000, mean_us: 44.5, p50_us: 40.25, p99_us: 120.0 };
    let side = |median: f64| ValidatedSide {
        wait: "sleep".to_owned(),
        seconds: sure(median),
        slowdown: sure(median / 2.0),
        fetch_count: 5000.0,
        moved_bytes: 30_000_000.0,
        fetch,
    };
    let one = |name: &str, ratio: f64, agreement| Emulated {
        name: name.to_owned(),
        side: side(4.0 * ratio),
        ratio: Estimate { count: 7, ..sure(ratio) },
        fetch_ratio: 0.998,
        moved_ratio: 1.004,
        agreement,
        disturbed_count: 1,
        first_disturbance: Some("other programs".to_owned()),
    };
    is_as_before(
        "validation",
        &Validation {
            version: "0.1.0".to_owned(),
            command: vec!["sort".to_owned()],
            far: "nvme+tcp://blade/nqn.x".to_owned(),
            local: "25%".to_owned(),
            of: Some("live".to_owned()),
            policy: "clock".to_owned(),
            prefetch: "none".to_owned(),
            seed: 1,
            within: 0.05,
            counts_within: 0.02,
            invalid: None,
            profile: Some(fetch),
            native_seconds: Some(sure(2.0)),
            real: Some(side(4.0)),
            emulated: vec![
                one("plain", 1.0, Agreement::Undecided),
                one("scaled", 1.25, Agreement::Differs),
            ],
        },
    );
}
