//! Resolves flags and property files to a load.

use std::io;
use std::path::PathBuf;

use ::load::{Address, Growth, LoadConfig, Pacing, Protocol, Target};
use console::{Class, Classed};
use measure::{Duration, Fraction, LoadParams, LoadShare};
use workload::{Mix, Operation, PopularityKind, PropertyError, Ycsb, YcsbName};

use crate::load::flags::{Distribution, KvFlags};
use crate::load::slo::Slo;
use document::per_second;

const DURATION: Duration = Duration::from_ms(10_000);
/// Default busy-polling time: several times the cost of a wake-up in a virtual machine.
const BUSY_POLL: Duration = Duration::from_ns(50_000);
/// Default duration of each try of a search, and its warm-up.
const TRY: Duration = Duration::from_ms(3_000);
const TRY_WARM_UP: Duration = Duration::from_ms(500);
const VALUE_BYTES_MAX: u64 = 512 << 20;
/// memcached's limit.
const KEY_BYTES_MAX: u64 = 250;

/// Invalid flags.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadUsage {
    #[error(
        "{0} is not a server; write redis://HOST:PORT, memcached://HOST:PORT, redis+unix:PATH or \
         memcached+unix:PATH"
    )]
    Target(String),
    #[error("{0}: a port is a whole number from 1 to 65535; write one such as redis://HOST:6379")]
    Port(String),
    #[error("--workload {name}: {source}; give a letter from a to f or a YCSB property file")]
    Unreadable { name: String, source: io::Error },
    #[error("--workload {name}: {source}")]
    Properties { name: String, source: PropertyError },
    #[error("--theta {0}: the skew is between 0 and 1, both excluded; YCSB's is 0.99")]
    Theta(f64),
    #[error(
        "--theta {0}: it is the skew of zipfian and latest, and says nothing of uniform; leave it \
         out, or add --distribution zipfian"
    )]
    NoSkew(f64),
    #[error("--rate {0}: give requests per second, above 0: 5000, 5k or 1.5M")]
    Rate(String),
    #[error("--value-size {0}: a value has at most 512 MiB")]
    ValueSize(u64),
    #[error("--reads {0}: give a share from 0% to 100%, such as 80%")]
    Reads(String),
    #[error(
        "--append {append} to --value-size {value} with --append-limit {limit}: no update would \
         append; give a limit of {} bytes or more, and append 1 or more", append + value
    )]
    Growth { append: u64, value: u64, limit: u64 },
    #[error(
        "--key-size {bytes} for {keys} records: a key has from {least} bytes, 'user' and one digit \
         more than the number of records has, to {KEY_BYTES_MAX}"
    )]
    KeySize { bytes: u64, keys: u64, least: usize },
    #[error("--connections {connections} for --threads {threads}: every thread needs one")]
    Connections { connections: u32, threads: u32 },
}

impl Classed for LoadUsage {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// A checked load.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) config: LoadConfig,
    pub(crate) fill: bool,
    /// A search for the highest rate, in place of one load.
    pub(crate) slo: Option<Slo>,
    /// Properties of the workload file that have no effect here.
    pub(crate) ignored: Vec<String>,
}

impl Plan {
    /// Resolves the flags of `afar load kv`.
    ///
    /// # Errors
    /// The first flag that is invalid.
    pub(crate) fn resolve(flags: &KvFlags) -> Result<Self, LoadUsage> {
        let (mut workload, ignored) = named(&flags.workload)?;
        if let Some(keys) = flags.keys {
            workload.record_count = keys;
        }
        if let Some(size) = flags.value_size {
            workload.value_bytes = usize::try_from(size.get()).unwrap_or(usize::MAX);
        }
        if workload.value_bytes as u64 > VALUE_BYTES_MAX {
            return Err(LoadUsage::ValueSize(workload.value_bytes as u64));
        }
        if let Some(reads) = &flags.reads {
            let read = reads_of(reads).ok_or_else(|| LoadUsage::Reads(reads.clone()))?;
            workload.mix = Mix { read, update: 1.0 - read, ..Mix::default() };
        }
        let key_bytes = key_bytes(flags, workload.record_count)?;
        let growth = growth(flags, workload.value_bytes as u64)?;
        if let Some(distribution) = flags.distribution {
            workload.popularity = match distribution {
                Distribution::Uniform => PopularityKind::Uniform,
                Distribution::Zipfian => PopularityKind::Zipfian,
                Distribution::Latest => PopularityKind::Latest,
            };
        }
        workload.theta = skew(flags, &workload)?;
        let slo = slo(flags);
        // The tries of a search end by time only.
        workload.operation_count = match slo {
            Some(_) => None,
            None => flags.requests.or(workload.operation_count),
        };
        let (threads, connections) = (flags.threads, flags.connections);
        if connections < threads {
            return Err(LoadUsage::Connections { connections, threads });
        }
        let pacing = match &flags.rate {
            None => Pacing::Closed,
            Some(text) => {
                let per_second = per_second(text).ok_or_else(|| LoadUsage::Rate(text.clone()))?;
                Pacing::Open { per_second, spacing: flags.spacing }
            }
        };
        let unlimited = workload.operation_count.is_none();
        let (usual, warm_up) =
            if slo.is_some() { (TRY, TRY_WARM_UP) } else { (DURATION, Duration::ZERO) };
        let config = LoadConfig {
            target: target(&flags.target)?,
            workload,
            key_bytes,
            pacing,
            threads,
            connections,
            depth: flags.depth,
            duration: flags.duration.or_else(|| unlimited.then_some(usual)),
            warmup: flags.warm_up.unwrap_or(warm_up),
            timeout: flags.timeout,
            busy_poll: flags
                .busy_poll
                .unwrap_or_else(|| busy_poll(threads + u32::from(flags.probe))),
            verify: flags.verify,
            growth,
            probe: flags.probe,
            seed: flags.seed,
        };
        Ok(Self { config, fill: flags.fill, slo, ignored })
    }

