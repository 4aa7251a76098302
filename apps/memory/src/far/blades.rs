//! The blades of a run, and how they are reached.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::blades::{Blade, BladeArray, MemoryBlade, PAGE_BYTES};
use host::NvmeUri;
use measure::Duration;

use super::disk::DiskBlade;
use super::distant::DistantBlade;
use super::error::FarError;
use super::uri::FarUri;

const PAGE: u64 = PAGE_BYTES as u64;

/// How long a program waits for an unreachable blade: without copies, and with.
const PATIENCE: Duration = Duration::from_ms(30_000);
const PATIENCE_WITH_COPIES: Duration = Duration::from_ms(5_000);

/// The blades of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Far {
    /// The URIs of `--far`.
    pub(crate) uris: Vec<FarUri>,
    /// How many blades each page is on.
    pub(crate) copies: usize,
    /// How long a request waits while no path leads to its blade.
    pub(crate) timeout: Duration,
}

/// One blade: memory, or a namespace and the paths to it.
enum Named<'a> {
    Memory(&'a FarUri, u32, Duration),
    Disk(Vec<(&'a NvmeUri, &'a str)>),
}

/// A blade, and warnings about it.
pub(crate) type Reached = (Box<dyn Blade>, Vec<String>);

impl Far {
    /// The blades at `uris`, with `copies` of each page; `None` for the usual timeout.
    pub(crate) fn new(uris: Vec<FarUri>, copies: usize, timeout: Option<Duration>) -> Self {
        let usual = if copies > 1 { PATIENCE_WITH_COPIES } else { PATIENCE };
        Self { uris, copies, timeout: timeout.unwrap_or(usual) }
    }

    /// The value of `--far`, as records have it.
    pub(crate) fn told(&self) -> String {
        self.uris.iter().map(FarUri::to_string).collect::<Vec<_>>().join(",")
    }

    /// How many blades there are: a namespace with several addresses is one.
    pub(crate) fn blade_count(&self) -> usize {
        self.named().len()
    }

    // The blades, with the paths to each namespace together.
    fn named(&self) -> Vec<Named<'_>> {
        let mut all = Vec::new();
        let mut known: BTreeMap<(&str, Option<u32>), usize> = BTreeMap::new();
        for uri in &self.uris {
            match uri {
                FarUri::Memory(size, delay) => {
                    let pages = u32::try_from(size.get() / PAGE).unwrap_or(u32::MAX);
                    all.push(Named::Memory(uri, pages, *delay));
                }
                FarUri::Nvme(target, text) => {
                    let key = (target.subsystem.as_str(), target.namespace);
                    let at = *known.entry(key).or_insert(all.len());
                    match all.get_mut(at) {
                        Some(Named::Disk(paths)) => paths.push((target, text)),
                        _ => all.push(Named::Disk(vec![(target, text)])),
                    }
                }
            }
        }
        all
    }

    /// Connects to every blade; with `takes`, also to one that another run has reserved. Returns
    /// warnings, too.
    ///
    /// # Errors
    /// When one cannot be reached or used, is named twice, or is another run's.
    pub(crate) fn reach(&self, takes: bool) -> Result<Reached, FarError> {
        let mut warnings = Vec::new();
        let mut blades: Vec<(String, Box<dyn Blade>)> = Vec::new();
        let mut disks = Vec::new();
        for named in self.named() {
            match named {
                Named::Memory(uri, pages, Duration::ZERO) => {
                    blades.push((uri.to_string(), Box::new(MemoryBlade::new(pages))));
                }
                Named::Memory(uri, pages, delay) => {
                    blades.push((uri.to_string(), Box::new(DistantBlade::new(pages, delay))));
                }
                Named::Disk(paths) => {
                    // Threads must not take the signal for the end of a child, which is the
                    // supervisor's.
                    let attach = || DiskBlade::attach(&paths, self.timeout);
                    let mut blade = sys::event::without_signals(attach)?;
                    let is_one =
                        |(_, disk): &&(String, Arc<host::Disk>)| disk.is_one_with(blade.disk());
                    if let Some((first, _)) = disks.iter().find(is_one) {
                        let (first, second) = (first.clone(), blade.uri().to_owned());
                        return Err(FarError::Twice { first, second });
                    }
                    let hold = || blade.hold(&paths, takes);
                    warnings.extend(sys::event::without_signals(hold)?);
                    disks.push((blade.uri().to_owned(), Arc::clone(blade.disk())));
                    blades.push((blade.uri().to_owned(), Box::new(blade)));
                }
            }
        }
        if blades.len() == 1 && self.copies == 1 {
            return Ok((blades.remove(0).1, warnings));
        }
        Ok((Box::new(BladeArray::new(blades, self.copies)?), warnings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(text: &str) -> Far {
        let uris = text.split(',').map(|uri| uri.parse().expect(uri)).collect();
        Far::new(uris, 1, None)
    }

    #[test]
    fn a_namespace_at_several_addresses_is_one_blade() {
        let count = |text: &str| far(text).blade_count();
        assert_eq!(count("nvme+tcp://a/nqn.x"), 1);
        assert_eq!(count("nvme+tcp://a/nqn.x,nvme+tcp://b:9/nqn.x"), 1);
        assert_eq!(count("nvme+tcp://a/nqn.x,nvme+tcp://a/nqn.y,nvme+tcp://b/nqn.x"), 2);
        assert_eq!(count("nvme+tcp://a/nqn.x/1,nvme+tcp://a/nqn.x/2"), 2);
        assert_eq!(count("memory:1MiB,memory:1MiB"), 2);
    }

    #[test]
    fn who_has_copies_waits_less() {
        assert_eq!(far("memory:1MiB").timeout, PATIENCE);
        let two = Far::new(far("memory:1MiB,memory:1MiB").uris, 2, None);
        assert_eq!(two.timeout, PATIENCE_WITH_COPIES);
        let told = Far::new(two.uris, 2, Some(Duration::from_ms(7)));
        assert_eq!(told.timeout, Duration::from_ms(7));
    }
}
