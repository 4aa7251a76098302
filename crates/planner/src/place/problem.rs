use crate::cost::{Demand, Dimension, Server};

/// A tenant to be placed, with its rules about neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guest {
    /// Its name, for output; unique.
    pub name: String,
    /// The demand of each replica.
    pub wants: Demand,
    /// How many replicas, at least 1; no two share a server, nor a rack if there are several.
    pub replicas: u32,
    /// The tenant on whose servers it must be, by its index in the list.
    pub with: Option<usize>,
    /// The rack that it must be in, if its program is there and no other rack is near enough for
    /// the latency that it needs.
    pub rack: Option<u32>,
    /// No two tenants with the same word share a server.
    pub apart: Option<String>,
    /// Whether it writes in bursts.
    pub bursty: bool,
    /// Whether it has been promised a tail of read latencies: then its servers may have at most
    /// one bursty writer (Klimovic et al. §4.2, Fig. 7).
    pub tail: bool,
}

/// Servers of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pool {
    /// How much each server has; `None` of a dimension is no limit.
    pub server: Server,
    /// How many servers there are; `None` for no limit.
    pub count: Option<u32>,
    /// How many racks, at least 1; server i is in rack i mod `racks`.
    pub racks: u32,
    /// Most tenants of one server, `None` for no limit; three for each core that serves flash by
    /// Klimovic et al. §4.2.
    pub tenants_max: Option<u32>,
}

/// Tenants to be placed and the servers for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// The tenants, in the order of their numbers.
    pub tenants: Vec<Guest>,
    /// The servers.
    pub pool: Pool,
}

/// Why there is no placement: which tenant, what for, and the smallest change that would help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The list of tenants is empty.
    #[error("there are no tenants; give some")]
    NoTenants,
    /// A tenant, with those that must be with it, is larger than a server.
    #[error(
        "tenant \"{tenant}\"{and} needs {} of {dimension}, a server has {}; it would fit a server \
         with as much, or with {} less",
        .dimension.amount(*.wanted), .dimension.amount(*.each), .dimension.amount(*.less)
    )]
    TooLarge {
        /// The tenant.
        tenant: String,
        /// A phrase about tenants that must be with it; may be empty.
        and: &'static str,
        /// The dimension that exceeds a server.
        dimension: Dimension,
        /// How much the tenant needs.
        wanted: u64,
        /// How much a server has.
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
        /// How many tenants must be with it.
        others: u32,
        /// The most tenants of a server.
        most: u32,
    },
    /// There are fewer racks or servers than replicas.
    #[error(
        "tenant \"{tenant}\" has {replicas} replicas for {racks} {places}; give as many \
         {places}, or {} replicas less", replicas - racks
    )]
    Replicas {
        /// The tenant.
        tenant: String,
        /// How many.
        replicas: u32,
        /// How many racks or servers there are.
        racks: u32,
        /// `racks` or `servers`.
        places: &'static str,
    },
    /// Replicas must be in different racks, but also all in one.
    #[error(
        "tenant \"{tenant}\" has {replicas} replicas that must be in rack {rack} for their latency \
         and yet in racks of their own; allow a longer latency, or have one replica"
    )]
    Scope {
        /// The tenant.
        tenant: String,
        /// How many.
        replicas: u32,
        /// The rack that they must be in.
        rack: u32,
    },
    /// There is no such rack.
    #[error(
        "tenant \"{tenant}\" is in rack {rack}, and there are {racks}, from 0 on; give another"
    )]
    NoRack {
        /// The tenant.
        tenant: String,
        /// The rack that it should be in.
        rack: u32,
        /// How many racks there are.
        racks: u32,
    },
    /// A chain of `with` leads back to its first tenant.
    #[error("tenant \"{0}\" is to be with itself, by way of others; leave out one with")]
    Circle(String),
    /// Two tenants must be both together and apart.
    #[error("tenants \"{0}\" and \"{1}\" are to be together and apart; leave out one of the two")]
    Contradiction(String, String),
    /// Two tenants must be together but differ in replicas.
    #[error("tenants \"{0}\" and \"{1}\" stay together, so they need as many replicas; set both")]
    Unequal(String, String),
    /// Tenants that must be together break a promised tail.
    #[error(
        "tenant \"{0}\" has a promised tail but must be with more than one bursty writer; leave \
         out a with, or the promise"
    )]
    Tail(String),
    /// The pool has too few servers.
    #[error(
        "{found} servers are needed and there are {count}: tenant \"{tenant}\" is the first \
         without a place, for want of {dimension}; {} more servers would do{proof}",
        found - count
    )]
    Count {
        /// The first tenant without a place.
        tenant: String,
        /// The dimension that is short.
        dimension: Dimension,
        /// How many servers there are.
        count: u32,
        /// How many servers would be enough.
        found: u32,
        /// A phrase that says whether fewer could be enough; may be empty.
        proof: &'static str,
    },
    /// The sum of an amount exceeds 64 bits.
    #[error("the {0} of tenants that stay together goes beyond 18446744073709551615; give less")]
    Amount(Dimension),
    /// A tenant needs a dimension that the description of the server leaves out.
    #[error("tenant \"{0}\" wants {1}, but [server] does not say how much of it a server has")]
    Unsaid(String, Dimension),
}

impl PlaceError {
    /// The name of the tenant that the error is about; `None` if it is about none.
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
