//! Records of `afar version`.

use proptest::prelude::*;
use results::about::About;

use super::{comes_back, is_as_before, texts};

fn about() -> impl Strategy<Value = About> {
    (".{0,9}", ".{0,9}", ".{0,9}", any::<bool>(), texts()).prop_map(
        |(version, target, compiler, is_optimized, records)| About {
            version,
            target,
            compiler,
            is_optimized,
            records,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn versions_come_back(record in about()) {
        comes_back(&record);
    }
}

#[test]
fn versions_are_what_they_were() {
    let record = About {
        version: "0.1.0".to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        compiler: "rustc 1.91.0".to_owned(),
        is_optimized: true,
        records: ["afar.doctor/2", "afar.run/2"].map(str::to_owned).to_vec(),
    };
    is_as_before("version", &record);
}
