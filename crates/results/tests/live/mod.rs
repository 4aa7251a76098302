//! The record of `afar watch`, and what runs and targets say of a moment.

use proptest::prelude::*;
use results::live::{RunState, TargetView, Watching};

use super::{comes_back, is_as_before};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_watched_comes_back(watched in ".{0,9}", url in ".{0,9}") {
        comes_back(&Watching { version: "0.1.0".to_owned(), watched, url });
    }
}

#[test]
fn what_is_watched_is_as_it_was() {
    let record = Watching {
        version: "0.1.0".to_owned(),
        watched: "the sweep in redis.sweep".to_owned(),
        url: "http://127.0.0.1:40123/?token=00ff".to_owned(),
    };
    is_as_before("watch", &record);
}

/// What `afar ctl` and `afar top` print has no schema; scripts read its fields.
#[test]
fn moments_are_as_they_were() {
    let run = "{\"pid\":7,\"program\":\"sort\",\"elapsed_ns\":1,\"process_count\":1,\
               \"local_bytes\":2,\"far_bytes\":3,\"fetch_count\":4,\"fetch_p99_ns\":5,\
               \"stall_count\":6,\"tiers\":[{\"name\":\"far\",\"local\":\"25%\",\"rtt_ns\":5000,\
               \"bandwidth_bps\":null,\"link\":\"queue\",\"profile\":false}]}";
    let state: RunState = serde_json::from_str(run).expect("a run");
    assert_eq!(serde_json::to_string(&state).expect("plain data"), run);
    let operation = "{\"commands\":1.0,\"iops\":2.0,\"mb_per_s\":3.0,\"p50_us\":null,\
                     \"p99_us\":4.0}";
    let target = format!(
        "{{\"interval_s\":1.0,\"namespaces\":[{{\"subsystem\":\"s\",\"namespace\":1,\
         \"size_bytes\":1.0,\"read\":{operation},\"write\":{operation},\"p50_us\":null,\
         \"p99_us\":4.0,\"failures_per_s\":0.0,\"in_flight\":2.0}}],\"shards\":[{{\"shard\":0,\
         \"utilisation\":0.5,\"connections\":1.0}}],\"hosts\":[{{\"host\":\"h\",\"iops\":1.0,\
         \"mb_per_s\":2.0,\"memory_bytes\":3.0,\"memory_waits_per_s\":4.0,\
         \"connections\":5.0}}]}}"
    );
    let view: TargetView = serde_json::from_str(&target).expect("a target");
    assert_eq!(serde_json::to_string(&view).expect("plain data"), target);
}
