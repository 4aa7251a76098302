//! Bit fields of a register or of a command's result.

/// A bit field of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    high: u32,
    low: u32,
}

impl Part {
    /// Bits `high` to `low`, as the standard writes them.
    pub(crate) const fn at(high: u32, low: u32) -> Self {
        Self { high, low }
    }

    /// The value of the field.
    #[inline]
    pub(crate) const fn get(self, number: u64) -> u64 {
        number >> self.low & (u64::MAX >> (63 - (self.high - self.low)))
    }

    /// A number with this value in the field, and zeros elsewhere.
    #[inline]
    pub(crate) const fn of(self, value: u64) -> u64 {
        value << self.low
    }
}
