//! What can be set of a transport, whichever it is: by name, with bounds and a source.

use measure::Duration;

/// Something that can be set of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// How it is called on a command line.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// What a number of it counts; times have units of their own.
    pub unit: &'static str,
    /// Where what is used otherwise comes from.
    pub from: &'static str,
    /// The least that a number may be; times are from a picosecond to [`Parameter::TIME_MAX`].
    pub least: u32,
    /// The most that a number may be.
    pub most: u32,
}

impl Parameter {
    /// The longest time: a run in which nothing moves for it is given up.
    pub const TIME_MAX: Duration = Duration::from_ms(1_000);

    pub(crate) const fn new(name: &'static str, what: &'static str, from: &'static str) -> Self {
        Self { name, what, unit: "PACKETS", from, least: 1, most: 1 << 20 }
    }

    /// Counts something other than packets.
    pub(crate) const fn counting(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub(crate) const fn within(self, least: u32, most: u32) -> Self {
        Self { least, most, ..self }
    }
}

/// Where a parameter is kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Slot<'a> {
    /// A number of something.
    Count(&'a mut u32),
    /// A time.
    Time(&'a mut Duration),
    /// Yes or no.
    Flag(&'a mut bool),
}

/// Of several transports.
pub(crate) const WINDOW: Parameter = Parameter::new(
    "window",
    "Packets under way at the start of a flow",
    "pFabric, NDP: the round trip; TCP, DCTCP: RFC 6928, as in Linux",
);
/// Of several transports.
pub(crate) const TIMEOUT: Parameter = Parameter::new(
    "timeout",
    "How long nothing may be heard; with TCP and DCTCP, before there is a round trip to go by",
    "pFabric, pHost, TCP, DCTCP: Gao et al. 2016, §4.2; NDP, Homa: their papers; Fastpass: afar",
);
