use measure::{Duration, Instant};

/// Why a simulation was refused or has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// Too few hosts.
    #[error("a network of {count} hosts has nobody to send to; give it at least 2")]
    Hosts {
        /// How many there are.
        count: u32,
    },
    /// A host must have one cable, to a switch.
    #[error("host {host} has not exactly one link to and one from a switch; give it one cable")]
    Attached {
        /// The host.
        host: u32,
    },
    /// The network is in two parts.
    #[error("switch {from} has no way to switch {to}, which has hosts; connect them")]
    Apart {
        /// Where there is no way from.
        from: u32,
        /// Where there is no way to.
        to: u32,
    },
    /// A switch that does not exist.
    #[error("there is no switch {switch} in a network with {count}; name one below that")]
    NoSwitch {
        /// The switch that was named.
        switch: u32,
        /// Switches of the network.
        count: u32,
    },
    /// A link that does not exist.
    #[error("there is no link {link} in a network with {count}; name one below that")]
    NoLink {
        /// The link that was named.
        link: u32,
        /// Links of the network.
        count: usize,
    },
    /// Samples or intervals of 0 ps.
    #[error("samples every 0 ps never end; give it at least 1 ps")]
    Unending,
    /// Fastpass has no arbiter.
    #[error("Fastpass needs an arbiter and the network has none; give it one at a switch")]
    NoArbiter,
    /// A fat tree needs switches with an even number of ports.
    #[error("a fat tree of switches with {arity} ports cannot be built; use an even number from 2")]
    Arity {
        /// Ports of a switch.
        arity: u32,
    },
    /// A flow of nothing.
    #[error("flow {flow} has no bytes; give it at least 1")]
    Empty {
        /// Its index.
        flow: u32,
    },
    /// A flow of too much.
    #[error("flow {flow} has {bytes} bytes, more than {most}; split it")]
    Huge {
        /// Its index.
        flow: u32,
        /// Its bytes.
        bytes: u64,
        /// The most a flow may have.
        most: u64,
    },
    /// A flow between hosts that do not exist.
    #[error("flow {flow} names host {host} of a network with {count}; hosts are 0 to {last}",
            last = count - 1)]
    NoHost {
        /// Its index.
        flow: u32,
        /// The host it names.
        host: u32,
        /// Hosts of the network.
        count: u32,
    },
    /// A flow from a host to itself.
    #[error("flow {flow} goes from host {host} to itself; give it another destination")]
    Loop {
        /// Its index.
        flow: u32,
        /// The host.
        host: u32,
    },
    /// No flows.
    #[error("there are no flows to simulate; give at least one")]
    NoFlows,
    /// Buffers that do not hold a packet.
    #[error("a port of {bytes} B does not hold a packet of {packet} B; give it at least that")]
    Buffer {
        /// Bytes of a port's buffer.
        bytes: u64,
        /// Bytes of a packet.
        packet: u64,
    },
    /// A request that is no packet.
    #[error("a request of {bytes} B is no packet; give it {least} to {most} B")]
    Request {
        /// Its bytes.
        bytes: u32,
        /// A header.
        least: u32,
        /// A full packet.
        most: u32,
    },
    /// Readers that ask without end.
    #[error("a reader that asks again after 0 ps never stops; give it at least 1 ps")]
    Impatient,
    /// A flow that is read where flows go one way.
    #[error("flow {flow} is read, and as-published-2016 has no requests; make it go one way")]
    OneWay {
        /// Its index.
        flow: u32,
    },
    /// Flows that never ended though nothing was left to happen.
    #[error(
        "{count} of {total} flows never finished, the first is flow {first}: {why}; \
             there is no result"
    )]
    Unfinished {
        /// How many.
        count: u32,
        /// Of how many.
        total: u32,
        /// One of them.
        first: u32,
        /// What it waits for.
        why: &'static str,
    },
    /// Events without progress.
    #[error(
        "no flow moved on for {for_long} after {} although events went on: a livelock; \
             there is no result", at.saturating_since(Instant::ZERO)
    )]
    Livelock {
        /// Since when.
        at: Instant,
        /// For how long.
        for_long: Duration,
    },
    /// The `watch` of the run stopped it.
    #[error(
        "stopped at {} when {ended} of {total} flows had finished; there is no result",
        at.saturating_since(Instant::ZERO)
    )]
    Stopped {
        /// Flows that had ended.
        ended: u32,
        /// Of how many.
        total: u32,
        /// When.
        at: Instant,
    },
    /// Flows stopped arriving before those that a run waits for had ended.
    #[error(
        "{left} of the measured flows were under way when the last flow arrived at {}, so they \
             would end in a network that empties; there is no result: this load is more than the \
             transport carries, give a lower one", at.saturating_since(Instant::ZERO)
    )]
    Emptied {
        /// When the last flow started.
        at: Instant,
        /// Flows that had not ended.
        left: u32,
    },
    /// A load that no network carries.
    #[error("a load of {percent} % is not one that hosts' links carry; use 1 to 99 %")]
    Load {
        /// The load.
        percent: u64,
    },
}
