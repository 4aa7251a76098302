//! Addresses of logical units (SAM-5 4.7), and REPORT LUNS (SPC-4 6.33).

use super::layout::cdb::report::{ALLOCATION_LENGTH, SELECT_REPORT};
use super::layout::report::{lun, luns as list};
use super::sense::Sense;

/// Logical units that a target may have: as many as flat addressing can name.
pub const LUNS_MAX: u16 = 1 << 14;

/// The number of a logical unit, below [`LUNS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lun(u16);

impl Lun {
    /// LUN 0, for which every target answers (SPC-4 6.33).
    pub const FIRST: Self = Self(0);

    /// The LUN of a number; `None` if it is too large.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        (number < LUNS_MAX).then_some(Self(number))
    }

    /// The LUN as a number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Decodes the eight bytes of a LUN field; `None` for an unsupported form.
    #[must_use]
    pub fn read(field: [u8; 8]) -> Option<Self> {
        if lun::LEVELS.get(&field) != [0; 6] {
            return None;
        }
        match lun::METHOD.get(&field) {
            // On bus 0 (SAM-5 4.7.7.2).
            lun::IS_PERIPHERAL if lun::BUS.get(&field) == 0 => {
                Some(Self(lun::PERIPHERAL.get(&field).into()))
            }
            // SAM-5 4.7.7.3.
            lun::IS_FLAT => Some(Self(lun::FLAT.get(&field) & lun::FLAT_MASK)),
            _ => None,
        }
    }

    /// Encodes a LUN field: peripheral addressing up to 255, as initiators expect, flat above.
    #[must_use]
    pub fn write(self) -> [u8; 8] {
        let mut field = [0; lun::BYTES];
        match u8::try_from(self.0) {
            Ok(number) => lun::PERIPHERAL.put(&mut field, number),
            Err(_) => {
                lun::FLAT.put(&mut field, self.0);
                lun::METHOD.put(&mut field, lun::IS_FLAT);
            }
        }
        field
    }
}

/// The data of REPORT LUNS, cut to `allocation` bytes.
///
/// # Errors
/// When `allocation` is too small, or SELECT REPORT is not supported.
pub fn report_luns(
    luns: impl IntoIterator<Item = Lun>,
    select: u8,
    allocation: u32,
) -> Result<Vec<u8>, Sense> {
    // SPC-4 6.33: ALLOCATION LENGTH is at least 16.
    if allocation < 16 {
        return Err(Sense::wrong(ALLOCATION_LENGTH));
    }
    let mut data = vec![0; list::HEADER_BYTES];
    match select {
        // Logical units that are not well known; all.
        0 | 2 => data.extend(luns.into_iter().flat_map(Lun::write)),
        // Well-known logical units only: there are none.
        1 => {}
        _ => return Err(Sense::wrong(SELECT_REPORT)),
    }
    let length = u32::try_from(data.len() - list::HEADER_BYTES).unwrap_or(u32::MAX);
    list::LIST_LENGTH.put(&mut data, length);
    data.truncate(usize::try_from(allocation).unwrap_or(usize::MAX));
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luns_are_read_in_both_addressings() {
        for number in [0, 1, 255, 256, 0x3fff] {
            let lun = Lun::new(number).expect("it is small enough");
            assert_eq!(Lun::read(lun.write()), Some(lun));
        }
        assert_eq!(Lun::read([0x40, 7, 0, 0, 0, 0, 0, 0]), Lun::new(7));
        assert_eq!(Lun::new(0x4000), None);
        // A bus, logical unit addressing, extended addressing, a second level.
        for field in [[1, 0, 0], [0x80, 0, 0], [0xc1, 1, 0], [0, 1, 1]] {
            let [a, b, c] = field;
            assert_eq!(Lun::read([a, b, c, 0, 0, 0, 0, 0]), None, "{field:x?}");
        }
    }

    #[test]
    fn a_list_says_how_long_it_would_be() {
        let luns = || [0, 5].into_iter().filter_map(Lun::new);
        let all = report_luns(luns(), 2, 4096).expect("it may");
        assert_eq!(all[..8], [0, 0, 0, 16, 0, 0, 0, 0]);
        assert_eq!(all[16..18], [0, 5]);
        assert_eq!(report_luns(luns(), 0, 16).expect("it may"), all[..16]);
        assert_eq!(report_luns(luns(), 1, 16).expect("it may"), [0; 8]);
        assert_eq!(report_luns(luns(), 0, 15), Err(Sense::in_cdb(6, None)));
        assert_eq!(report_luns(luns(), 3, 16), Err(Sense::in_cdb(2, None)));
    }
}
