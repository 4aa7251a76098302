//! The dimensions of demand and of servers.

use std::fmt;

/// A resource that tenants need and servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Bytes on flash.
    Capacity,
    /// Requests to flash per second.
    Iops,
    /// Bits per second between servers and flash; only counts where that is a network.
    Traffic,
    /// Queries per second that processors answer.
    Qps,
    /// Bytes of main memory.
    Memory,
    /// Bits per second between servers and their clients.
    Network,
}

impl Dimension {
    /// All dimensions, in the order of the amounts of a [`Demand`](super::Demand).
    pub const ALL: [Self; 6] =
        [Self::Capacity, Self::Iops, Self::Traffic, Self::Qps, Self::Memory, Self::Network];

    /// Its key in a model file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Iops => "iops",
            Self::Traffic => "traffic",
            Self::Qps => "qps",
            Self::Memory => "memory",
            Self::Network => "network",
        }
    }
}

impl Dimension {
    /// `amount` as exact text with its unit: "2 TB", not "about 2 TB".
    #[must_use]
    pub fn amount(self, amount: u64) -> String {
        const DECIMAL: [(u64, &str); 3] =
            [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M")];
        const BINARY: [(u64, &str); 3] = [(1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi")];
        let unit = match self {
            Self::Capacity | Self::Memory => "B",
            Self::Traffic | Self::Network => "b/s",
            Self::Iops | Self::Qps => return amount.to_string(),
        };
        let prefixes = DECIMAL.into_iter().chain(BINARY);
        let mut whole = prefixes.filter(|(size, _)| amount > 0 && amount.is_multiple_of(*size));
        match whole.next() {
            Some((size, prefix)) => format!("{} {prefix}{unit}", amount / size),
            None => format!("{amount} {unit}"),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
