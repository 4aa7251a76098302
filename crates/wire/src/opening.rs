//! The ID of a target's opening of a medium, which it reports beside the standard identifiers.
//!
//! Standard identifiers name a medium, but two media can have the same: on a machine that was
//! cloned, or where a file sets them. So a target draws 128 random bits whenever it opens a medium.
//! Paths that report the same bits lead to one medium, opened once, whatever their protocols.

/// Bytes of an opening ID with its mark.
pub const OPENING_BYTES: usize = 24;

// The first bytes, which no other vendor's data have.
const MARK: [u8; 8] = *b"afaropen";

/// 128 random bits that a target drew when it opened a medium.
pub type Opening = [u8; 16];

/// Encodes `opening` as a target sends it in vendor-specific fields.
#[must_use]
pub fn write_opening(opening: &Opening) -> [u8; OPENING_BYTES] {
    let mut data = [0; OPENING_BYTES];
    data[..MARK.len()].copy_from_slice(&MARK);
    data[MARK.len()..].copy_from_slice(opening);
    data
}

/// Decodes what `write_opening` encoded; `None` if `data` does not begin with the mark.
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
