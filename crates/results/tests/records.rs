//! Every record is read as it was written, and its text is what it was.

mod about;
mod disks;
mod doctor;
mod live;
mod order;
mod plan;
mod prediction;
mod report;
mod reproduced;
mod served;
mod sim;
mod torture;
mod validation;

use std::collections::BTreeMap;

use measure::Host;
use proptest::prelude::*;
use results::{
    CellKind, ClosedLoop, Estimate, Finding, Findings, Interval, LoopRound, Native, Outlier,
    ReadError, Record, Requirement, Requirements, Side, Standing, Verdict, read, write,
};

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(".{0,8}", 0..4)
}

fn many<S: Strategy>(one: S) -> impl Strategy<Value = Vec<S::Value>> {
    prop::collection::vec(one, 0..4)
}

fn any_settings() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[a-z]{1,6}", ".{0,8}", 0..4)
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), -1e9_f64..1e9, 1e-9_f64..1e-3]
}

fn estimate() -> impl Strategy<Value = Estimate> {
    let interval = (number(), number(), 0.93_f64..1.0);
    let interval = interval.prop_map(|(low, high, level)| Interval { low, high, level });
    (number(), prop::option::of(interval), any::<u32>()).prop_map(|(median, interval, count)| {
        Estimate { median, interval, count: u64::from(count) }
    })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    use Verdict::{Beyond, Disturbed, Implausible, Invalid, Undecided, Within};
    prop::sample::select(vec![Within, Beyond, Undecided, Implausible, Disturbed, Invalid])
}

fn finding() -> impl Strategy<Value = Finding> {
    let kind = prop::sample::select(vec![
        CellKind::Native,
        CellKind::Small,
        CellKind::Zero,
        CellKind::Far,
    ]);
    let outliers = (0..9_u32, number()).prop_map(|(block, slowdown)| Outlier { block, slowdown });
    let estimates = (prop::option::of(estimate()), prop::option::of(estimate()));
    let counts = (0..9_u64, 0..9_u64, 0..9_u64, 0..9_u64, 0..9_u64);
    let why = || prop::option::of(".{0,9}");
    (
        (kind, any_settings(), verdict(), prop::collection::vec(outliers, 0..3)),
        estimates,
        counts,
        (why(), why(), why(), prop::option::of(any::<u32>())),
    )
        .prop_map(|((kind, settings, verdict, outliers), estimates, counts, whys)| Finding {
            kind,
            settings,
            slowdown: estimates.0,
            slowdown_beside_zero: estimates.1,
            verdict,
            outliers,
            failed_count: counts.0,
            first_failure: whys.0,
            invalid_count: counts.1,
            first_invalid: whys.1,
            disturbed_count: counts.2,
            first_disturbance: whys.2,
            allowed_count: counts.3,
            fetch_count: whys.3.map(u64::from),
            of_bytes: whys.3.map(u64::from),
            local_bytes: whys.3.map(u64::from),
            budget_exceeded_count: counts.4,
        })
}

fn findings() -> impl Strategy<Value = Findings> {
    let native = (estimate(), ".{0,9}", any::<bool>());
    let native = native.prop_map(|(figure, metric, higher_is_better)| Native {
        figure,
        metric,
        higher_is_better,
    });
    let cells = prop::collection::vec(finding(), 0..4);
    (texts(), texts(), prop::option::of(native), cells).prop_map(
        |(command, workload, native, cells)| Findings {
            version: "0.1.0".to_owned(),
            command,
            started_unix_ns: 7,
            host: Host::default(),
            workload,
            native,
            cells,
        },
    )
}

