use super::CostError;
use super::dimension::Dimension;

/// The amount of every dimension that a tenant needs at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    amounts: [u64; 6],
}

/// A user of servers, with its demand over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its name, for output.
    pub name: String,
    /// Its demand by period; the last one holds for all later periods.
    pub series: Vec<Demand>,
}

impl Demand {
    /// The amount of one dimension.
    #[must_use]
    pub const fn get(&self, dimension: Dimension) -> u64 {
        self.amounts[dimension as usize]
    }

    /// This demand with `amount` of `dimension`.
    #[must_use]
    pub const fn with(mut self, dimension: Dimension, amount: u64) -> Self {
        self.amounts[dimension as usize] = amount;
        self
    }

    /// The sum of two demands, dimension by dimension.
    ///
    /// # Errors
    /// When an amount is beyond 2⁶⁴.
    pub fn plus(mut self, other: Self) -> Result<Self, CostError> {
        for dimension in Dimension::ALL {
            let at = dimension as usize;
            let sum = self.amounts[at].checked_add(other.amounts[at]);
            self.amounts[at] = sum.ok_or(CostError::Amount(dimension))?;
        }
        Ok(self)
    }

    /// This demand with the amount of `dimension` times `part`/`whole`, rounded up.
    ///
    /// # Errors
    /// When an amount is beyond 2⁶⁴.
    pub fn times(self, dimension: Dimension, part: u64, whole: u64) -> Result<Self, CostError> {
        let amount = u128::from(self.get(dimension)) * u128::from(part);
        let amount = u64::try_from(amount.div_ceil(u128::from(whole.max(1))));
        Ok(self.with(dimension, amount.map_err(|_| CostError::Amount(dimension))?))
    }
}

/// The demand of `periods` periods that begin with `first`. From one to the next each dimension is
/// multiplied by its factor in millionths: 1,100,000 is growth by a tenth.
///
/// # Errors
/// When an amount is beyond 2⁶⁴.
pub fn grow(
    first: Demand,
    growth_ppm: &[(Dimension, u64)],
    periods: usize,
) -> Result<Vec<Demand>, CostError> {
    let mut series = vec![first];
    while series.len() < periods {
        let mut next = series[series.len() - 1];
        for &(dimension, ppm) in growth_ppm {
            next = next.times(dimension, ppm, 1_000_000)?;
        }
        series.push(next);
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_and_all_their_digits() {
        assert_eq!(Dimension::Capacity.amount(9_000_000_000_000), "9 TB");
        assert_eq!(Dimension::Capacity.amount(9_000_000_000_001), "9000000000001 B");
        assert_eq!(Dimension::Memory.amount(96 << 30), "96 GiB");
        assert_eq!(Dimension::Traffic.amount(2_500_000_000), "2500 Mb/s");
        assert_eq!(Dimension::Iops.amount(45_000), "45000");
    }

    #[test]
    fn growth_compounds_and_stops_at_the_end() {
        let first = Demand::default().with(Dimension::Qps, 100).with(Dimension::Capacity, 7);
        let series = grow(first, &[(Dimension::Qps, 1_100_000)], 3).expect("small");
        let qps: Vec<u64> = series.iter().map(|one| one.get(Dimension::Qps)).collect();
        assert_eq!(qps, [100, 110, 121]);
        assert_eq!(series[2].get(Dimension::Capacity), 7);
        let most = first.with(Dimension::Qps, u64::MAX);
        assert_eq!(
            grow(most, &[(Dimension::Qps, 2_000_000)], 2),
            Err(CostError::Amount(Dimension::Qps))
        );
    }
}
