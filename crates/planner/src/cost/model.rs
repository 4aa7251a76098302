use measure::Money;

use super::{CostError, Demand, Dimension, Machines};

/// What a machine, or a part of one, costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// To buy.
    pub price: Money,
    /// Watts.
    pub power_watts: u32,
    /// Thousandths of a rack unit.
    pub space_milliunits: u32,
}

/// What a building costs over the life of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facility {
    /// Per watt.
    pub per_watt: Money,
    /// Per rack unit.
    pub per_unit: Money,
}

/// What a server has of each dimension; what is not said is not a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Server {
    amounts: [Option<u64>; 6],
}

/// Everything but the demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// A server, with all the flash it can have.
    pub server: Server,
    /// The flash of one server: f.
    pub flash: Part,
    /// Processors, memory and network of one server: c.
    pub compute: Part,
    /// The same of a server that has nothing but flash to serve: δ.
    pub tax: Part,
    /// Power and space.
    pub facility: Facility,
    /// Queries per second that a server loses by remote flash, in billionths; below a billion.
    pub drop_ppb: u32,
    /// Whether there are only whole machines.
    pub whole: bool,
    /// Machines more than needed in each group, in case of failures.
    pub spares: u32,
}

/// Dimensions of flash, and those of servers that use it.
pub(super) const FLASH: [Dimension; 2] = [Dimension::Capacity, Dimension::Iops];
pub(super) const COMPUTE: [Dimension; 3] = [Dimension::Qps, Dimension::Memory, Dimension::Network];
const BILLION: u32 = 1_000_000_000;

impl Server {
    /// The same with so much of a dimension.
    #[must_use]
    pub const fn with(mut self, dimension: Dimension, amount: u64) -> Self {
        self.amounts[dimension as usize] = Some(amount);
        self
    }

    /// Of one dimension, if that is a limit.
    #[must_use]
    pub const fn get(&self, dimension: Dimension) -> Option<u64> {
        self.amounts[dimension as usize]
    }
}

impl Model {
    /// What a machine of some parts costs, with its power and space.
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

    /// How many machines a demand takes, and for which of some dimensions most.
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

    /// Rounded and with spares, as they are bought.
    pub(super) fn bought(&self, needed: Machines) -> Result<Machines, CostError> {
        let count = if self.whole { needed.ceil() } else { needed };
        count.plus(self.spares).ok_or(CostError::Money)
    }
}
