use std::fmt;

/// Why a text is not the quantity it was read as.
///
/// Every message names the value, what was expected, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text does not begin with a decimal number.
    #[error(
        "\"{value}\": not {quantity}; write {}, e.g. {}",
        .quantity.syntax(), .quantity.example()
    )]
    NotANumber {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// The number begins with a minus sign.
    #[error("\"{value}\": {quantity} cannot be negative; write e.g. {}", .quantity.example())]
    Negative {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// What follows the number is not a unit of this quantity.
    #[error(
        "\"{value}\": unknown unit \"{unit}\" for {quantity}; use {}, e.g. {}",
        .quantity.units(), .quantity.example()
    )]
    UnknownUnit {
        /// The text as given.
        value: String,
        /// The part that was read as a unit.
        unit: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// A bare number where the unit cannot be guessed.
    #[error(
        "\"{value}\": {quantity} needs a unit; use {}, e.g. {}",
        .quantity.units(), .quantity.example()
    )]
    MissingUnit {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// Zero, or so little that it rounds to zero, where that has no meaning.
    #[error("\"{value}\": {quantity} must be more than zero; write e.g. {}", .quantity.example())]
    Zero {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// More than the quantity can hold or mean.
    #[error(
        "\"{value}\": {quantity} can be at most {}; write e.g. {}",
        .quantity.limit(), .quantity.example()
    )]
    TooLarge {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// Less than one page, most often a percentage or a size without its unit.
    #[error(
        "\"{value}\": {quantity} of less than one page of 4096 bytes holds nothing; write e.g. {}",
        .quantity.example()
    )]
    BelowOnePage {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
    /// Not one of a fixed set of words.
    #[error("\"{value}\": not {quantity}; use {}", .quantity.syntax())]
    UnknownWord {
        /// The text as given.
        value: String,
        /// What it was read as.
        quantity: Quantity,
    },
}

/// What a text was read as; the source of the words in a [`ParseError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// [`Bytes`](crate::Bytes).
    Size,
    /// [`BitsPerSec`](crate::BitsPerSec).
    Rate,
    /// [`Duration`](crate::Duration).
    Time,
    /// [`Fraction`](crate::Fraction).
    Fraction,
    /// [`LocalSize`](crate::LocalSize).
    LocalSize,
    /// [`ShareOf`](crate::ShareOf).
    ShareOf,
    /// [`LinkMode`](crate::LinkMode).
    LinkMode,
    /// [`Money`](crate::Money).
    Money,
    /// [`Count`](crate::Count).
    Count,
}

impl Quantity {
    /// The units that a message suggests.
    fn units(self) -> &'static str {
        match self {
            Self::Size => "B, k, M, G or T (powers of 1024, as KiB) or kB, MB, GB (powers of 1000)",
            Self::Rate => "k, M, G or T with bit/s, b/s, bps or B/s",
            Self::Time => "ns, us, ms or s",
            Self::Fraction => "%",
            Self::LocalSize => "% or a unit of size such as MiB",
            Self::LinkMode | Self::ShareOf => "one of its names",
            Self::Money | Self::Count => "k, M or G (powers of 1000)",
        }
    }

    /// How the quantity is written, for messages.
    fn syntax(self) -> &'static str {
        match self {
            Self::Size => "a number with an optional unit",
            Self::Rate | Self::Time => "a number and a unit",
            Self::Fraction => "a percentage or a number between 0 and 1",
            Self::LocalSize => "a percentage or a size",
            Self::ShareOf => "live, peak or a size such as 512MiB",
            Self::LinkMode => "full-duplex, half-duplex or per-fault",
            Self::Money => "a number",
            Self::Count => "a number, with k, M or G for powers of 1000",
        }
    }

    /// An example, for messages.
    fn example(self) -> &'static str {
        match self {
            Self::Size => "4KiB",
            Self::Rate => "40Gb/s",
            Self::Time => "5us",
            Self::Fraction => "25%",
            Self::LocalSize => "25% or 512MiB",
            Self::ShareOf => "peak or 512MiB",
            Self::LinkMode => "full-duplex",
            Self::Money => "2400",
            Self::Count => "50k",
        }
    }

    /// The largest value, for messages.
    fn limit(self) -> &'static str {
        match self {
            Self::Size | Self::LocalSize | Self::ShareOf => "16 EiB",
            Self::Rate => "18446744 Tb/s",
            Self::Time => "213 days",
            Self::Fraction => "100%",
            Self::LinkMode => "one of its names",
            Self::Money => "18446744073709",
            Self::Count => "18446744073709551615",
        }
    }
}

/// The quantity with its article, as it stands in a sentence.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "a size",
            Self::Rate => "a rate",
            Self::Time => "a time",
            Self::Fraction => "a fraction",
            Self::LocalSize => "a local memory",
            Self::ShareOf => "the whole of a share",
            Self::LinkMode => "a kind of link",
            Self::Money => "a price",
            Self::Count => "a count",
        })
    }
}
