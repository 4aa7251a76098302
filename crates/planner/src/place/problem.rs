use crate::cost::{Demand, Dimension, Server};

/// A tenant and what it asks of its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guest {
    /// For people; not twice.
    pub name: String,
    /// Each replica.
    pub wants: Demand,
    /// At least 1; no two on one server, nor in one rack if there are several.
    pub replicas: u32,
    /// The tenant on whose servers it must be, by its place in the list.
    pub with: Option<usize>,
    /// The rack that it must be in, if its program is there and needs a latency that no other rack
    /// is near enough for.
    pub rack: Option<u32>,
    /// No two tenants with the same word share a server.
    pub apart: Option<String>,
    /// Whether it writes in bursts.
    pub bursty: bool,
    /// Whether it has been promised a tail of read latencies: then at most one bursty writer may
    /// be on its servers (Klimovic et al. §4.2, Fig. 7).
    pub tail: bool,
}

/// Servers, all alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pool {
    /// What each has; what is not said is not a limit.
    pub server: Server,
    /// How many there are, if that is a limit.
    pub count: Option<u32>,
    /// Server i is in rack i mod racks; at least 1.
    pub racks: u32,
    /// Tenants on one server, if that is a limit; three for each core that serves flash by
    /// Klimovic et al. §4.2.
    pub tenants_max: Option<u32>,
}

/// Who has to go where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// In the order of their numbers.
    pub tenants: Vec<Guest>,
    /// See [`Pool`].
    pub pool: Pool,
}

/// Why there is no placement: who, for what, and the least that would have to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Nobody is to be placed.
    #[error("there are no tenants; give some")]
    NoTenants,
    /// A tenant, with those that stay with it, is larger than a server.
    #[error(
        "tenant \"{tenant}\"{and} needs {} of {dimension}, a server has {}; it would fit a server \
         with as much, or with {} less",
        .dimension.amount(*.wanted), .dimension.amount(*.each), .dimension.amount(*.less)
    )]
    TooLarge {
        /// The tenant.
        tenant: String,
        /// Who stays with it, as a phrase.
        and: &'static str,
        /// What it has too much of.
        dimension: Dimension,
        /// In its unit.
        wanted: u64,
        /// What there is.
        each: u64,
        /// The difference.
        less: u64,
    },
    /// More tenants must stay together than a server takes.
    #[error(
        "tenant \"{tenant}\" and {others} that stay with it are more than the {most} tenants of a \
         server; allow {}, or leave out a with", others + 1
    )]
    TooMany {
        /// The tenant.
        tenant: String,
        /// How many more.
        others: u32,
        /// The limit.
        most: u32,
    },
    /// Replicas cannot be in racks of their own.
    #[error(
        "tenant \"{tenant}\" has {replicas} replicas for {racks} {places}; give as many \
         {places}, or {} replicas less", replicas - racks
    )]
    Replicas {
        /// The tenant.
        tenant: String,
        /// How many.
        replicas: u32,
        /// How many there can be.
        racks: u32,
        /// Racks or servers.
        places: &'static str,
    },
    /// Replicas are in racks of their own, but must all be in one.
    #[error(
        "tenant \"{tenant}\" has {replicas} replicas that must be in rack {rack} for their latency \
         and yet in racks of their own; allow a longer latency, or have one replica"
    )]
    Scope {
        /// The tenant.
        tenant: String,
        /// How many.
        replicas: u32,
        /// Where they must be.
        rack: u32,
    },
    /// There is no such rack.
    #[error(
        "tenant \"{tenant}\" is in rack {rack}, and there are {racks}, from 0 on; give another"
    )]
    NoRack {
        /// The tenant.
        tenant: String,
        /// Where it would be.
        rack: u32,
        /// How many there are.
        racks: u32,
    },
    /// Tenants that follow one another in a circle.
    #[error("tenant \"{0}\" is to be with itself, by way of others; leave out one with")]
    Circle(String),
    /// Tenants that must be together and apart.
    #[error("tenants \"{0}\" and \"{1}\" are to be together and apart; leave out one of the two")]
    Contradiction(String, String),
    /// Tenants that stay together but differ in replicas.
    #[error("tenants \"{0}\" and \"{1}\" stay together, so they need as many replicas; set both")]
    Unequal(String, String),
    /// A promise that its own companions break.
    #[error(
        "tenant \"{0}\" has a promised tail but must be with more than one bursty writer; leave \
         out a with, or the promise"
    )]
    Tail(String),
    /// There are fewer servers than are needed.
    #[error(
        "{found} servers are needed and there are {count}: tenant \"{tenant}\" is the first \
         without a place, for want of {dimension}; {} more servers would do{proof}",
        found - count
    )]
    Count {
        /// The first tenant without a place.
        tenant: String,
        /// What is short.
        dimension: Dimension,
        /// How many servers there are.
        count: u32,
        /// How many would do.
        found: u32,
        /// Whether fewer could, as a phrase.
        proof: &'static str,
    },
    /// Amounts beyond what can be counted.
    #[error("the {0} of tenants that stay together goes beyond 18446744073709551615; give less")]
    Amount(Dimension),
    /// A tenant wants what no server is said to have.
    #[error("tenant \"{0}\" wants {1}, but [server] does not say how much of it a server has")]
    Unsaid(String, Dimension),
}

impl PlaceError {
    /// Whom it is about, if it is about somebody.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::NoTenants | Self::Amount(_) => None,
            Self::TooLarge { tenant, .. }
            | Self::TooMany { tenant, .. }
            | Self::Replicas { tenant, .. }
            | Self::Scope { tenant, .. }
            | Self::NoRack { tenant, .. }
            | Self::Count { tenant, .. }
            | Self::Circle(tenant)
            | Self::Contradiction(tenant, _)
            | Self::Unequal(tenant, _)
            | Self::Tail(tenant)
            | Self::Unsaid(tenant, _) => Some(tenant),
        }
    }
}
