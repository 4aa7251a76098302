//! Records of `afar torture`.

use measure::Host;
use proptest::prelude::*;
use results::torture::{Case, Felt, Params, Results, Torture, Verdict};

use super::{comes_back, is_as_before, many, texts};

const VERDICTS: [Verdict; 4] =
    [Verdict::AsStated, Verdict::Not, Verdict::NotOffered, Verdict::Skipped];

fn felt() -> impl Strategy<Value = Felt> {
    let counts = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    (counts, prop::option::of(".{0,9}")).prop_map(|(counts, first_failure)| Felt {
        read_count: counts.0,
        error_count: counts.1,
        p99_ns: counts.2,
        max_ns: counts.3,
        first_failure,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let names = (".{0,9}", ".{0,9}", ".{0,9}", prop::sample::select(VERDICTS.to_vec()));
    let seen = prop::collection::btree_map(".{0,9}", any::<u64>(), 0..4);
    let resident = (prop::option::of(any::<u64>()), prop::option::of(any::<u64>()));
    let counts = (any::<u64>(), any::<u64>(), any::<u64>());
    (names, texts(), texts(), seen, felt(), resident, counts).prop_map(
        |(names, reasons, wrong, seen, neighbour, resident, counts)| Case {
            name: names.0,
            what: names.1,
            expected: names.2,
            verdict: names.3,
            reasons,
            seen,
            way_count: counts.0,
            wrong_count: counts.1,
            wrong,
            neighbour,
            resident_before_bytes: resident.0,
            resident_after_bytes: resident.1,
            elapsed_ns: counts.2,
        },
    )
}

fn torture() -> impl Strategy<Value = Torture> {
    let params = (".{0,9}", ".{0,9}", any::<bool>(), any::<bool>(), any::<u64>());
    let params = (params, many(any::<u32>())).prop_map(|(params, processes)| Params {
        target: params.0,
        neighbour: params.1,
        is_quick: params.2,
        allows_writes: params.3,
        patience_ns: params.4,
        processes,
    });
    let results = (felt(), any::<bool>(), any::<bool>(), many(case()));
    let results = results.prop_map(|(calm, interrupted, target_is_gone, cases)| Results {
        calm,
        interrupted,
        target_is_gone,
        cases,
    });
    (texts(), any::<u64>(), any::<u64>(), params, results).prop_map(
        |(command, started_unix_ns, seed, params, results)| Torture {
            version: "0.1.0".to_owned(),
            command,
            started_unix_ns,
            seed,
            host: Host::default(),
            params,
            results,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tortures_come_back(record in torture()) {
        comes_back(&record);
    }
}

#[test]
fn verdicts_are_written_in_their_words() {
    for verdict in VERDICTS {
        assert_eq!(serde_json::to_value(verdict).expect("it is a text"), verdict.words());
    }
}

const fn at_most(max_ns: u64) -> Felt {
    Felt { read_count: 900, error_count: 0, p99_ns: 60_000, max_ns, first_failure: None }
}

#[test]
fn tortures_are_what_they_were() {
    let wrong = Case {
        name: "N8".to_owned(),
        what: "PLEN 0".to_owned(),
        expected: "T1".to_owned(),
        verdict: Verdict::Not,
        reasons: Vec::new(),
        seen: [("T1".to_owned(), 2), ("C".to_owned(), 1)].into(),
        way_count: 3,
        wrong_count: 1,
        wrong: vec!["PLEN 0: C, not T1".to_owned()],
        neighbour: Felt {
            error_count: 1,
            first_failure: Some("connection reset".to_owned()),
            ..at_most(90_000)
        },
        resident_before_bytes: Some(8 << 20),
        resident_after_bytes: Some(9 << 20),
        elapsed_ns: 1_500_000,
    };
    let right = Case {
        name: "N9".to_owned(),
        verdict: Verdict::AsStated,
        seen: [("T1".to_owned(), 3)].into(),
        wrong_count: 0,
        wrong: Vec::new(),
        neighbour: at_most(2_000_000),
        ..wrong.clone()
    };
    let skipped = Case {
        name: "N10".to_owned(),
        verdict: Verdict::Skipped,
        reasons: vec!["it may write".to_owned()],
        seen: [].into(),
        way_count: 0,
        neighbour: Felt::default(),
        resident_before_bytes: None,
        resident_after_bytes: None,
        elapsed_ns: 0,
        ..right.clone()
    };
    let record = Torture {
        version: "0.1.0".to_owned(),
        command: vec!["afar".to_owned(), "torture".to_owned()],
        started_unix_ns: 7,
        seed: 1,
        host: Host::default(),
        params: Params {
            target: "nvme+tcp://a/b".to_owned(),
            neighbour: "nvme+tcp://a/c".to_owned(),
            is_quick: true,
            allows_writes: false,
            patience_ns: 30_000_000_000,
            processes: vec![7],
        },
        results: Results {
            calm: at_most(70_000),
            interrupted: false,
            target_is_gone: false,
            cases: vec![wrong, right, skipped],
        },
    };
    is_as_before("torture", &record);
}
