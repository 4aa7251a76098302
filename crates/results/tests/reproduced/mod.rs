//! Records of `afar reproduce`.

use measure::Host;
use proptest::prelude::*;
use results::reproduced::{Claim, Reproduction};
use serde_json::{Value, json};

use super::{comes_back, is_as_before, many, number, texts};

fn value() -> impl Strategy<Value = Value> {
    let points = many((".{0,9}", number(), any::<u64>()));
    points.prop_map(|points| {
        points.iter().map(|(way, iops, count)| json!({"way": way, "at": [iops, count]})).collect()
    })
}

fn reproduction() -> impl Strategy<Value = Reproduction> {
    let claim = (prop::option::of(any::<bool>()), ".{0,9}");
    let claim = claim.prop_map(|(holds, text)| Claim { holds, text });
    let names = (".{0,9}", ".{0,9}", texts(), any::<u64>());
    (names, value(), value(), value(), many(claim), any::<bool>()).prop_map(
        |(names, bed, points, paper, verdicts, interrupted)| Reproduction {
            version: "0.1.0".to_owned(),
            figure: names.0,
            title: names.1,
            command: names.2,
            unix_ns: names.3,
            host: Host::default(),
            bed,
            points,
            paper,
            verdicts,
            interrupted,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reproductions_come_back(record in reproduction()) {
        comes_back(&record);
    }
}

#[test]
fn reproductions_are_what_they_were() {
    let claim = |holds, text: &str| Claim { holds, text: text.to_owned() };
    let record = Reproduction {
        version: "0.1.0".to_owned(),
        figure: "guz-fig2".to_owned(),
        title: "Guz et al. 2017, Fig. 2".to_owned(),
        command: ["afar", "reproduce", "guz-fig2"].map(str::to_owned).to_vec(),
        unix_ns: 7,
        host: Host::default(),
        bed: json!({"channels": 1}),
        points: json!([{"way": "local", "iops": 1000.5}, {"way": "iscsi", "iops": 700}]),
        paper: json!({"iscsi": 0.75}),
        verdicts: vec![
            claim(Some(true), "iSCSI is slower"),
            claim(Some(false), "NVMe/TCP is as fast as the drive"),
            claim(None, "writes are as fast as reads"),
        ],
        interrupted: false,
    };
    is_as_before("reproduce", &record);
}