    /// The parameters for the record.
    pub(crate) fn params(&self, flags: &KvFlags) -> LoadParams {
        let Self { config, fill, slo, .. } = self;
        let workload = &config.workload;
        let (rate_per_s, spacing) = match config.pacing {
            Pacing::Closed => (None, slo.map(|slo| slo.spacing)),
            Pacing::Open { per_second, spacing } => (Some(per_second), Some(spacing)),
        };
        let spacing = spacing.map(|spacing| spacing.name().to_owned());
        LoadParams {
            target: flags.target.clone(),
            mix: shares(&workload.mix),
            distribution: workload.popularity.name().to_owned(),
            theta: workload.theta,
            record_count: workload.record_count,
            key_bytes: config.key_bytes.map(|bytes| bytes as u64),
            value_bytes: workload.value_bytes as u64,
            append_bytes: config.growth.map(|growth| growth.append_bytes as u64),
            append_limit_bytes: config.growth.map(|growth| growth.limit_bytes as u64),
            scan_records_max: u64::from(workload.scan_records_max),
            fill: *fill,
            rate_per_s,
            spacing,
            thread_count: u64::from(config.threads),
            connection_count: u64::from(config.connections),
            depth: u64::from(config.depth),
            duration_ns: config.duration.map(Duration::as_ns),
            request_count_max: workload.operation_count,
            warmup_ns: config.warmup.as_ns(),
            timeout_ns: config.timeout.as_ns(),
            busy_poll_ns: config.busy_poll.as_ns(),
            verify: config.verify,
            probe: config.probe,
        }
    }
}

// Parses a share of reads; 0 % is allowed, unlike for shares of memory.
fn reads_of(text: &str) -> Option<f64> {
    match text {
        "0" | "0%" => Some(0.0),
        _ => text.parse::<Fraction>().ok().map(|share| f64::from(share.ppm()) / 1e6),
    }
}

// The search that `--slo` describes; `None` without the flag.
fn slo(flags: &KvFlags) -> Option<Slo> {
    let bound = flags.slo?;
    Some(Slo { bound, limits: flags.slo_rates, spacing: flags.spacing })
}

// The size of keys by `--key-size`, checked for so many keys; `None` without the flag.
fn key_bytes(flags: &KvFlags, keys: u64) -> Result<Option<usize>, LoadUsage> {
    let Some(bytes) = flags.key_size.map(measure::Bytes::get) else {
        return Ok(None);
    };
    let least = workload::padded_key_bytes_min(keys);
    match usize::try_from(bytes) {
        Ok(size) if size >= least && bytes <= KEY_BYTES_MAX => Ok(Some(size)),
        _ => Err(LoadUsage::KeySize { bytes, keys, least }),
    }
}

// How updates append, by `--append`, to values of `value` bytes; `None` without the flag.
fn growth(flags: &KvFlags, value: u64) -> Result<Option<Growth>, LoadUsage> {
    let Some(append) = flags.append else {
        return Ok(None);
    };
    let (append, limit) = (append.get(), flags.append_limit.get());
    if append == 0 || value.saturating_add(append) > limit || limit > VALUE_BYTES_MAX {
        return Err(LoadUsage::Growth { append, value, limit });
    }
    let size = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(Some(Growth { append_bytes: size(append), limit_bytes: size(limit) }))
}

