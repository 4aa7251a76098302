//! Reads each setting of a job from its options.

use measure::Duration;
use workload::Spacing;

use super::entries::{Entries, Read};
use super::options::Place;
use clap::ValueEnum as _;

use crate::bench::pattern::{Pattern, skew};

/// Fio's limit on the length of `percentile_list`.
const PERCENTILES_MOST: usize = 20;
/// Fio's values of `verify`; each turns on afar's own check.
const CHECKS: [&str; 16] = [
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
];

impl Entries<'_> {
    /// `rw`; sequential reads by default.
    pub(super) fn pattern(&self) -> Read<Pattern> {
        let Some(entry) = self.get("rw") else { return Ok(Pattern::Read) };
        let value = entry.value()?;
        if value.contains(':') {
            return Err(entry.wrong("fio's numbers after a colon are not supported; remove them"));
        }
        if matches!(value, "trimwrite" | "randtrimwrite") {
            return Err(entry.wrong("is not supported; write sections that trim and write"));
        }
        Pattern::from_str(value, false).map_err(|_| {
            let names = Pattern::value_variants().iter().map(|one| one.name());
            entry.wrong(format!("write {}", names.collect::<Vec<_>>().join(", ")))
        })
    }

    /// The percentage of reads, by `rwmixread` or `rwmixwrite`, whichever is last.
    pub(super) fn read_percent(&self, rw: Pattern) -> Read<u8> {
        let read = self.whole("rwmixread", 0..=100)?;
        let write = self.whole("rwmixwrite", 0..=100)?.map(|share| 100 - share);
        let line = |word| self.get(word).map_or(0, |entry| entry.line);
        let mixed = match line("rwmixwrite") > line("rwmixread") {
            true => write,
            false => read,
        };
        let mixed = u8::try_from(mixed.unwrap_or(50)).unwrap_or(100);
        Ok(rw.read_percent(mixed))
    }

    /// `bs`: bytes of a request. Reads and others must have the same size if there are both.
    pub(super) fn block_bytes(&self, read_percent: u8) -> Read<u64> {
        const DEFAULT: u64 = 4096;
        let Some((entry, [read, other, trim])) = self.each("bs")? else { return Ok(DEFAULT) };
        let is_trim = self.pattern()?.trims();
        let other = if is_trim { trim } else { other };
        let [read, other] = [read, other].map(|bytes| bytes.unwrap_or(DEFAULT));
        match read_percent {
            100 => Ok(read),
            0 => Ok(other),
            _ if read == other => Ok(read),
            _ => Err(entry.wrong("sizes that differ are not supported; write one for both")),
        }
    }

    /// Requests per second of one thread, by `rate` and `rate_iops`; `None` if not limited. Fio
    /// limits reads and others separately at a fixed mix, so the tighter limit holds for both.
    pub(super) fn rate(&self, read_percent: u8, block_bytes: u64) -> Read<Option<f64>> {
        let is_trim = self.pattern()?.trims();
        let mut least: Option<f64> = None;
        for (word, unit) in [("rate", block_bytes), ("rate_iops", 1)] {
            let Some((entry, [read, write, trim])) = self.each(word)? else { continue };
            let other = if is_trim { trim } else { write };
            for (limit, share) in [(read, read_percent), (other, 100 - read_percent)] {
                let Some(limit) = limit.filter(|_| share > 0) else { continue };
                if limit == 0 {
                    return Err(entry.wrong("no request could be made; write more than 0"));
                }
                let rate = limit as f64 / unit.max(1) as f64 * 100.0 / f64::from(share);
                least = Some(least.map_or(rate, |least| least.min(rate)));
            }
        }
        Ok(least)
    }

    /// `rate_process`: even spacing by default.
    pub(super) fn spacing(&self) -> Read<Spacing> {
        Ok(match self.choice("rate_process", &["linear", "poisson"])? {
            Some("poisson") => Spacing::Poisson,
            _ => Spacing::Even,
        })
    }

    /// `thinktime` and `thinktime_blocks`: a pause, and the number of requests before each.
    pub(super) fn think(&self) -> Read<Option<(Duration, u32)>> {
        const MICROSECOND_NS: u64 = 1000;
        let requests = self.whole("thinktime_blocks", 1..=u32::MAX.into())?.unwrap_or(1);
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        let time = self.time("thinktime", MICROSECOND_NS)?.filter(|time| !time.is_zero());
        Ok(time.map(|time| (time, requests)))
    }

    /// `random_distribution`: the skew; `None` if uniform.
    pub(super) fn zipf(&self) -> Read<Option<f64>> {
        let Some(entry) = self.get("random_distribution") else { return Ok(None) };
        entry.parse(skew)
    }

    /// `verify`: whether reads are checked.
    pub(super) fn verifies(&self) -> Read<bool> {
        let Some(entry) = self.get("verify") else { return Ok(false) };
        match entry.value()? {
            "0" => Ok(false),
            check if CHECKS.contains(&check) => Ok(true),
            "pattern" | "null" => {
                Err(entry.wrong("is not supported; any check will do, e.g. verify=crc32c"))
            }
            _ => Err(entry.wrong(format!("write 0, {}", CHECKS.join(", ")))),
        }
    }

    /// `sync`: whether each write ends on the medium.
    pub(super) fn is_forced(&self) -> Read<bool> {
        let sync = self.choice("sync", &["none", "0", "sync", "1", "dsync"])?;
        Ok(matches!(sync, Some("sync" | "1" | "dsync")))
    }

    /// `fsync` or `fdatasync`: the number of writes before each flush.
    pub(super) fn flush_every(&self) -> Read<Option<u32>> {
        let of = |word| self.whole(word, 0..=u32::MAX.into());
        let every = of("fsync")?.or(of("fdatasync")?).filter(|every| *every > 0);
        Ok(every.and_then(|every| u32::try_from(every).ok()))
    }

    /// `randseed`, or 1; `None`, another seed each time, if `randrepeat` and `allrandrepeat` are 0.
    pub(super) fn seed(&self) -> Read<Option<u64>> {
        let given = self.whole("randseed", 0..=u64::MAX)?;
        let is_same = self.boolean("randrepeat")? != Some(false);
        let is_same = is_same || self.boolean("allrandrepeat")? == Some(true);
        Ok(given.or_else(|| is_same.then_some(1)))
    }

    /// `percentile_list`; `None` if it is missing.
    pub(super) fn percentiles(&self) -> Read<Option<Vec<f64>>> {
        let Some(entry) = self.get("percentile_list") else { return Ok(None) };
        let numbers = entry.value()?.split(':').map(|text| text.trim().parse().ok());
        let within = numbers.map(|number| number.filter(|one| (0.0..=100.0).contains(one)));
        let list = within.collect::<Option<Vec<f64>>>();
        list.filter(|list| list.len() <= PERCENTILES_MOST).map(Some).ok_or_else(|| {
            let most = PERCENTILES_MOST;
            entry.wrong(format!("write up to {most} numbers to 100, e.g. 50:99:99.9"))
        })
    }

    /// The disk: `filename`, or `null:` with `ioengine=null`.
    pub(super) fn place(&self) -> Read<Option<Place>> {
        if self.text("ioengine") == Some("null") {
            return Ok(Some(Place::Uri("null:".to_owned())));
        }
        let Some(entry) = self.get("filename") else { return Ok(None) };
        let name = entry.value()?;
        if is_uri(name) {
            return Ok(Some(Place::Uri(name.to_owned())));
        }
        // Fio separates files with colons; a colon in a name has a backslash before it.
        let name = name.replace("\\:", "\0");
        if name.contains(':') {
            return Err(entry.wrong("is not supported; write a section for each file"));
        }
        let name = name.replace('\0', ":");
        let path = match self.text("directory") {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name,
        };
        Ok(Some(Place::Path(path)))
    }
}

/// Schemes of disk URIs; any other name is a path.
const SCHEMES: [&str; 8] =
    ["nvme+tcp:", "iscsi:", "file:", "memory:", "null:", "model:", "fault:", "trace:"];

/// The disk that `--filename` names: a URI or a path.
pub(crate) fn place_of(name: &str) -> Place {
    let name = name.to_owned();
    if is_uri(&name) { Place::Uri(name) } else { Place::Path(name) }
}

fn is_uri(name: &str) -> bool {
    SCHEMES.iter().any(|scheme| name.starts_with(scheme))
}