fn requirements() -> impl Strategy<Value = Requirements> {
    let side = || {
        let side = (".{0,9}", prop::option::of(estimate()));
        prop::option::of(side.prop_map(|(value, slowdown)| Side { value, slowdown }))
    };
    let standing = prop::sample::select(vec![
        Standing::Confirmed,
        Standing::Undecided,
        Standing::Unsteady,
        Standing::Invalid,
    ]);
    let one = (".{0,9}", side(), side(), standing, prop::option::of(".{0,9}"));
    let one = one.prop_map(|(axis, last_good, first_bad, standing, invalid)| Requirement {
        axis,
        last_good,
        first_bad,
        standing,
        invalid,
    });
    (texts(), any_settings(), prop::collection::vec(one, 0..4), 1.0_f64..9.0).prop_map(
        |(workload, held, requirements, slowdown_max)| Requirements {
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_unix_ns: 7,
            host: Host::default(),
            workload,
            seed: 1,
            slowdown_max,
            held,
            of_bytes: None,
            requirements,
        },
    )
}

fn closed_loop() -> impl Strategy<Value = ClosedLoop> {
    let times = (number(), number(), number());
    let disturbed = prop::option::of(".{0,9}");
    let round = (number(), estimate(), any::<u32>(), times, number(), disturbed);
    let round =
        round.prop_map(|(seconds, slowdown, fetches, times, flow_slowdown, why)| LoopRound {
            seconds,
            slowdown,
            verdict: Some(slowdown.verdict(1.0)),
            disturbed_count: u64::from(why.is_some()),
            first_disturbance: why,
            fetch_count: u64::from(fetches),
            page_mean_us: times.0,
            page_p50_us: times.1,
            page_p99_us: times.2,
            flow_slowdown,
        });
    let rounds = prop::collection::vec(round, 0..4);
    let why = prop::option::of(".{0,9}");
    (texts(), any_settings(), why, any::<bool>(), prop::option::of(number()), rounds).prop_map(
        |(command, network, invalid, agreed, zero_seconds, rounds)| ClosedLoop {
            version: "0.1.0".to_owned(),
            command,
            local: "25%".to_owned(),
            of: invalid.clone(),
            of_bytes: None,
            network: network.into_iter().map(|(name, value)| (name, value.into())).collect(),
            invalid,
            allowed: !agreed,
            zero_seconds,
            rounds,
            agreed,
        },
    )
}

fn comes_back<R: Record + PartialEq + std::fmt::Debug>(record: &R) {
    let text = write(record);
    assert_eq!(&read::<R>(&text).expect("it was just written"), record);
    let unknown = text.replacen('{', "{\"unheard_of\": 1,", 1);
    assert!(matches!(read::<R>(&unknown), Err(ReadError::Json(_))), "an unknown field");
    let (name, version) = R::SCHEMA.rsplit_once('/').expect("a schema has a version");
    let other = text.replacen(&format!("\"{name}/{version}\""), "\"afar.other/1\"", 1);
    assert!(matches!(read::<R>(&other), Err(ReadError::Schema { .. })), "another schema");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn findings_come_back(record in findings()) {
        comes_back(&record);
    }

    #[test]
    fn requirements_come_back(record in requirements()) {
        comes_back(&record);
    }

    #[test]
    fn loops_come_back(record in closed_loop()) {
        comes_back(&record);
    }
}

// Whoever changes a record sees it here, and gives it another version.
fn is_as_before<R: Record + PartialEq + std::fmt::Debug>(name: &str, record: &R) {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = write(record);
    if std::env::var_os("AFAR_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the source tree can be written to");
    }
    let golden = std::fs::read_to_string(&path).expect("a golden file; AFAR_BLESS=1 makes it");
    assert_eq!(text, golden);
    assert_eq!(&read::<R>(&golden).expect("it is a record"), record);
}

fn sure(median: f64) -> Estimate {
    let interval = Interval { low: median - 0.125, high: median + 0.125, level: 0.9375 };
    Estimate { median, interval: Some(interval), count: 5 }
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(axis, value)| (axis.to_owned(), value.to_owned())).collect()
}

