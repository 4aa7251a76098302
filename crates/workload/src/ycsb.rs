//! YCSB workloads and a parser of their property files, which reports ignored properties and the
//! lines of errors.

use std::str::FromStr;

use crate::popularity::{Popularity, PopularityKind};
use crate::record::KeyOrder;

/// The share of each operation in all requests; the shares add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mix {
    /// Read a record.
    pub read: f64,
    /// Replace a record.
    pub update: f64,
    /// Add a record.
    pub insert: f64,
    /// Read several records with consecutive numbers.
    pub scan: f64,
    /// Read a record, then replace it.
    pub read_modify_write: f64,
}

impl Mix {
    /// The shares in the order of [`Operation::ALL`](crate::Operation::ALL).
    fn parts(&self) -> [f64; 5] {
        [self.read, self.update, self.insert, self.scan, self.read_modify_write]
    }

    /// This mix scaled so that its shares add up to 1; `None` if they add up to 0 or one is
    /// negative or no number.
    #[must_use]
    pub fn normalised(self) -> Option<Self> {
        let sum: f64 = self.parts().iter().sum();
        let is_share = |part: &f64| part.is_finite() && *part >= 0.0;
        (sum > 0.0 && self.parts().iter().all(is_share)).then(|| Self {
            read: self.read / sum,
            update: self.update / sum,
            insert: self.insert / sum,
            scan: self.scan / sum,
            read_modify_write: self.read_modify_write / sum,
        })
    }
}

/// A workload of YCSB's core package (Cooper et al., "Benchmarking cloud serving systems with
/// YCSB", SoCC 2010).
///
/// A record is one value of `value_bytes` bytes, not a hash of fields: `fieldcount` fields of
/// `fieldlength` bytes are read from property files as their product.
#[derive(Debug, Clone, PartialEq)]
pub struct Ycsb {
    /// The share of each operation.
    pub mix: Mix,
    /// How often each record is requested.
    pub popularity: PopularityKind,
    /// Skew of `Zipfian` and `Latest`.
    pub theta: f64,
    /// Records before the first request, at least 1.
    pub record_count: u64,
    /// Requests in all; `None` for as many as time allows.
    pub operation_count: Option<u64>,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Most records of a scan; their number is uniform from 1 to this.
    pub scan_records_max: u32,
    /// How keys follow from record numbers.
    pub key_order: KeyOrder,
}

/// YCSB's six core workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum YcsbName {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads only.
    #[default]
    C,
    /// 95 % reads of the latest, 5 % inserts.
    D,
    /// 95 % scans, 5 % inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
}

impl Default for Ycsb {
    /// YCSB's own defaults, except for the number of records, which is 0 in YCSB.
    fn default() -> Self {
        Self {
            mix: Mix { read: 0.95, update: 0.05, ..Mix::default() },
            popularity: PopularityKind::Uniform,
            theta: Popularity::THETA,
            record_count: 1000,
            operation_count: None,
            value_bytes: 1000,
            scan_records_max: 1000,
            key_order: KeyOrder::Hashed,
        }
    }
}

impl YcsbName {
    /// The workload of that name, as in YCSB's `workloads/`, but with an unlimited number of
    /// operations.
    #[must_use]
    pub fn workload(self) -> Ycsb {
        let none = Mix::default();
        let mix = match self {
            Self::A => Mix { read: 0.5, update: 0.5, ..none },
            Self::B => Mix { read: 0.95, update: 0.05, ..none },
            Self::C => Mix { read: 1.0, ..none },
            Self::D => Mix { read: 0.95, insert: 0.05, ..none },
            Self::E => Mix { scan: 0.95, insert: 0.05, ..none },
            Self::F => Mix { read: 0.5, read_modify_write: 0.5, ..none },
        };
        let popularity =
            if self == Self::D { PopularityKind::Latest } else { PopularityKind::Zipfian };
        Ycsb { mix, popularity, scan_records_max: 100, ..Ycsb::default() }
    }
}

/// Why a property file is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PropertyError {
    /// A property has an invalid value.
    #[error("line {line}: {key}={value}: {wanted}")]
    Value {
        /// Counted from 1.
        line: usize,
        /// The property.
        key: String,
        /// What it was set to.
        value: String,
        /// What it may be set to.
        wanted: &'static str,
    },
    /// The proportions add up to 0.
    #[error("no operation has a proportion; set readproportion, for one")]
    NothingToDo,
}

impl Ycsb {
    /// Parses a property file of YCSB (the format of `java.util.Properties`). Returns the workload
    /// and the names of ignored properties.
    ///
    /// # Errors
    /// When a value is invalid (with its line), or no operation has a proportion.
    pub fn from_properties(text: &str) -> Result<(Self, Vec<String>), PropertyError> {
        let mut workload = Self::default();
        let (mut fields, mut field_bytes) = (10_u64, 100_u64);
        let mut ignored = Vec::new();
        for (line, key, value) in properties(text) {
            let property = Property { line, key: &key, value: &value };
            match key.as_str() {
                "fieldcount" => fields = property.number(1, 1 << 20)?,
                "fieldlength" => field_bytes = property.number(1, 1 << 26)?,
                _ => {
                    if !workload.set(&property)? {
                        ignored.push(key);
                    }
                }
            }
        }
        workload.value_bytes = usize::try_from(fields * field_bytes).unwrap_or(usize::MAX);
        workload.mix = workload.mix.normalised().ok_or(PropertyError::NothingToDo)?;
        Ok((workload, ignored))
    }

