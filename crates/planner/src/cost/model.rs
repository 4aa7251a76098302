use measure::Money;

use super::{CostError, Demand, Dimension, Machines};

/// What a machine, or a part of one, costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// Price to buy it.
    pub price: Money,
    /// Power, in watts.
    pub power_watts: u32,
    /// Space, in thousandths of a rack unit.
    pub space_milliunits: u32,
}

/// The cost of power and space over the life of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facility {
    /// Cost of one watt.
    pub per_watt: Money,
    /// Cost of one rack unit.
    pub per_unit: Money,
}

/// How much a server has of each dimension; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Server {
    amounts: [Option<u64>; 6],
}

/// The servers, prices and overheads of a comparison: everything but the demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// A server with all the flash that fits in it.
    pub server: Server,
    /// The flash of one server: f.
    pub flash: Part,
    /// The processors, memory and network of one server: c.
    pub compute: Part,
    /// The processors, memory and network of a server that only serves flash: δ.
    pub tax: Part,
    /// Costs of power and space.
    pub facility: Facility,
    /// Queries per second that a server loses by remote flash, in billionths; below a billion.
    pub drop_ppb: u32,
    /// Whether numbers of machines are rounded up to whole ones.
    pub whole: bool,
    /// Spare machines of each group, in case of failures.
    pub spares: u32,
}

/// The dimensions that flash provides.
pub(super) const FLASH: [Dimension; 2] = [Dimension::Capacity, Dimension::Iops];
/// The dimensions that processors, memory and network provide.
pub(super) const COMPUTE: [Dimension; 3] = [Dimension::Qps, Dimension::Memory, Dimension::Network];
const BILLION: u32 = 1_000_000_000;

impl Server {
    /// This server with `amount` of `dimension`.
    #[must_use]
    pub const fn with(mut self, dimension: Dimension, amount: u64) -> Self {
        self.amounts[dimension as usize] = Some(amount);
        self
    }

    /// How much it has of `dimension`; `None` if that is no limit.
    #[must_use]
    pub const fn get(&self, dimension: Dimension) -> Option<u64> {
        self.amounts[dimension as usize]
    }
}

impl Model {
    /// The price of a machine made of `parts`, with their power and space.
    pub(super) fn price(&self, parts: [&Part; 2]) -> Result<Money, CostError> {
        let mut sum = Money::ZERO;
        for part in parts {
            let power = self.facility.per_watt.checked_mul(u64::from(part.power_watts));
            // A unit's price times thousandths, to the nearest millionth.
            let space = Machines::of(u64::from(part.space_milliunits), 1000);
            let space = space.and_then(|units| units.times(self.facility.per_unit));
            let all = [Some(part.price), power, space];
            for one in all {
                let next = one.and_then(|one| sum.checked_add(one));
                sum = next.ok_or(CostError::Money)?;
            }
        }
        Ok(sum)
    }

    /// How many machines `demand` needs, and which of `dimensions` needs the most. If `is_remote`,
    /// each answers fewer queries, because its flash is remote.
    pub(super) fn machines(
        &self,
        demand: &Demand,
        dimensions: &[Dimension],
        is_remote: bool,
    ) -> Result<(Machines, Dimension), CostError> {
        let mut most = (Machines::ZERO, dimensions[0]);
        for &dimension in dimensions {
            let needed = demand.get(dimension);
            let Some(each) = self.server.get(dimension) else {
                if needed > 0 && dimension != Dimension::Traffic {
                    return Err(CostError::Unsaid(dimension));
                }
                continue;
            };
            let part = match dimension {
                Dimension::Qps if is_remote => BILLION.saturating_sub(self.drop_ppb),
                _ => BILLION,
            };
            let count = Machines::scaled(needed, each, part, BILLION);
            let count = count.ok_or(CostError::Nothing(dimension))?;
            if count > most.0 {
                most = (count, dimension);
            }
        }
        Ok(most)
    }

    /// The machines to buy for `needed` ones: rounded up if only whole ones exist, plus spares.
    pub(super) fn bought(&self, needed: Machines) -> Result<Machines, CostError> {
        let count = if self.whole { needed.ceil() } else { needed };
        count.plus(self.spares).ok_or(CostError::Money)
    }
}
