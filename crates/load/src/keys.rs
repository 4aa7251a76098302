//! Keys of records.

use workload::{KeyOrder, Ycsb, is_key, key_bytes, write_key, write_padded_key};

/// How the key of a record follows from its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    order: KeyOrder,
    /// The length of all keys; `None` for YCSB's keys, whose lengths differ.
    bytes: Option<usize>,
}

impl Keys {
    pub(crate) const fn new(workload: &Ycsb, bytes: Option<usize>) -> Self {
        Self { order: workload.key_order, bytes }
    }

    /// Appends the key of `record` to `out`.
    pub(crate) fn write(self, out: &mut Vec<u8>, record: u64) {
        match self.bytes {
            None => write_key(out, record, self.order),
            Some(bytes) => write_padded_key(out, record, self.order, bytes),
        }
    }

    /// The length of the key of `record`, in bytes.
    pub(crate) fn length(self, record: u64) -> usize {
        self.bytes.unwrap_or_else(|| key_bytes(record, self.order))
    }

    /// Whether `key` is the key of `record`.
    pub(crate) fn is(self, key: &[u8], record: u64) -> bool {
        if self.bytes.is_none() {
            return is_key(key, record, self.order);
        }
        let mut own = Vec::with_capacity(key.len());
        self.write(&mut own, record);
        own == key
    }
}

#[cfg(test)]
impl Keys {
    /// Keys such as `user3`.
    pub(crate) const PLAIN: Self = Self { order: KeyOrder::Ordered, bytes: None };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_own_and_no_other() {
        for keys in [Keys::PLAIN, Keys { bytes: Some(16), order: KeyOrder::Hashed }] {
            for record in [0, 7, 123_456] {
                let mut key = Vec::new();
                keys.write(&mut key, record);
                assert_eq!(key.len(), keys.length(record));
                assert!(keys.is(&key, record) && !keys.is(&key, record + 1), "{keys:?}");
                assert!(!keys.is(&key[..key.len() - 1], record), "{keys:?}");
            }
        }
    }
}