#[test]
fn findings_are_what_they_were() {
    let far = settings(&[("engine", "arena"), ("local", "25%"), ("of", "peak"), ("rtt", "5us")]);
    let few = Estimate { median: 1.5, interval: None, count: 2 };
    let slow = Finding {
        slowdown: Some(sure(2.0)),
        slowdown_beside_zero: Some(sure(1.75)),
        verdict: Verdict::Beyond,
        outliers: vec![Outlier { block: 3, slowdown: 4.5 }],
        fetch_count: Some(1000),
        of_bytes: Some(512 << 20),
        local_bytes: Some(128 << 20),
        ..Finding::new(CellKind::Far, far)
    };
    assert_eq!(slow.share_told().as_deref(), Some("512.0 MiB (the most it used)"));
    let old = settings(&[("local", "25%")]);
    let live = Finding::new(CellKind::Far, old).share_told();
    assert_eq!(live.as_deref(), Some("what is in use at each moment (live footprint)"));
    let size = settings(&[("local", "25MiB")]);
    assert_eq!(Finding::new(CellKind::Far, size).share_told(), None);
    let spoilt = Finding {
        slowdown: Some(few),
        verdict: Verdict::Disturbed,
        failed_count: 1,
        first_failure: Some("it hung".to_owned()),
        invalid_count: 2,
        first_invalid: Some("invalid: it ran natively".to_owned()),
        disturbed_count: 2,
        first_disturbance: Some("other programs".to_owned()),
        allowed_count: 1,
        budget_exceeded_count: 1,
        ..Finding::new(CellKind::Zero, settings(&[("engine", "arena")]))
    };
    is_as_before(
        "findings",
        &Findings {
            version: "0.1.0".to_owned(),
            command: vec!["afar".to_owned(), "sweep".to_owned()],
            started_unix_ns: 7,
            host: Host::default(),
            workload: vec!["sort".to_owned()],
            native: Some(Native {
                figure: sure(0.5),
                metric: "seconds".to_owned(),
                higher_is_better: false,
            }),
            cells: vec![slow, spoilt],
        },
    );
}

#[test]
fn requirements_are_what_they_were() {
    let side = |value: &str, median| Side { value: value.to_owned(), slowdown: Some(sure(median)) };
    is_as_before(
        "requirement",
        &Requirements {
            version: "0.1.0".to_owned(),
            command: vec!["afar".to_owned(), "sweep".to_owned()],
            started_unix_ns: 7,
            host: Host::default(),
            workload: vec!["sort".to_owned()],
            seed: 1,
            slowdown_max: 1.5,
            held: settings(&[("local", "25%"), ("of", "peak")]),
            of_bytes: Some(512 << 20),
            requirements: vec![
                Requirement {
                    axis: "rtt".to_owned(),
                    last_good: Some(side("3us", 1.25)),
                    first_bad: Some(side("5us", 2.0)),
                    standing: Standing::Confirmed,
                    invalid: None,
                },
                Requirement {
                    axis: "local".to_owned(),
                    last_good: None,
                    first_bad: None,
                    standing: Standing::Invalid,
                    invalid: Some("at 25% invalid: it ran natively".to_owned()),
                },
            ],
        },
    );
}

#[test]
fn loops_are_what_they_were() {
    is_as_before(
        "loop",
        &ClosedLoop {
            version: "0.1.0".to_owned(),
            command: vec!["sort".to_owned()],
            local: "25%".to_owned(),
            of: Some("peak".to_owned()),
            of_bytes: Some(512 << 20),
            network: [("transport".to_owned(), "pfabric".into())].into_iter().collect(),
            invalid: None,
            allowed: false,
            zero_seconds: Some(0.5),
            rounds: vec![LoopRound {
                seconds: 1.0,
                slowdown: sure(2.0),
                verdict: None,
                disturbed_count: 1,
                first_disturbance: Some("other guests".to_owned()),
                fetch_count: 1000,
                page_mean_us: 4.5,
                page_p50_us: 4.25,
                page_p99_us: 9.0,
                flow_slowdown: 1.5,
            }],
            agreed: true,
        },
    );
}