/// The default of `--busy-poll`: 0 unless a processor is left for the server.
fn busy_poll(threads: u32) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let spare = usize::try_from(threads).is_ok_and(|threads| threads < processors);
    if spare { BUSY_POLL } else { Duration::ZERO }
}

// The shares of operations for the record.
fn shares(mix: &Mix) -> Vec<LoadShare> {
    let shares = [mix.read, mix.update, mix.insert, mix.scan, mix.read_modify_write];
    let named = Operation::ALL.into_iter().zip(shares).filter(|(_, share)| *share > 0.0);
    named
        .map(|(operation, share)| LoadShare { operation: operation.name().to_owned(), share })
        .collect()
}

// A workload by its letter or property file, and properties without effect.
fn named(name: &str) -> Result<(Ycsb, Vec<String>), LoadUsage> {
    let letter = match name {
        "a" | "A" => Some(YcsbName::A),
        "b" | "B" => Some(YcsbName::B),
        "c" | "C" => Some(YcsbName::C),
        "d" | "D" => Some(YcsbName::D),
        "e" | "E" => Some(YcsbName::E),
        "f" | "F" => Some(YcsbName::F),
        _ => None,
    };
    if let Some(letter) = letter {
        return Ok((letter.workload(), Vec::new()));
    }
    let name = name.to_owned();
    match std::fs::read_to_string(&name) {
        Err(source) => Err(LoadUsage::Unreadable { name, source }),
        Ok(text) => {
            Ycsb::from_properties(&text).map_err(|source| LoadUsage::Properties { name, source })
        }
    }
}

/// The skew of keys, checked; uniform keys take no `--theta`.
fn skew(flags: &KvFlags, workload: &Ycsb) -> Result<f64, LoadUsage> {
    let is_uniform = workload.popularity == PopularityKind::Uniform;
    if let Some(theta) = flags.theta.filter(|_| is_uniform) {
        return Err(LoadUsage::NoSkew(theta));
    }
    let theta = flags.theta.unwrap_or(workload.theta);
    if theta > 0.0 && theta < 1.0 { Ok(theta) } else { Err(LoadUsage::Theta(theta)) }
}

// Parses the URI of a server.
fn target(text: &str) -> Result<Target, LoadUsage> {
    let refused = || LoadUsage::Target(text.to_owned());
    let (scheme, rest) = text.split_once(':').ok_or_else(refused)?;
    let (name, is_unix) = match scheme.strip_suffix("+unix") {
        Some(name) => (name, true),
        None => (scheme, false),
    };
    let (protocol, port) = match name {
        "redis" => (Protocol::Resp, 6379),
        "memcached" => (Protocol::Memcached, 11211),
        _ => return Err(refused()),
    };
    let address = if is_unix {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path.is_empty() {
            return Err(refused());
        }
        Address::Unix(PathBuf::from(path))
    } else {
        let host = rest.strip_prefix("//").ok_or_else(refused)?.trim_end_matches('/');
        // Colons of an IPv6 address are within brackets.
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        match (host.is_empty(), has_port) {
            (true, _) => return Err(refused()),
            (_, true) if sys::stream::has_wrong_port(host) => {
                return Err(LoadUsage::Port(text.to_owned()));
            }
            (_, true) => Address::Tcp(host.to_owned()),
            (_, false) => Address::Tcp(format!("{host}:{port}")),
        }
    };
    Ok(Target { protocol, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_reads() {
        let found = ["0%", "0", "100%", "80%", "0.25", "12.5%"].map(reads_of);
        let wanted = [0.0, 0.0, 1.0, 0.8, 0.25, 0.125].map(Some);
        assert_eq!(found, wanted);
        for wrong in ["", "101%", "-1%", "x", "80"] {
            assert_eq!(reads_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn targets() {
        let tcp = |protocol, name: &str| {
            Some(Target { protocol, address: Address::Tcp(name.to_owned()) })
        };
        let read = |text| target(text).ok();
        assert_eq!(read("redis://a:1"), tcp(Protocol::Resp, "a:1"));
        assert_eq!(read("redis://a"), tcp(Protocol::Resp, "a:6379"));
        assert_eq!(read("memcached://[::1]"), tcp(Protocol::Memcached, "[::1]:11211"));
        assert_eq!(read("memcached://[::1]:7/"), tcp(Protocol::Memcached, "[::1]:7"));
        let unix = Some(Target {
            protocol: Protocol::Resp,
            address: Address::Unix(PathBuf::from("/run/r.sock")),
        });
        assert_eq!(read("redis+unix:/run/r.sock"), unix);
        assert_eq!(read("redis+unix:///run/r.sock"), unix);
        let wrong = ["", "redis", "redis:a", "redis://", "http://a", "redis+unix:", "redis://a:x"];
        for wrong in wrong {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
