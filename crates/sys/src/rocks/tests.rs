use std::collections::BTreeMap;

use test_support::{scratch, skip};

use super::*;

fn settings(name: &str) -> Settings {
    let directory = scratch(name);
    Settings {
        directory,
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: None,
        direct: false,
        sync: false,
    }
}

// A store, unless RocksDB is not installed.
fn store(test: &str, settings: &Settings) -> Option<Store> {
    match Store::open(settings) {
        Ok(store) => Some(store),
        Err(StoreError::Library(error)) => {
            skip(test, &format!("librocksdb is not installed: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn all(store: &Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (keys, next) = store.keys(b"", usize::MAX).unwrap();
    assert_eq!(next, None);
    keys.into_iter().map(|key| (key.clone(), store.get(&key).unwrap().unwrap().to_vec())).collect()
}

#[test]
fn what_is_put_appended_and_deleted_is_so_after_it_was_closed() {
    let settings = settings("closed");
    let Some(store) = store("rocks::closed", &settings) else { return };
    store.put(b"a", b"1").unwrap();
    store.append(b"a", b"23").unwrap();
    store.append(b"new", b"x").unwrap();
    store.append(b"new", b"").unwrap();
    store.append(b"new", b"\0y").unwrap();
    store.put(b"gone", b"1").unwrap();
    store.delete(b"gone").unwrap();
    store.delete(b"never").unwrap();
    store.put(b"", b"").unwrap();
    let wanted: BTreeMap<Vec<u8>, Vec<u8>> = [("", ""), ("a", "123"), ("new", "x\0y")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    assert_eq!(all(&store), wanted);
    assert!(store.get(b"gone").unwrap().is_none());
    drop(store);
    let store = Store::open(&settings).unwrap();
    assert_eq!(all(&store), wanted);
}

#[test]
fn keys_come_in_order_and_say_where_they_go_on() {
    let settings = settings("keys");
    let Some(store) = store("rocks::keys", &settings) else { return };
    for key in ["b", "a", "c"] {
        store.put(key.as_bytes(), b"").unwrap();
    }
    let keys = |from: &str, count| store.keys(from.as_bytes(), count).unwrap();
    assert_eq!(keys("", 2), (vec![b"a".to_vec(), b"b".to_vec()], Some(b"c".to_vec())));
    assert_eq!(keys("c", 2), (vec![b"c".to_vec()], None));
    assert_eq!(keys("aa", 1), (vec![b"b".to_vec()], Some(b"c".to_vec())));
    assert_eq!(keys("d", 1), (vec![], None));
}

#[test]
fn a_store_has_one_owner() {
    let settings = settings("owner");
    let Some(store) = store("rocks::owner", &settings) else { return };
    assert!(matches!(Store::open(&settings), Err(StoreError::Held)));
    drop(store);
    Store::open(&settings).unwrap();
}

#[test]
fn a_directory_that_cannot_be_is_told_with_its_name() {
    let mut settings = settings("file");
    std::fs::write(&settings.directory, "no directory").unwrap();
    let Err(error) = Store::open(&settings) else { panic!("it is a file") };
    if matches!(error, StoreError::Library(_)) {
        return skip("rocks::file", "librocksdb is not installed");
    }
    assert!(error.to_string().contains("file"), "{error}");
    settings.directory = PathBuf::from("a\0b");
    assert!(matches!(Store::open(&settings), Err(StoreError::Rocks(_))));
}

#[test]
fn writes_are_synced_where_that_is_asked_for() {
    for sync in [false, true] {
        let settings = Settings { sync, ..settings(if sync { "synced" } else { "unsynced" }) };
        let Some(store) = store("rocks::sync", &settings) else { return };
        for number in 0..10_u8 {
            store.put(&[number], b"value").unwrap();
        }
        let text = store.statistics();
        let synced = text.lines().find_map(|line| line.strip_prefix("rocksdb.wal.synced COUNT : "));
        assert_eq!(synced, Some(if sync { "10" } else { "0" }), "{text}");
        assert_eq!(store.property(c"rocksdb.estimate-num-keys"), Some(10));
        assert_eq!(store.property(c"rocksdb.no-such"), None);
    }
}

#[test]
fn blocks_are_cached_unless_there_is_no_cache() {
    for block_cache_bytes in [0, 1 << 20] {
        let name = format!("cache{block_cache_bytes}");
        let settings = Settings { block_cache_bytes, ..settings(&name) };
        let Some(store) = store("rocks::cache", &settings) else { return };
        store.put(b"a", b"1").unwrap();
        drop(store);
        // Opened again, what was in the log is in a table.
        let store = Store::open(&settings).unwrap();
        for _ in 0..3 {
            assert_eq!(&*store.get(b"a").unwrap().unwrap(), b"1");
        }
        let text = store.statistics();
        let hits =
            text.lines().find_map(|line| line.strip_prefix("rocksdb.block.cache.hit COUNT : "));
        let hits: u64 = hits.unwrap().parse().unwrap();
        assert_eq!(hits > 0, block_cache_bytes > 0, "{text}");
    }
}
