//! What an engine is built from.

use measure::LinkConfig;

use crate::prefetch::Prefetch;
use crate::residency::ResidencyConfig;

/// An engine, as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// Local memory.
    pub residency: ResidencyConfig,
    /// The link to far memory.
    pub link: LinkConfig,
    /// How references to local pages become known.
    pub references: References,
    /// Whether write-backs use the link.
    pub write_back: WriteBack,
    /// What to fetch ahead of faults.
    pub prefetch: Prefetch,
    /// Pages in flight beyond which nothing is fetched ahead.
    pub prefetch_in_flight_max: usize,
}

/// How references to local pages become known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum References {
    /// By soft faults on pages on probation: all that a running program shows.
    #[default]
    SoftFaults,
    /// By [`Engine::reference`](super::Engine::reference) at every access, as a trace can tell.
    /// Nothing is put on probation.
    Exact,
}

/// Whether giving up a dirty page costs anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum WriteBack {
    /// It uses the link, and its frame is free once it is acknowledged.
    #[default]
    Charged,
    /// It is free, as with the FIFO and random policies of the `DiME` module.
    Ignored,
}
