//! Which opening of a medium a target serves, beside what standards have it say.
//!
//! Identifiers say which medium it is, and two can have the same: of a machine that was copied
//! whole, or where a file names them. So a target draws 128 bits whenever it opens a medium. Ways
//! that bring the same bits lead to one medium, opened once, whatever protocols they speak.

/// Bytes of it.
pub const OPENING_BYTES: usize = 24;

// No other vendor's data begin so.
const MARK: [u8; 8] = *b"afaropen";

/// 128 bits that were drawn when a target opened a medium.
pub type Opening = [u8; 16];

/// As a target says it, in places that standards leave to it.
#[must_use]
pub fn write_opening(opening: &Opening) -> [u8; OPENING_BYTES] {
    let mut data = [0; OPENING_BYTES];
    data[..MARK.len()].copy_from_slice(&MARK);
    data[MARK.len()..].copy_from_slice(opening);
    data
}

/// As a host reads it; none if it is not there.
#[must_use]
pub fn read_opening(data: &[u8]) -> Option<Opening> {
    let (opening, _) = data.strip_prefix(&MARK)?.split_first_chunk::<16>()?;
    Some(*opening)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_read_as_it_was_written() {
        let data = write_opening(&[7; 16]);
        assert_eq!(read_opening(&data), Some([7; 16]));
        assert_eq!(read_opening(&data[..23]), None, "it is cut short");
        assert_eq!(read_opening(&[0; OPENING_BYTES]), None, "it is another vendor's");
    }
}
