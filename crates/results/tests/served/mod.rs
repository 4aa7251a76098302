//! Records of `afar kv serve`.

use measure::{Host, LatencySummary};
use proptest::prelude::*;
use results::served::{KvServed, Operation, Params, Results, Store};

use super::{comes_back, is_as_before, many, number, texts};

fn latency() -> impl Strategy<Value = LatencySummary> {
    prop::array::uniform9(any::<u64>()).prop_map(|numbers| {
        let [count, min_ns, mean_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns] = numbers;
        LatencySummary { count, min_ns, mean_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns }
    })
}

fn params() -> impl Strategy<Value = Params> {
    let words = (".{0,9}", ".{0,9}", ".{0,9}");
    let numbers = prop::array::uniform4(any::<u64>());
    (words, numbers, any::<bool>(), any::<bool>()).prop_map(|(words, numbers, direct, sync)| {
        Params {
            directory: words.0,
            library: words.1,
            address: words.2,
            reader_count: numbers[0],
            writer_count: numbers[1],
            block_cache_bytes: numbers[2],
            direct,
            write_buffer_bytes: direct.then_some(numbers[0]),
            sync,
            work_ns: numbers[3],
        }
    })
}

fn store() -> impl Strategy<Value = Store> {
    prop::array::uniform8(any::<u64>()).prop_map(|numbers| Store {
        block_cache_hit_count: numbers[0],
        block_cache_miss_count: numbers[1],
        flush_write_bytes: numbers[2],
        compaction_read_bytes: numbers[3],
        compaction_write_bytes: numbers[4],
        log_bytes: numbers[5],
        log_sync_count: numbers[6],
        stall_ns: numbers[7],
    })
}

fn results() -> impl Strategy<Value = Results> {
    let operation = (".{0,9}", latency(), latency(), any::<u64>());
    let operation = operation.prop_map(|(operation, waited, served, error_count)| Operation {
        operation,
        waited,
        served,
        error_count,
    });
    let why = || prop::option::of(".{0,9}");
    let numbers = prop::array::uniform7(any::<u64>());
    (numbers, number(), many(operation), why(), why(), store()).prop_map(
        |(numbers, commands_per_s, operations, first_violation, first_error, store)| Results {
            elapsed_ns: numbers[0],
            processor_ns: numbers[1],
            command_count: numbers[2],
            commands_per_s,
            operations,
            connection_count: numbers[3],
            turned_away_count: numbers[4],
            refused_count: numbers[5],
            violation_count: numbers[6],
            first_violation,
            first_error,
            store,
        },
    )
}

fn served() -> impl Strategy<Value = KvServed> {
    (texts(), params(), results()).prop_map(|(command, params, results)| KvServed {
        version: "0.1.0".to_owned(),
        command,
        started_unix_ns: 7,
        host: Host::default(),
        params,
        results,
    })
}

proptest! {
    #[test]
    fn a_server_comes_back(served in served()) {
        comes_back(&served);
    }
}

#[test]
fn text_of_a_server_is_as_before() {
    let latency = LatencySummary {
        count: 4,
        min_ns: 1_000,
        mean_ns: 2_500,
        p50_ns: 2_000,
        p90_ns: 4_000,
        p95_ns: 4_000,
        p99_ns: 4_000,
        p999_ns: 4_000,
        max_ns: 4_000,
    };
    let operation =
        Operation { operation: "get".to_owned(), waited: latency, served: latency, error_count: 1 };
    let served = KvServed {
        version: "0.1.0".to_owned(),
        command: vec!["afar".to_owned(), "kv".to_owned(), "serve".to_owned()],
        started_unix_ns: 7,
        host: Host::default(),
        params: Params {
            directory: "/var/tmp/store".to_owned(),
            library: "librocksdb.so.7.8".to_owned(),
            address: "127.0.0.1:6379".to_owned(),
            reader_count: 16,
            writer_count: 16,
            block_cache_bytes: 8 << 20,
            direct: true,
            write_buffer_bytes: None,
            sync: false,
            work_ns: 20_000,
        },
        results: Results {
            elapsed_ns: 2_000_000_000,
            processor_ns: 1_500_000_000,
            command_count: 4,
            commands_per_s: 2.0,
            operations: vec![operation],
            connection_count: 3,
            turned_away_count: 0,
            refused_count: 1,
            violation_count: 1,
            first_violation: Some("expected '*' and a number, got 'G'".to_owned()),
            first_error: Some("IO error: No space left on device".to_owned()),
            store: Store {
                block_cache_hit_count: 12,
                block_cache_miss_count: 88,
                flush_write_bytes: 4096,
                compaction_read_bytes: 8192,
                compaction_write_bytes: 8192,
                log_bytes: 1000,
                log_sync_count: 0,
                stall_ns: 0,
            },
        },
    };
    is_as_before("kv-serve", &served);
}
