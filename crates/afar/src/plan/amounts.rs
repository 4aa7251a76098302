//! Amounts of every dimension, as files have them.

use measure::{BitsPerSec, Bytes, Count};
use planner::cost::Dimension;
use serde::Deserialize;

use super::PlanError;
use super::source::{Source, Value};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Amounts {
    capacity: Option<Value>,
    iops: Option<Value>,
    traffic: Option<Value>,
    qps: Option<Value>,
    memory: Option<Value>,
    network: Option<Value>,
}

impl Amounts {
    /// With their dimensions.
    pub(super) const fn all(&self) -> [(Dimension, Option<&Value>); 6] {
        [
            (Dimension::Capacity, self.capacity.as_ref()),
            (Dimension::Iops, self.iops.as_ref()),
            (Dimension::Traffic, self.traffic.as_ref()),
            (Dimension::Qps, self.qps.as_ref()),
            (Dimension::Memory, self.memory.as_ref()),
            (Dimension::Network, self.network.as_ref()),
        ]
    }
}

/// An amount in the unit of its dimension.
pub(super) fn amount(
    source: &Source,
    dimension: Dimension,
    value: &Value,
) -> Result<u64, PlanError> {
    parse_amount(dimension, &value.get_ref().0)
        .map_err(|message| source.wrong(&value.span(), message))
}

/// The same of a text.
pub(super) fn parse_amount(dimension: Dimension, text: &str) -> Result<u64, String> {
    let read = match dimension {
        Dimension::Capacity | Dimension::Memory => text.parse::<Bytes>().map(Bytes::get),
        Dimension::Iops | Dimension::Qps => text.parse::<Count>().map(Count::get),
        Dimension::Traffic | Dimension::Network => match text {
            "0" => Ok(0),
            _ => text.parse::<BitsPerSec>().map(BitsPerSec::get),
        },
    };
    read.map_err(|error| error.to_string())
}

/// A whole number from 0 to `most`.
pub(super) fn small(
    source: &Source,
    value: &Value,
    most: u32,
    what: &str,
) -> Result<u32, PlanError> {
    let text = &value.get_ref().0;
    text.parse().ok().filter(|number| *number <= most).ok_or_else(|| {
        let message = format!("\"{text}\": {what} are a whole number from 0 to {most}");
        source.wrong(&value.span(), message)
    })
}
