//! The memory that a share of local memory is a share of, in figures of programs: as in the papers,
//! a fixed amount. Runs with all memory local come first and show the peak of each program.

use measure::{Bytes, ShareOf};
use serde_json::{Value, json};

use crate::ReproduceError;
use crate::flags::Options;
use crate::programs::{self, Program};
use sweep::Cell;

/// The memory that shares are shares of, for each program.
#[derive(Debug, Clone)]
pub(super) struct Wholes {
    of: ShareOf,
    peaks: Vec<(&'static str, Option<u64>)>,
}

/// Runs `programs` with all memory local if shares are of the peak; `None` if it was interrupted.
///
/// # Errors
/// When results cannot be written, or nothing ran.
pub(super) fn wholes(
    flags: &Options,
    set: (&str, [u32; 2]),
    programs: &[Program],
) -> Result<Option<Wholes>, ReproduceError> {
    let of = flags.of;
    if of != ShareOf::Peak {
        return Ok(Some(Wholes { of, peaks: Vec::new() }));
    }
    let all_local = Cell::zero(None);
    let sizing = |program: &Program| Program { cells: vec![all_local.clone()], ..program.clone() };
    let sized = programs::run(flags, set, &programs.iter().map(sizing).collect::<Vec<_>>())?;
    let peak = |name| sized.of(name).and_then(|runs| runs.peak_bytes(&all_local));
    let peaks = programs.iter().map(|program| (program.name, peak(program.name))).collect();
    Ok((!sized.is_interrupted).then_some(Wholes { of, peaks }))
}

impl Wholes {
    /// The value of the axis `of` for a program; `None` if its peak is not known.
    pub(super) fn known(&self, name: &str) -> Option<String> {
        let named = |&&(other, _): &&(&str, Option<u64>)| other == name;
        match self.of {
            ShareOf::Live => Some("live".to_owned()),
            ShareOf::Bytes(bytes) => Some(bytes.get().to_string()),
            ShareOf::Peak => self.peaks.iter().find(named)?.1.map(|bytes| bytes.to_string()),
        }
    }

    /// As [`Wholes::known`], or `peak` if that is not known: runs of the cell then fail with the
    /// reason.
    pub(super) fn of(&self, name: &str) -> String {
        self.known(name).unwrap_or_else(|| ShareOf::Peak.to_string())
    }

    /// A description, with peaks if they are known.
    pub(super) fn told(&self) -> String {
        let known =
            |&(name, peak): &(&str, Option<u64>)| Some(format!("{} for {name}", Bytes::new(peak?)));
        let peaks: Vec<String> = self.peaks.iter().filter_map(known).collect();
        let each = if peaks.is_empty() { String::new() } else { format!(": {}", peaks.join(", ")) };
        format!("local memory is a share of {}{each}", self.of.told(None))
    }

    /// The same for the record.
    pub(super) fn record(&self) -> Value {
        let bytes: serde_json::Map<String, Value> =
            self.peaks.iter().map(|&(name, peak)| (name.to_owned(), json!(peak))).collect();
        match self.of {
            ShareOf::Bytes(size) => json!({"of": self.of.name(), "bytes": size.get()}),
            _ => json!({"of": self.of.name(), "bytes": bytes}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_a_fixed_amount_unless_told_otherwise() {
        let peaks = vec![("redis", Some(64 << 20)), ("memcached", None)];
        let wholes = |of| Wholes { of, peaks: peaks.clone() };
        let peak = wholes(ShareOf::Peak);
        assert_eq!((peak.of("redis"), peak.known("memcached")), ("67108864".to_owned(), None));
        assert_eq!(peak.of("memcached"), "peak", "its runs will say why it is not known");
        let told = "local memory is a share of the most it used: 64.0 MiB for redis";
        assert_eq!(peak.told(), told);
        let record = json!({"of": "peak", "bytes": {"redis": 64 << 20, "memcached": null}});
        assert_eq!(peak.record(), record);
        let live = Wholes { of: ShareOf::Live, peaks: Vec::new() };
        assert_eq!(live.of("redis"), "live");
        assert!(live.told().ends_with("at each moment (live footprint)"));
        assert_eq!(wholes(ShareOf::Bytes(Bytes::from_mib(1))).of("redis"), "1048576");
    }
}
