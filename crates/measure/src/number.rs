//! Decimal numbers parsed without floating point, so that "0.3" means three tenths.

use crate::error::{ParseError, Quantity};

/// A number and the text that follows it, as in `1.5ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measured<'a> {
    text: &'a str,
    quantity: Quantity,
    number: Decimal,
    /// Trimmed; empty for a bare number.
    pub(crate) unit: &'a str,
}

/// `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    scale: u32,
}

/// Fractional digits beyond these cannot move a result by one unit and are dropped.
const SCALE_MAX: u32 = 18;

impl<'a> Measured<'a> {
    /// Splits `text` into its leading decimal number and the unit after it.
    pub(crate) fn parse(text: &'a str, quantity: Quantity) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        if trimmed.starts_with(['-', '\u{2212}']) {
            return Err(ParseError::Negative { value: text.to_owned(), quantity });
        }
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        if !has_digits || fraction.contains('.') {
            return Err(ParseError::NotANumber { value: text.to_owned(), quantity });
        }
        let number = Decimal::from_digits(whole, fraction)
            .ok_or_else(|| ParseError::TooLarge { value: text.to_owned(), quantity })?;
        Ok(Self { text, quantity, number, unit: unit.trim() })
    }

    /// Whether the number was written with a decimal point.
    pub(crate) fn has_point(&self) -> bool {
        self.text.contains('.')
    }

    /// The number times `unit`, rounded to the nearest whole number (half up).
    pub(crate) fn scaled(&self, unit: u64) -> Result<u64, ParseError> {
        let denominator = 10_u128.pow(self.number.scale);
        self.number
            .digits
            .checked_mul(u128::from(unit))
            .and_then(|product| product.checked_add(denominator / 2))
            .and_then(|rounded| u64::try_from(rounded / denominator).ok())
            .ok_or_else(|| self.too_large())
    }

    /// The error for a number whose unit is missing.
    pub(crate) fn missing_unit(&self) -> ParseError {
        ParseError::MissingUnit { value: self.text.to_owned(), quantity: self.quantity }
    }

    /// The error for a unit that the quantity does not have.
    pub(crate) fn unknown_unit(&self) -> ParseError {
        ParseError::UnknownUnit {
            value: self.text.to_owned(),
            unit: self.unit.to_owned(),
            quantity: self.quantity,
        }
    }

    /// The error for a number that is too large.
    pub(crate) fn too_large(&self) -> ParseError {
        ParseError::TooLarge { value: self.text.to_owned(), quantity: self.quantity }
    }

    /// The error for a number that is or rounds to zero.
    pub(crate) fn zero(&self) -> ParseError {
        ParseError::Zero { value: self.text.to_owned(), quantity: self.quantity }
    }
}

impl Decimal {
    /// A decimal from its digits; `None` if the whole part alone exceeds every quantity.
    fn from_digits(whole: &str, fraction: &str) -> Option<Self> {
        let whole = whole.trim_start_matches('0');
        // 20 digits hold every u64, and 20 + 18 digits fit in a u128.
        if whole.len() > 20 {
            return None;
        }
        let mut digits = 0_u128;
        let mut scale = 0;
        for (position, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            if scale == SCALE_MAX {
                break;
            }
            digits = digits * 10 + u128::from(digit - b'0');
            if position >= whole.len() {
                scale += 1;
            }
        }
        Some(Self { digits, scale })
    }
}

/// `thousandths / 1000` in the fewest digits that say it exactly: "40", "2.5", "0.125".
pub(crate) fn thousandths(value: u128) -> String {
    let (whole, rest) = (value / 1000, value % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').to_owned()
}

/// `value / unit` with one decimal, rounded half up: "512.0".
pub(crate) fn one_decimal(value: u64, unit: u64) -> String {
    let tenths = (u128::from(value) * 20 + u128::from(unit)) / (u128::from(unit) * 2);
    format!("{}.{}", tenths / 10, tenths % 10)
}
