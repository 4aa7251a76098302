//! The parameters of transports, by name, with bounds and the source of the default.

use measure::Duration;

/// A parameter of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name on a command line.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The unit of a number; times have units of their own.
    pub unit: &'static str,
    /// Source of the default.
    pub from: &'static str,
    /// The lowest number; times are from a picosecond to [`Parameter::TIME_MAX`].
    pub least: u32,
    /// The highest number.
    pub most: u32,
}

impl Parameter {
    /// The longest time: a run without progress for so long is abandoned.
    pub const TIME_MAX: Duration = Duration::from_ms(1_000);

    pub(crate) const fn new(name: &'static str, what: &'static str, from: &'static str) -> Self {
        Self { name, what, unit: "PACKETS", from, least: 1, most: 1 << 20 }
    }

    /// The same parameter, counted in `unit` instead of packets.
    pub(crate) const fn counting(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// The same parameter, with numbers from `least` to `most`.
    pub(crate) const fn within(self, least: u32, most: u32) -> Self {
        Self { least, most, ..self }
    }
}

/// Where the value of a parameter is stored.
#[derive(Debug, PartialEq, Eq)]
pub enum Slot<'a> {
    /// A number of something.
    Count(&'a mut u32),
    /// A time.
    Time(&'a mut Duration),
    /// Yes or no.
    Flag(&'a mut bool),
}

/// The initial window, of several transports.
pub(crate) const WINDOW: Parameter = Parameter::new(
    "window",
    "Packets under way at the start of a flow",
    "pFabric, NDP: the round trip; TCP, DCTCP: RFC 6928, as in Linux",
);
/// The timeout, of several transports.
pub(crate) const TIMEOUT: Parameter = Parameter::new(
    "timeout",
    "How long nothing may be heard; with TCP and DCTCP, before there is a round trip to go by",
    "pFabric, pHost, TCP, DCTCP: Gao et al. 2016, §4.2; NDP, Homa: their papers; Fastpass: afar",
);
