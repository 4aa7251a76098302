//! Records of `afar bench` of several disks.

use measure::Host;
use proptest::prelude::*;
use results::Estimate;
use results::disks::{
    ComparedDisk, ComparedFigure, DiskComparison, DiskFigure, DiskRun, DiskVerdict,
};

use super::{comes_back, estimate, is_as_before, many, number, sure, texts};

fn figure() -> impl Strategy<Value = ComparedFigure> {
    use DiskVerdict::{Disturbed, Faster, Same, Slower, Undecided};
    let verdict = prop::sample::select(vec![Faster, Slower, Same, Undecided, Disturbed]);
    let figure = prop::sample::select(DiskFigure::ALL.to_vec());
    (figure, estimate(), prop::option::of(estimate()), prop::option::of(verdict)).prop_map(
        |(figure, value, ratio, verdict)| ComparedFigure { figure, value, ratio, verdict },
    )
}

fn run() -> impl Strategy<Value = DiskRun> {
    let rates = (number(), number());
    let times = (number(), number(), number(), number());
    let why = prop::option::of(".{0,9}");
    (any::<[u64; 5]>(), rates, times, why).prop_map(|(counts, rates, times, disturbed)| DiskRun {
        block: counts[0],
        turn: counts[1],
        request_count: counts[2],
        unmade_count: counts[3],
        iops: rates.0,
        bytes_per_s: rates.1,
        mean_us: times.0,
        p50_us: times.1,
        p99_us: times.2,
        p999_us: times.3,
        repeated_count: counts[4],
        disturbed,
    })
}

fn disk() -> impl Strategy<Value = ComparedDisk> {
    let disturbed = (any::<u64>(), prop::option::of(".{0,9}"));
    (".{0,2}", ".{0,9}", many(figure()), many(run()), disturbed).prop_map(
        |(letter, uri, figures, runs, disturbed)| ComparedDisk {
            letter,
            uri,
            figures,
            runs,
            disturbed_count: disturbed.0,
            first_disturbance: disturbed.1,
        },
    )
}

fn comparison() -> impl Strategy<Value = DiskComparison> {
    let words = (texts(), ".{0,9}", prop::option::of(".{0,9}"));
    (words, any::<[u64; 4]>(), any::<bool>(), many(disk())).prop_map(
        |((command, load, failure), counts, interrupted, disks)| DiskComparison {
            version: "0.1.0".to_owned(),
            command,
            started_unix_ns: counts[0],
            seed: counts[1],
            host: Host::default(),
            load,
            repetitions: counts[2],
            block_count: counts[3],
            interrupted,
            failure,
            disks,
        },
    )
}

proptest! {
    #[test]
    fn comparisons_of_disks_come_back(record in comparison()) {
        comes_back(&record);
    }
}

#[test]
fn comparisons_of_disks_are_what_they_were() {
    let run = |block, disturbed: Option<&str>| DiskRun {
        block,
        turn: 2,
        request_count: 3000,
        unmade_count: 0,
        iops: 1000.0,
        bytes_per_s: 4_096_000.0,
        mean_us: 100.5,
        p50_us: 98.0,
        p99_us: 140.25,
        p999_us: 300.0,
        repeated_count: 1,
        disturbed: disturbed.map(str::to_owned),
    };
    let disk = |letter: &str, uri: &str, others: Vec<ComparedFigure>| ComparedDisk {
        letter: letter.to_owned(),
        uri: uri.to_owned(),
        figures: others,
        runs: vec![run(1, None), run(2, Some("other programs"))],
        disturbed_count: 1,
        first_disturbance: Some("other programs".to_owned()),
    };
    let figure = |figure, value, ratio: Option<Estimate>, verdict| ComparedFigure {
        figure,
        value: sure(value),
        ratio,
        verdict,
    };
    let alone = |name, value| figure(name, value, None, None);
    let beside = |name, value, verdict| figure(name, value, Some(sure(0.5)), Some(verdict));
    is_as_before(
        "disks",
        &DiskComparison {
            version: "0.1.0".to_owned(),
            command: ["afar", "bench", "memory:1GiB", "null:"].map(str::to_owned).to_vec(),
            started_unix_ns: 7,
            seed: 1,
            host: Host::default(),
            load: "randread of 4.0 KiB, closed loop, depth 1".to_owned(),
            repetitions: 5,
            block_count: 2,
            interrupted: true,
            failure: None,
            disks: vec![
                disk("A", "memory:1GiB", DiskFigure::ALL.map(|name| alone(name, 2.0)).to_vec()),
                disk(
                    "B",
                    "null:",
                    vec![
                        beside(DiskFigure::Iops, 1.0, DiskVerdict::Slower),
                        beside(DiskFigure::P99Us, 1.0, DiskVerdict::Faster),
                        beside(DiskFigure::MeanUs, 1.0, DiskVerdict::Same),
                        beside(DiskFigure::P50Us, 1.0, DiskVerdict::Disturbed),
                        beside(DiskFigure::P999Us, 1.0, DiskVerdict::Undecided),
                    ],
                ),
            ],
        },
    );
}
