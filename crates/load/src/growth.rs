//! Values that grow because updates append to them.

use std::sync::atomic::{AtomicU32, Ordering};

use workload::{ValueError, check_value};

use crate::config::{Growth, LoadConfig};

/// The length of each growing value, as requests of this process have changed it. Successive loads
/// of one store share it.
#[derive(Debug)]
pub struct Values {
    growth: Growth,
    value_bytes: usize,
    /// Appends to each record since its value was set.
    appended: Vec<AtomicU32>,
}

impl Values {
    /// The values of a freshly filled store; `None` if values do not grow.
    #[must_use]
    pub fn of(config: &LoadConfig) -> Option<Self> {
        let workload = &config.workload;
        let new = |growth| Self::new(growth, workload.value_bytes, workload.record_count);
        config.growth.map(new)
    }

    fn new(growth: Growth, value_bytes: usize, records: u64) -> Self {
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        let appended = (0..records).map(|_| AtomicU32::new(0)).collect();
        Self { growth, value_bytes, appended }
    }

    /// Chooses the next update of `record`: `Some` of the bytes to append, or `None` if the value
    /// must be set, because it would be too long or the record was inserted. Counts the update.
    pub(crate) fn grow(&self, record: u64) -> Option<usize> {
        let Growth { append_bytes, limit_bytes } = self.growth;
        let count = self.appended.get(usize::try_from(record).ok()?)?;
        let fits = |appended: u32| {
            let appends = u64::from(appended) + 1;
            let bytes = (append_bytes as u64).saturating_mul(appends);
            bytes.saturating_add(self.value_bytes as u64) <= limit_bytes as u64
        };
        let next = |appended| Some(if fits(appended) { appended + 1 } else { 0 });
        let before = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let appended = before.unwrap_or_else(|unchanged| unchanged);
        fits(appended).then_some(append_bytes)
    }

    /// Notes that the value of `record` is being set: nothing is appended to it.
    pub(crate) fn set(&self, record: u64) {
        if let Some(count) = usize::try_from(record).ok().and_then(|at| self.appended.get(at)) {
            count.store(0, Ordering::Relaxed);
        }
    }
}

/// Checks that `value` belongs to record `number`: `length` bytes that were set, then, with
/// `growth`, any number of appended parts.
///
/// # Errors
/// When a part of the value is not what was written.
pub(crate) fn check(
    value: &[u8],
    number: u64,
    length: usize,
    growth: Option<Growth>,
) -> Result<(), ValueError> {
    let Some(Growth { append_bytes, .. }) = growth else {
        return check_value(value, number, length).map(drop);
    };
    let Some((set, appended)) = value.split_at_checked(length) else {
        return check_value(value, number, length).map(drop);
    };
    check_value(set, number, length)?;
    appended
        .chunks(append_bytes)
        .try_for_each(|part| check_value(part, number, append_bytes).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::write_value;

    const GROWTH: Growth = Growth { append_bytes: 30, limit_bytes: 110 };

    #[test]
    fn a_value_grows_to_its_limit_and_is_set_then() {
        let sizes = Values::new(GROWTH, 50, 2);
        let grown: Vec<_> = (0..7).map(|_| sizes.grow(1)).collect();
        let more = Some(30);
        assert_eq!(grown, [more, more, None, more, more, None, more]);
        sizes.set(1);
        assert_eq!([sizes.grow(1), sizes.grow(1), sizes.grow(1)], [more, more, None]);
        assert_eq!(sizes.grow(0), more);
        assert_eq!(sizes.grow(2), None, "a record that was inserted");
        let full = Growth { limit_bytes: 79, ..GROWTH };
        assert_eq!(Values::new(full, 50, 1).grow(0), None);
    }

    #[test]
    fn what_was_appended_is_checked() {
        let mut value = Vec::new();
        write_value(&mut value, 7, 1, 50);
        let set = value.len();
        write_value(&mut value, 7, 2, 30);
        write_value(&mut value, 7, 3, 30);
        let of = |value: &[u8], number| check(value, number, 50, Some(GROWTH));
        assert_eq!(of(&value, 7), Ok(()));
        assert_eq!(of(&value[..set], 7), Ok(()));
        assert_eq!(check(&value[..set], 7, 50, None), Ok(()));
        assert!(check(&value, 7, 50, None).is_err());
        assert!(of(&value, 8).is_err());
        for cut in [1, set - 1, set + 1, value.len() - 1] {
            assert!(of(&value[..cut], 7).is_err(), "{cut}");
        }
        let lost = [&value[..set], &value[set + 10..]].concat();
        assert!(of(&lost, 7).is_err());
        let mut strange = value.clone();
        strange.truncate(set);
        write_value(&mut strange, 8, 2, 30);
        assert!(of(&strange, 7).is_err());
    }
}
