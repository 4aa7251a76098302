use std::cmp::Ordering;
use std::fmt;

use measure::Money;

/// A number of machines, exact: 83⅓ is 250/3.
///
/// A float would make 200.00000000000003 of 240/1.2, and whole machines of that are 201.
#[derive(Debug, Clone, Copy)]
pub struct Machines {
    part: u128,
    /// Never zero.
    whole: u128,
}

impl Machines {
    /// No machines.
    pub const ZERO: Self = Self { part: 0, whole: 1 };

    /// `needed`/`each`: the machines for `needed` if one provides `each`; `None` if `each` is 0.
    #[must_use]
    pub const fn of(needed: u64, each: u64) -> Option<Self> {
        Self::scaled(needed, each, 1, 1)
    }

    /// As [`Machines::of`], for machines that provide only `part`/`whole` of `each`; `None` if that
    /// is 0.
    #[must_use]
    pub const fn scaled(needed: u64, each: u64, part: u32, whole: u32) -> Option<Self> {
        if each == 0 || part == 0 {
            return None;
        }
        let needed = needed as u128 * whole as u128;
        Some(Self { part: needed, whole: each as u128 * part as u128 })
    }

    /// This number rounded up to whole machines.
    #[must_use]
    pub const fn ceil(self) -> Self {
        Self { part: self.part.div_ceil(self.whole), whole: 1 }
    }

    /// This number plus `more`; `None` on overflow.
    #[must_use]
    pub fn plus(self, more: u32) -> Option<Self> {
        let more = self.whole.checked_mul(u128::from(more))?;
        Some(Self { part: self.part.checked_add(more)?, whole: self.whole })
    }

    /// The cost of all machines at `price` each, to the nearest millionth; `None` on overflow.
    #[must_use]
    pub fn times(self, price: Money) -> Option<Money> {
        let price = u128::from(price.micros());
        let whole = (self.part / self.whole).checked_mul(price)?;
        let rest = (self.part % self.whole).checked_mul(price)?;
        let rest = rest.checked_add(self.whole / 2)? / self.whole;
        u64::try_from(whole.checked_add(rest)?).ok().map(Money::from_micros)
    }

    /// The nearest floating-point number.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.part as f64 / self.whole as f64
    }
}

impl PartialEq for Machines {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Machines {}

impl PartialOrd for Machines {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Machines {
    /// Compares by continued fractions, because products of numerators could overflow.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut one, mut other) = (*self, *other);
        loop {
            let wholes = (one.part / one.whole).cmp(&(other.part / other.whole));
            let rests = (one.part % one.whole, other.part % other.whole);
            match (wholes, rests) {
                (Ordering::Equal, (0, 0)) => return Ordering::Equal,
                (Ordering::Equal, (0, _)) => return Ordering::Less,
                (Ordering::Equal, (_, 0)) => return Ordering::Greater,
                (Ordering::Equal, (one_rest, other_rest)) => {
                    // a/b < c/d exactly if d/c < b/a.
                    let next = Self { part: other.whole, whole: other_rest };
                    other = Self { part: one.whole, whole: one_rest };
                    one = next;
                }
                (unequal, _) => return unequal,
            }
        }
    }
}

/// A whole number, or two decimals.
impl fmt::Display for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.part.is_multiple_of(self.whole) {
            (self.part / self.whole).to_string()
        } else {
            format!("{:.2}", self.as_f64())
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn machines_are_exact() {
        let flash = Machines::of(100_000_000_000_000, 1_200_000_000_000).expect("some");
        assert_eq!(flash.times(Money::from_units(2550)), Some(Money::from_units(212_500)));
        assert_eq!(flash.to_string(), "83.33");
        let whole = Machines::of(240_000_000_000_000, 1_200_000_000_000).expect("some");
        assert_eq!(whole.ceil(), whole, "240/1.2 is 200, not a little more");
        assert_eq!(Machines::of(1, 0), None);
        assert_eq!(flash.ceil().plus(1).map(|one| one.to_string()).as_deref(), Some("85"));
    }

    #[test]
    fn too_much_money_is_none() {
        let many = Machines::of(u64::MAX, 1).expect("some");
        assert_eq!(many.times(Money::from_units(1)), None);
        assert_eq!(many.times(Money::from_micros(1)), Some(Money::from_micros(u64::MAX)));
    }

    proptest! {
        #[test]
        fn order_is_that_of_products(a in 0..1_u64 << 60, b in 1..1_u64 << 60,
                                     c in 0..1_u64 << 60, d in 1..1_u64 << 60) {
            let (one, other) = (Machines::of(a, b), Machines::of(c, d));
            let products = (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b)));
            prop_assert_eq!(one.cmp(&other), products);
        }

        #[test]
        fn order_survives_a_common_factor(a in 0..1_u64 << 30, b in 1..1_u64 << 30,
                                          factor in 1..1_u64 << 30) {
            prop_assert_eq!(Machines::of(a, b), Machines::of(a * factor, b * factor));
        }
    }
}
