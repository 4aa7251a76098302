//! Amounts of every dimension, as files have them.

use measure::{BitsPerSec, Bytes, Count};
use planner::cost::Dimension;
use serde::Deserialize;

use document::DocumentError;
use document::{Source, Value, is_parquet};

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
    /// Every dimension with its amount, if the file gives one.
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
) -> Result<u64, DocumentError> {
    parse_amount(dimension, &value.get_ref().0)
        .map_err(|message| source.wrong(&value.span(), message))
}

/// An amount in a text, in the unit of its dimension.
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

/// An amount in a cell; a bare number in Parquet has the unit of its dimension, such as bits/s.
pub(super) fn cell_amount(
    source: &Source,
    dimension: Dimension,
    text: &str,
) -> Result<u64, String> {
    let bare = text.parse().ok().filter(|_| is_parquet(&source.name));
    bare.map_or_else(|| parse_amount(dimension, text), Ok)
}

/// A whole number from 0 to `most`.
pub(super) fn small(
    source: &Source,
    value: &Value,
    most: u32,
    what: &str,
) -> Result<u32, DocumentError> {
    let text = &value.get_ref().0;
    text.parse().ok().filter(|number| *number <= most).ok_or_else(|| {
        let message = format!("\"{text}\": {what} are a whole number from 0 to {most}");
        source.wrong(&value.span(), message)
    })
}

const TERABYTE: u64 = 1_000_000_000_000;

/// An amount with its unit, in few digits; capacity in powers of 1000, as drives are sold.
pub(super) fn short_amount(dimension: Dimension, value: u64) -> String {
    match dimension {
        Dimension::Capacity if value >= 1_000_000_000 => {
            let (unit, name) =
                if value < TERABYTE { (TERABYTE / 1000, "GB") } else { (TERABYTE, "TB") };
            let text = format!("{:.2}", value as f64 / unit as f64);
            format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Dimension::Capacity | Dimension::Memory => Bytes::new(value).to_string(),
        Dimension::Iops | Dimension::Qps => Count::new(value).to_string(),
        Dimension::Traffic | Dimension::Network => {
            if value == 0 {
                "0".to_owned()
            } else {
                BitsPerSec::new(value).to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        let of = |name: &str| Source { name: name.to_owned(), text: String::new() };
        let bits = |name, text: &str| cell_amount(&of(name), Dimension::Traffic, text);
        assert_eq!(bits("x.csv", "7b/s"), Ok(7));
        assert_eq!(bits("x.parquet", "7"), Ok(7));
        assert!(bits("x.csv", "7").is_err() && bits("x.parquet", "-7").is_err());
        let amount = short_amount;
        assert_eq!(amount(Dimension::Capacity, 169_411_764_705_882), "169.41 TB");
        assert_eq!(amount(Dimension::Capacity, 708_333_333_333), "708.33 GB");
        assert_eq!(amount(Dimension::Qps, 10_000_000), "10M");
        assert_eq!(amount(Dimension::Traffic, 25_000_000_000), "25 Gb/s");
        assert_eq!(amount(Dimension::Memory, 1 << 38), "256.0 GiB");
    }
}
