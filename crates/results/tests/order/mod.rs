//! Records of `afar run --remember`.

use proptest::prelude::*;
use results::order::PageOrder;

use super::{comes_back, is_as_before, texts};

fn order() -> impl Strategy<Value = PageOrder> {
    (texts(), ".{0,9}", prop::option::of(".{0,9}"), any::<u64>(), texts()).prop_map(
        |(program, executable, executable_hash, page_count, runs)| PageOrder {
            version: "0.1.0".to_owned(),
            program,
            executable,
            executable_hash,
            page_count,
            runs,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn orders_come_back(record in order()) {
        comes_back(&record);
    }
}

#[test]
fn orders_are_what_they_were() {
    let record = PageOrder {
        version: "0.1.0".to_owned(),
        program: ["sort", "words"].map(str::to_owned).to_vec(),
        executable: "/usr/bin/sort".to_owned(),
        executable_hash: Some("00f3aa2c95db7b01".to_owned()),
        page_count: 6,
        runs: ["0:7ffff7a00+4", "1:555555559+1", "0:7ffff79ff+1"].map(str::to_owned).to_vec(),
    };
    is_as_before("order", &record);
}
