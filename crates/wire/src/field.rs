//! Fields of structures, each an offset with a type: defined once, for the code that writes a
//! structure and for the code that reads it.
//!
//! ```
//! use wire::{Be, Bits, Text};
//! const KIND: Bits = Bits::at(0, 4, 0);
//! const LENGTH: Be<u16> = Be::at(2);
//! const VENDOR: Text<8> = Text::spaced(4);
//! let mut data = [0; 12];
//! KIND.put(&mut data, 5);
//! LENGTH.put(&mut data, 8);
//! VENDOR.put(&mut data, "afar".bytes());
//! assert_eq!(&data, b"\x05\0\0\x08afar    ");
//! assert_eq!((KIND.get(&data), LENGTH.get(&data)), (5, 8));
//! ```
//!
//! Each panics when the bytes end before the field does.

use std::marker::PhantomData;

/// The position of a field, for errors that report which field is invalid.
pub trait Place: Copy {
    /// The offset of the field's first byte.
    fn byte(self) -> u16;

    /// The field's highest bit; `None` for a field of whole bytes.
    fn bit(self) -> Option<u8>;
}

/// A little-endian number at a byte offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Le<T>(u16, PhantomData<T>);

/// A big-endian number at a byte offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Be<T>(u16, PhantomData<T>);

/// A number of three bytes, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Be24(u16);

/// A number of one byte, or flags that are read and written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Byte(u16);

/// Some bits of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    at: u16,
    high: u8,
    low: u8,
}

/// One bit of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bit {
    at: u16,
    number: u8,
}

/// `N` uninterpreted bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes<const N: usize>(u16);

/// A text of `N` bytes, padded at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    at: u16,
    filler: u8,
}

/// Implements the fields of one byte order.
macro_rules! numbers {
    ($order:ident: $from:ident, $to:ident; $($number:ty = $bytes:literal),*) => {
        impl<T> $order<T> {
            /// The number whose first byte is at offset `byte`.
            #[inline]
            #[must_use]
            pub const fn at(byte: u16) -> Self {
                Self(byte, PhantomData)
            }

            /// The same field in a structure that begins `bytes` bytes later.
            #[inline]
            #[must_use]
            pub const fn later(self, bytes: u16) -> Self {
                Self(self.0 + bytes, PhantomData)
            }
        }

        impl<T: Copy> Place for $order<T> {
            #[inline]
            fn byte(self) -> u16 {
                self.0
            }

            #[inline]
            fn bit(self) -> Option<u8> {
                None
            }
        }

        $(
            impl $order<$number> {
                /// Reads the number from `bytes`.
                #[inline]
                #[must_use]
                pub fn get(self, bytes: &[u8]) -> $number {
                    <$number>::$from(array(bytes, self.0))
                }

                /// Writes `value` into `bytes`.
                #[inline]
                pub fn put(self, bytes: &mut [u8], value: $number) {
                    put(bytes, self.0, &value.$to());
                }

                /// The `index`-th number of an array that begins with this field.
                #[inline]
                #[must_use]
                pub const fn nth(self, index: u16) -> Self {
                    self.later(index * $bytes)
                }
            }
        )*
    };
}

numbers!(Le: from_le_bytes, to_le_bytes; u16 = 2, u32 = 4, u64 = 8, u128 = 16);
numbers!(Be: from_be_bytes, to_be_bytes; u16 = 2, u32 = 4, u64 = 8);

