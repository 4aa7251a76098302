//! The counters of RocksDB that a summary reports.

/// RocksDB's counters since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCounters {
    /// Blocks found in the block cache.
    pub block_cache_hit_count: u64,
    /// Blocks that were not in the block cache.
    pub block_cache_miss_count: u64,
    /// Bytes that flushes of memtables have written.
    pub flush_write_bytes: u64,
    /// Bytes that compactions have read.
    pub compaction_read_bytes: u64,
    /// Bytes that compactions have written.
    pub compaction_write_bytes: u64,
    /// Bytes written to the write-ahead log.
    pub log_bytes: u64,
    /// Times the log was synced to the medium.
    pub log_sync_count: u64,
    /// Nanoseconds that RocksDB stalled writers for flushes or compactions to catch up.
    pub stall_ns: u64,
}

impl StoreCounters {
    /// Parses RocksDB's text of statistics; missing counters are 0.
    pub(crate) fn of(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(" COUNT : ") else { continue };
            let Ok(value) = value.trim().parse::<u64>() else { continue };
            match name {
                "rocksdb.block.cache.hit" => found.block_cache_hit_count = value,
                "rocksdb.block.cache.miss" => found.block_cache_miss_count = value,
                "rocksdb.flush.write.bytes" => found.flush_write_bytes = value,
                "rocksdb.compact.read.bytes" => found.compaction_read_bytes = value,
                "rocksdb.compact.write.bytes" => found.compaction_write_bytes = value,
                "rocksdb.wal.bytes" => found.log_bytes = value,
                "rocksdb.wal.synced" => found.log_sync_count = value,
                "rocksdb.stall.micros" => found.stall_ns = value.saturating_mul(1000),
                _ => {}
            }
        }
        found
    }

    /// Every counter with its name.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("block_cache_hit_count", self.block_cache_hit_count),
            ("block_cache_miss_count", self.block_cache_miss_count),
            ("flush_write_bytes", self.flush_write_bytes),
            ("compaction_read_bytes", self.compaction_read_bytes),
            ("compaction_write_bytes", self.compaction_write_bytes),
            ("log_bytes", self.log_bytes),
            ("log_sync_count", self.log_sync_count),
            ("stall_ns", self.stall_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name() {
        let text = "rocksdb.block.cache.miss COUNT : 5\nrocksdb.block.cache.hit COUNT : 7\n\
            rocksdb.stall.micros COUNT : 2\nrocksdb.db.get.micros P50 : 1.5 COUNT : 9 SUM : 3\n\
            rocksdb.wal.synced COUNT : x\n";
        let found = StoreCounters::of(text);
        let wanted = StoreCounters {
            block_cache_hit_count: 7,
            block_cache_miss_count: 5,
            stall_ns: 2000,
            ..StoreCounters::default()
        };
        assert_eq!(found, wanted);
        assert_eq!(found.named()[0], ("block_cache_hit_count", 7));
    }
}
