//! The configuration of a target.

use std::net::SocketAddr;

use measure::{Bytes, Duration};
use scsi::iscsi::Chap;

/// Bounds on what hosts may request; each host learns those that its protocol reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Data in a command capsule: a multiple of 16, 8192 at most.
    pub capsule_bytes: u32,
    /// MAXH2CDATA: data in one PDU from a host: a multiple of 4, at least 4096.
    pub h2c_bytes: u32,
    /// A command moves 4 KiB shifted by this at most: 0 to 11.
    pub transfer_shift: u8,
    /// Commands outstanding on a queue: 2 to 4096.
    pub queue_entries: u16,
    /// I/O queues of a controller, at least 1.
    pub io_queues: u16,
    /// Controllers at a time; when there are as many, a discovery controller ends for the next.
    pub controllers: u16,
    /// Numbers of controllers (CNTLID), the first and the last: 1 to FFEFh. Two targets that serve
    /// one subsystem have ranges that do not meet, for hosts take equal numbers for one controller.
    pub controller_ids: [u16; 2],
    /// Controllers and iSCSI sessions of a host at a time, each.
    pub host_controllers: u16,
    /// Controllers that hosts may have reset at once by way of each other one (CCRL); 0 for none.
    pub resets: u8,
    /// Connections at a time, on each shard, and on the control thread.
    pub connections: u32,
    /// Memory for data in transit, on each shard, that associations have in common beyond their
    /// shares.
    pub data: Bytes,
    /// Memory for data in transit that each association (an NVMe controller, an iSCSI session) may
    /// always use on each shard: at least one transfer. An association that uses none gets memory
    /// for one command of any size.
    pub share: Bytes,
    /// A peer that moves less than 64 KiB in this time of what it owes (data that the target
    /// requested, or reading what the target sends) is disconnected.
    pub stall: Duration,
    /// How long a connection may take until its Connect or the end of its login.
    pub handshake: Duration,
    /// Connections at a time without a Connect or a finished login: the oldest ends for the next.
    pub handshakes: u32,
    /// How long the answer to a failed CHAP authentication is delayed.
    pub wrong_secret: Duration,
    /// How long commands may take to end when the target stops.
    pub drain: Duration,
}

/// The highest CNTLID; FFF0h and above are reserved for other meanings (Base 6.3).
pub const CONTROLLER_ID_MAX: u16 = 0xffef;

/// Shards of a target at most.
pub const SHARDS_MAX: usize = 64;

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetConfig {
    /// Where NVMe/TCP hosts connect.
    pub nvme: Vec<SocketAddr>,
    /// Where iSCSI initiators connect.
    pub iscsi: Vec<SocketAddr>,
    /// CHAP secrets for discovery sessions; `None` if they need no authentication.
    pub discovery_chap: Option<Chap>,
    /// Threads, each with I/O queues and sessions of its own: 1 to 64. One more, the control
    /// thread, accepts connections and serves the admin queues.
    pub shards: u16,
    /// How long a shard polls for the next request before it sleeps, while polling has paid.
    pub busy_poll: Duration,
    /// From how many bytes on a send is zero copy; `None` copies all.
    pub zero_copy: Option<Bytes>,
    /// Whether the target measures the stages of commands: [`super::Counters`] from `traced` on.
    pub traces: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Default for TargetConfig {
    fn default() -> Self {
        Self {
            nvme: Vec::new(),
            iscsi: Vec::new(),
            discovery_chap: None,
            shards: 1,
            busy_poll: Duration::ZERO,
            zero_copy: None,
            traces: false,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            capsule_bytes: 8192,
            h2c_bytes: 1 << 20,
            transfer_shift: 8,
            queue_entries: 1024,
            io_queues: 64,
            controllers: 4096,
            controller_ids: [1, CONTROLLER_ID_MAX],
            host_controllers: 64,
            resets: 4,
            connections: 16_384,
            data: Bytes::from_mib(32),
            share: Bytes::from_kib(1280),
            stall: Duration::from_ms(10_000),
            handshake: Duration::from_ms(10_000),
            handshakes: 1024,
            wrong_secret: Duration::from_ms(1_000),
            drain: Duration::from_ms(5_000),
        }
    }
}

impl Limits {
    /// Bytes that one command may transfer (MDTS).
    #[must_use]
    pub const fn transfer_bytes(&self) -> u32 {
        4096 << self.transfer_shift
    }
}
