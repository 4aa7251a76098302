//! Records of `afar doctor`.

use proptest::prelude::*;
use results::doctor::{Check, Checkup, Leftover, State, What};

use super::{comes_back, is_as_before, many};

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        (any::<u32>(), ".{0,9}").prop_map(|(pid, name)| What::Orphan { pid, name }),
        any::<u32>().prop_map(|pid| What::Supervisor { pid }),
        ".{0,9}".prop_map(|path| What::Path { path }),
        ".{0,9}".prop_map(|path| What::Mount { path }),
        ".{0,9}".prop_map(|path| What::Socket { path }),
        (any::<u32>(), ".{0,9}").prop_map(|(keeper, changes)| What::Swap { keeper, changes }),
    ]
}

fn checkup() -> impl Strategy<Value = Checkup> {
    let state = prop::sample::select(vec![State::Ok, State::No]);
    let why = || prop::option::of(".{0,9}");
    let check = (".{0,9}", state, ".{0,9}", why(), why());
    let check = check.prop_map(|(name, state, found, needed_for, remedy)| Check {
        name,
        state,
        found,
        needed_for,
        remedy,
    });
    let leftover = (what(), any::<bool>(), why());
    let leftover = leftover.prop_map(|(what, removed, error)| Leftover { what, removed, error });
    (any::<bool>(), many(check), many(leftover)).prop_map(|(usable, checks, leftovers)| Checkup {
        version: "0.1.0".to_owned(),
        usable,
        checks,
        leftovers,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn checkups_come_back(record in checkup()) {
        comes_back(&record);
    }
}

#[test]
fn checkups_are_what_they_were() {
    let missing = Check::no("userfaultfd", "permission denied");
    let missing = missing.needed_for("--trap userfaultfd").fix("sudo setfacl");
    let left = |what| Leftover { what, removed: true, error: None };
    let path = || "/sys/fs/bpf/afar-7".to_owned();
    let stuck = Leftover {
        removed: false,
        error: Some("it is in use".to_owned()),
        ..left(What::Mount { path: path() })
    };
    let record = Checkup {
        version: "0.1.0".to_owned(),
        usable: false,
        checks: vec![Check::ok("kernel", "6.18"), missing],
        leftovers: vec![
            left(What::Swap { keeper: 5, changes: "a swap space".to_owned() }),
            left(What::Orphan { pid: 7, name: "sort".to_owned() }),
            left(What::Supervisor { pid: 8 }),
            left(What::Path { path: path() }),
            stuck,
            left(What::Socket { path: path() }),
        ],
    };
    is_as_before("doctor", &record);
}