// Copies `N` bytes from offset `at`.
#[inline]
fn array<const N: usize>(bytes: &[u8], at: u16) -> [u8; N] {
    let at = usize::from(at);
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

// Copies `field` to offset `at`.
#[inline]
fn put(bytes: &mut [u8], at: u16, field: &[u8]) {
    let at = usize::from(at);
    bytes[at..at + field.len()].copy_from_slice(field);
}

impl Be24 {
    /// The number whose first byte is at offset `byte`.
    #[inline]
    #[must_use]
    pub const fn at(byte: u16) -> Self {
        Self(byte)
    }

    /// Reads the number from `bytes`.
    #[inline]
    #[must_use]
    pub fn get(self, bytes: &[u8]) -> u32 {
        let [high, middle, low] = array(bytes, self.0);
        u32::from_be_bytes([0, high, middle, low])
    }

    /// Writes the lower 24 bits of `value` into `bytes`.
    #[inline]
    pub fn put(self, bytes: &mut [u8], value: u32) {
        put(bytes, self.0, &value.to_be_bytes()[1..]);
    }
}

impl Byte {
    /// The byte at offset `byte`.
    #[inline]
    #[must_use]
    pub const fn at(byte: u16) -> Self {
        Self(byte)
    }

    /// Reads the value from `bytes`.
    #[inline]
    #[must_use]
    pub const fn get(self, bytes: &[u8]) -> u8 {
        bytes[self.0 as usize]
    }

    /// Writes `value` into `bytes`.
    #[inline]
    pub const fn put(self, bytes: &mut [u8], value: u8) {
        bytes[self.0 as usize] = value;
    }

    /// The same field in a structure that begins `bytes` bytes later.
    #[inline]
    #[must_use]
    pub const fn later(self, bytes: u16) -> Self {
        Self(self.0 + bytes)
    }
}

impl Bits {
    /// Bits `high` to `low` of the byte at offset `byte`, as standards write them: 7 is the
    /// highest.
    ///
    /// # Panics
    /// When `low` exceeds `high`, or `high` exceeds 7.
    #[inline]
    #[must_use]
    pub const fn at(byte: u16, high: u8, low: u8) -> Self {
        assert!(low <= high && high < 8, "bits of a byte");
        Self { at: byte, high, low }
    }

    // The bits of the field within its byte, set.
    const fn mask(self) -> u8 {
        (0xff >> (7 - self.high)) & (0xff << self.low)
    }

    /// Reads the value from `bytes`.
    #[inline]
    #[must_use]
    pub const fn get(self, bytes: &[u8]) -> u8 {
        (bytes[self.at as usize] & self.mask()) >> self.low
    }

    /// Writes the lowest bits of `value` into the field and leaves the byte's other bits.
    #[inline]
    pub const fn put(self, bytes: &mut [u8], value: u8) {
        let byte = &mut bytes[self.at as usize];
        *byte = *byte & !self.mask() | (value << self.low) & self.mask();
    }
}

impl Bit {
    /// Bit `number` of the byte at offset `byte`: 7 is the highest.
    ///
    /// # Panics
    /// When `number` exceeds 7.
    #[inline]
    #[must_use]
    pub const fn at(byte: u16, number: u8) -> Self {
        assert!(number < 8, "a bit of a byte");
        Self { at: byte, number }
    }

    /// Returns whether the bit is set in `bytes`.
    #[inline]
    #[must_use]
    pub const fn get(self, bytes: &[u8]) -> bool {
        bytes[self.at as usize] >> self.number & 1 == 1
    }

    /// Sets the bit in `bytes`, or clears it.
    #[inline]
    pub const fn put(self, bytes: &mut [u8], is_set: bool) {
        let byte = &mut bytes[self.at as usize];
        *byte = *byte & !(1 << self.number) | (is_set as u8) << self.number;
    }
}

impl<const N: usize> Bytes<N> {
    /// The `N` bytes from offset `byte`.
    #[inline]
    #[must_use]
    pub const fn at(byte: u16) -> Self {
        Self(byte)
    }

    /// Reads the field from `bytes`.
    #[inline]
    #[must_use]
    pub fn get(self, bytes: &[u8]) -> [u8; N] {
        array(bytes, self.0)
    }

    /// Writes `value` into `bytes`.
    #[inline]
    pub fn put(self, bytes: &mut [u8], value: &[u8; N]) {
        put(bytes, self.0, value);
    }
}

impl<const N: usize> Text<N> {
    /// A text from offset `byte`, padded with spaces.
    #[inline]
    #[must_use]
    pub const fn spaced(byte: u16) -> Self {
        Self { at: byte, filler: b' ' }
    }

    /// A text from offset `byte`, padded with NULs.
    #[inline]
    #[must_use]
    pub const fn nul_ended(byte: u16) -> Self {
        Self { at: byte, filler: 0 }
    }

    /// The field with its padding.
    #[inline]
    #[must_use]
    pub fn get(self, bytes: &[u8]) -> &[u8] {
        &bytes[usize::from(self.at)..usize::from(self.at) + N]
    }

    /// Writes the first `N` bytes of `text`, or pads a shorter one.
    #[inline]
    pub fn put(self, bytes: &mut [u8], text: impl IntoIterator<Item = u8>) {
        let field = &mut bytes[usize::from(self.at)..usize::from(self.at) + N];
        field.fill(self.filler);
        for (place, byte) in field.iter_mut().zip(text) {
            *place = byte;
        }
    }
}

impl Place for Be24 {
    #[inline]
    fn byte(self) -> u16 {
        self.0
    }

    #[inline]
    fn bit(self) -> Option<u8> {
        None
    }
}

impl Place for Byte {
    #[inline]
    fn byte(self) -> u16 {
        self.0
    }

    #[inline]
    fn bit(self) -> Option<u8> {
        None
    }
}

impl Place for Bits {
    #[inline]
    fn byte(self) -> u16 {
        self.at
    }

    #[inline]
    fn bit(self) -> Option<u8> {
        Some(self.high)
    }
}

impl Place for Bit {
    #[inline]
    fn byte(self) -> u16 {
        self.at
    }

    #[inline]
    fn bit(self) -> Option<u8> {
        Some(self.number)
    }
}

impl<const N: usize> Place for Text<N> {
    #[inline]
    fn byte(self) -> u16 {
        self.at
    }

    #[inline]
    fn bit(self) -> Option<u8> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a field makes of bytes that are all like this.
    fn on(filler: u8, put: impl Fn(&mut [u8])) -> [u8; 8] {
        let mut bytes = [filler; 8];
        put(&mut bytes);
        bytes
    }

    #[test]
    fn numbers_are_in_their_order_and_leave_their_neighbours() {
        let le = on(0xee, |bytes| Le::<u32>::at(2).put(bytes, 0x0102_0304));
        assert_eq!(le, [0xee, 0xee, 4, 3, 2, 1, 0xee, 0xee]);
        let be = on(0xee, |bytes| Be::<u32>::at(2).put(bytes, 0x0102_0304));
        assert_eq!(be, [0xee, 0xee, 1, 2, 3, 4, 0xee, 0xee]);
        assert_eq!(
            (Le::<u32>::at(2).get(&le), Be::<u32>::at(2).get(&be)),
            (0x0102_0304, 0x0102_0304)
        );
        assert_eq!((Le::<u16>::at(3).get(&le), Be::<u16>::at(3).get(&be)), (0x0203, 0x0203));
        assert_eq!(
            (Le::<u64>::at(0).get(&le), Be::<u64>::at(0).get(&le)),
            (0xeeee_0102_0304_eeee, 0xeeee_0403_0201_eeee)
        );
        let three = on(0xee, |bytes| Be24::at(1).put(bytes, 0xff01_0203));
        assert_eq!(three, [0xee, 1, 2, 3, 0xee, 0xee, 0xee, 0xee]);
        assert_eq!(Be24::at(1).get(&three), 0x01_0203);
        let byte = on(0xee, |bytes| Byte::at(7).put(bytes, 5));
        assert_eq!(
            (byte, Byte::at(7).get(&byte)),
            ([0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 5], 5)
        );
    }

    #[test]
    fn lists_and_later_structures_have_the_same_field() {
        let bytes = [1, 0, 2, 0, 3, 0, 4, 0];
        assert_eq!([0, 1, 2].map(|index| Le::<u16>::at(2).nth(index).get(&bytes)), [2, 3, 4]);
        assert_eq!(
            (Byte::at(2).later(4).get(&bytes), Le::<u32>::at(0).later(4).get(&bytes)),
            (4, 0x4_0003)
        );
    }

    #[test]
    fn bits_leave_the_others_of_their_byte() {
        for filler in [0, 0xff] {
            for (high, low) in (0..8).flat_map(|high| (0..=high).map(move |low| (high, low))) {
                let field = Bits::at(3, high, low);
                for value in 0..=255 {
                    let kept = value & (0xff >> (7 - (high - low)));
                    let bytes = on(filler, |bytes| field.put(bytes, value));
                    assert_eq!(field.get(&bytes), kept, "{high}:{low}");
                    let others = on(filler, |bytes| field.put(bytes, filler));
                    assert_eq!(others, [filler; 8]);
                    assert_eq!(bytes[3] & !(kept << low), filler & !field.mask(), "{high}:{low}");
                }
            }
        }
        // By hand: bits 6:5 of 10110111b.
        let field = Bits::at(0, 6, 5);
        assert_eq!(field.get(&[0b1011_0111]), 0b01);
        let mut byte = [0b1011_0111];
        field.put(&mut byte, 0b10);
        assert_eq!(byte, [0b1101_0111]);
    }

    #[test]
    fn one_bit_is_set_or_not() {
        for number in 0..8 {
            let field = Bit::at(1, number);
            let set = on(0, |bytes| field.put(bytes, true));
            assert_eq!((set[1], field.get(&set)), (1 << number, true));
            let cleared = on(0xff, |bytes| field.put(bytes, false));
            assert_eq!((cleared[1], field.get(&cleared)), (!(1 << number), false));
        }
    }

    #[test]
    fn bytes_and_texts_fill_their_places() {
        let bytes = on(0xee, |bytes| Bytes::at(1).put(bytes, &[1, 2, 3]));
        assert_eq!(bytes, [0xee, 1, 2, 3, 0xee, 0xee, 0xee, 0xee]);
        assert_eq!(Bytes::<3>::at(1).get(&bytes), [1, 2, 3]);
        let spaced = on(0xee, |bytes| Text::<4>::spaced(2).put(bytes, *b"ab"));
        assert_eq!(&spaced, b"\xee\xeeab  \xee\xee");
        let ended = on(0xee, |bytes| Text::<4>::nul_ended(2).put(bytes, *b"ab"));
        assert_eq!(&ended, b"\xee\xeeab\0\0\xee\xee");
        let cut = on(0xee, |bytes| Text::<4>::spaced(2).put(bytes, *b"abcdef"));
        assert_eq!((&cut, Text::<4>::spaced(2).get(&cut)), (b"\xee\xeeabcd\xee\xee", &b"abcd"[..]));
    }

    #[test]
    fn a_field_says_where_it_is() {
        assert_eq!((Le::<u16>::at(516).byte(), Le::<u16>::at(516).bit()), (516, None));
        assert_eq!((Bits::at(2, 5, 0).byte(), Bits::at(2, 5, 0).bit()), (2, Some(5)));
        assert_eq!((Bit::at(4, 0).byte(), Bit::at(4, 0).bit()), (4, Some(0)));
    }
}