    // Sets the field of one property. Returns whether the property is known.
    fn set(&mut self, property: &Property<'_>) -> Result<bool, PropertyError> {
        match property.key {
            "recordcount" => self.record_count = property.number(1, 1 << 44)?,
            "operationcount" => {
                let count = property.number(0, u64::MAX)?;
                self.operation_count = (count > 0).then_some(count);
            }
            "readproportion" => self.mix.read = property.share()?,
            "updateproportion" => self.mix.update = property.share()?,
            "insertproportion" => self.mix.insert = property.share()?,
            "scanproportion" => self.mix.scan = property.share()?,
            "readmodifywriteproportion" => self.mix.read_modify_write = property.share()?,
            "maxscanlength" => {
                self.scan_records_max =
                    u32::try_from(property.number(1, 1 << 20)?).unwrap_or(u32::MAX);
            }
            "requestdistribution" => {
                self.popularity = match property.value {
                    "uniform" => PopularityKind::Uniform,
                    "zipfian" => PopularityKind::Zipfian,
                    "latest" => PopularityKind::Latest,
                    _ => return Err(property.wants("uniform, zipfian or latest")),
                }
            }
            "insertorder" => {
                self.key_order = match property.value {
                    "hashed" => KeyOrder::Hashed,
                    "ordered" => KeyOrder::Ordered,
                    _ => return Err(property.wants("hashed or ordered")),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A property of a file and its line, from 1.
struct Property<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
}

impl Property<'_> {
    /// The error that the value is not `wanted`.
    fn wants(&self, wanted: &'static str) -> PropertyError {
        let (key, value) = (self.key.to_owned(), self.value.to_owned());
        PropertyError::Value { line: self.line, key, value, wanted }
    }

    /// The value as a `T`; an error that names `wanted` if it is none.
    fn parse<T: FromStr>(&self, wanted: &'static str) -> Result<T, PropertyError> {
        self.value.parse().map_err(|_| self.wants(wanted))
    }

    /// The value as a whole number from `least` to `most`.
    fn number(&self, least: u64, most: u64) -> Result<u64, PropertyError> {
        let wanted = if least == 0 { "a whole number" } else { "a whole number, 1 or more" };
        let number = self.parse(wanted)?;
        if (least..=most).contains(&number) { Ok(number) } else { Err(self.wants(wanted)) }
    }

    /// The value as a number from 0 to 1.
    fn share(&self) -> Result<f64, PropertyError> {
        let wanted = "a number from 0 to 1";
        let share = self.parse(wanted)?;
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(self.wants(wanted)) }
    }
}

// Line, key and value of each property. Of `java.util.Properties`: comments (`#`, `!`), `=`, `:` or
// blanks between key and value, and lines that go on after a backslash; no escapes.
fn properties(text: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut whole = line.trim_start().to_owned();
        if whole.is_empty() || whole.starts_with(['#', '!']) {
            continue;
        }
        while whole.ends_with('\\') {
            whole.pop();
            let Some((_, next)) = lines.next() else { break };
            whole.push_str(next.trim_start());
        }
        let end = whole.find(|c: char| c == '=' || c == ':' || c.is_whitespace());
        let (key, rest) = whole.split_at(end.unwrap_or(whole.len()));
        let rest = rest.trim_start();
        let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
        found.push((index + 1, key.to_owned(), value.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // YCSB's workloads/workloade without its licence.
    const WORKLOAD_E: &str = "# Yahoo! Cloud System Benchmark\n# Workload E: Short ranges\n\
        recordcount=1000\noperationcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\n\n\
        readallfields=true\n\nreadproportion=0\nupdateproportion=0\nscanproportion=0.95\n\
        insertproportion=0.05\n\nrequestdistribution=zipfian\n\nmaxscanlength=100\n\n\
        scanlengthdistribution=uniform\n";

    #[test]
    fn property_file_of_a_core_workload_is_that_workload() {
        let (read, ignored) = Ycsb::from_properties(WORKLOAD_E).expect("it is YCSB's own");
        assert_eq!(read, Ycsb { operation_count: Some(1000), ..YcsbName::E.workload() });
        assert_eq!(ignored, ["workload", "readallfields", "scanlengthdistribution"]);
    }

    #[test]
    fn other_ways_to_write_a_property() {
        let text = "! a comment\n  fieldcount : 2\nfieldlength 50\nrecordcount = 1\\\n   0\n";
        let (read, ignored) = Ycsb::from_properties(text).expect("all of these are properties");
        assert_eq!((read.value_bytes, read.record_count, ignored.len()), (100, 10, 0));
    }

    #[test]
    fn wrong_values_are_named_with_their_line() {
        let refused = |text| Ycsb::from_properties(text).expect_err("refused").to_string();
        assert_eq!(refused("\nreadproportion=2"), "line 2: readproportion=2: a number from 0 to 1");
        assert_eq!(
            refused("requestdistribution=hotspot"),
            "line 1: requestdistribution=hotspot: uniform, zipfian or latest"
        );
        assert_eq!(refused("recordcount=0"), "line 1: recordcount=0: a whole number, 1 or more");
        assert_eq!(
            refused("readproportion=0\nupdateproportion=0"),
            "no operation has a proportion; set readproportion, for one"
        );
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "\\PC*(\n\\PC*){0,5}") {
            let _read = Ycsb::from_properties(&text);
        }
    }
}
