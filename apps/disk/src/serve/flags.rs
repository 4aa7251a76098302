//! Flags of `afar serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use measure::{Bytes, Duration};

use crate::serve::socket_address;
use crate::serve::{Level, Sandbox};

/// Serve disks to other machines over NVMe/TCP and iSCSI
///
/// Each disk is a subsystem of its own with one namespace, and with --iscsi also a target of its
/// own with one logical unit. Linux mounts it: nvme connect -t tcp, or iscsiadm. It
/// serves until Ctrl-C, which ends what is under way first. SIGHUP looks at the sizes of files
/// again, reads a FILE again, and tells hosts what is new, gone or of another size.
#[derive(Debug, Args)]
#[command(override_usage = "afar serve [OPTIONS] DISK...\n       afar serve FILE.toml")]
#[command(after_help = NOTES)]
pub struct ServeFlags {
    /// NAME=URI: the subsystem nqn.2026-11.local.afar:MACHINE:NAME, with the same MACHINE for all
    /// that this machine serves (or NAME itself, if it begins with nqn.), and file:PATH,
    /// memory:SIZE, null: or lease:TERMS:memory:SIZE; or one file that ends in .toml and says
    /// everything
    #[arg(value_name = "DISK", required = true)]
    pub(crate) disks: Vec<String>,

    /// Where NVMe/TCP hosts connect; may be given several times [default: 127.0.0.1:4420, unless
    /// --iscsi is given]
    #[arg(long, value_name = "ADDRESS:PORT")]
    #[arg(value_parser = socket_address)]
    #[arg(help_heading = PORTALS)]
    pub(crate) nvme: Vec<SocketAddr>,

    /// Where iSCSI initiators connect, most often at port 3260; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT")]
    #[arg(value_parser = socket_address)]
    #[arg(help_heading = PORTALS)]
    pub(crate) iscsi: Vec<SocketAddr>,

    /// Only these hosts and initiators may connect: their NQNs and IQNs
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(help_heading = PORTALS)]
    pub(crate) allow: Vec<String>,

    /// Threads, over which the queues of hosts are spread [default: one per processor]
    #[arg(long, value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    #[arg(help_heading = WORK)]
    pub(crate) shards: Option<u16>,

    /// Look for the next request without sleeping for this long, where that has paid the last time
    /// [default: 20us]
    #[arg(long, value_name = "TIME")]
    #[arg(help_heading = WORK)]
    pub(crate) busy_poll: Option<Duration>,

    /// Send what goes out at once in so many bytes or more without copying it: spares the memory
    /// bus of a machine with a network card, and costs where packets stay in the machine
    /// [default: all is copied]
    #[arg(long, value_name = "SIZE")]
    #[arg(help_heading = WORK)]
    pub(crate) zero_copy: Option<Bytes>,

    /// Where what has been done can be read, in Prometheus' format, at /metrics; afar top shows it
    #[arg(long, value_name = "ADDRESS:PORT")]
    #[arg(value_parser = socket_address)]
    #[arg(help_heading = PORTALS)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Directory where reservations are kept that are to outlive this process, and identities of
    /// block devices [default: reservations beside each file that is served; identities with each
    /// file; for other devices nothing is kept, and hosts find another disk after a restart]
    #[arg(long, value_name = "DIRECTORY")]
    #[arg(help_heading = DISKS)]
    pub(crate) state: Option<PathBuf>,

    /// Let other targets that say so, too, serve the same files and devices at the same time; what
    /// one of them has reserved, the others do not know
    #[arg(long)]
    #[arg(help_heading = DISKS)]
    pub(crate) shared: bool,

    /// Give every file and device that is served another identity than it has: hosts then take a
    /// copy for another disk than the original
    #[arg(long)]
    #[arg(help_heading = DISKS)]
    pub(crate) new_identity: bool,

    /// Numbers of controllers; targets that serve one subsystem together have ranges that do not
    /// meet [default: 1-65519]
    #[arg(long, value_name = "FIRST-LAST")]
    #[arg(help_heading = DISKS)]
    pub(crate) controllers: Option<String>,

    /// A bound on what hosts may take, by the names below; may be given several times
    #[arg(long = "limit", value_name = "NAME=VALUE", value_delimiter = ',')]
    #[arg(help_heading = WORK)]
    pub(crate) limits: Vec<String>,

    /// Become this user, with no other rights, once files, devices and sockets are open: what
    /// SIGHUP has it open later, this user must be allowed to open
    #[arg(long, value_name = "USER[:GROUP]")]
    #[arg(help_heading = SERVICE)]
    pub(crate) user: Option<String>,

    /// Give up what a target does not need once it serves: files but in the directories of its
    /// files, its state and its FILE (landlock), and system calls such as those that start a
    /// program or trace one (seccomp) [default: auto]
    #[arg(long, value_name = "WHEN", value_enum)]
    #[arg(help_heading = SERVICE)]
    pub(crate) sandbox: Option<Sandbox>,

    /// What is said of hosts on standard error, at most ten lines of a kind in ten seconds
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    #[arg(help_heading = SERVICE)]
    pub(crate) log: Level,

    /// Write one line of JSON to this open descriptor once hosts can connect: schema, and the
    /// addresses (nvme, iscsi, metrics) and threads (shards) of the target; then close it
    #[arg(long, value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(i32).range(3..))]
    #[arg(help_heading = SERVICE)]
    pub(crate) ready_fd: Option<i32>,

    /// Say in the end where the time of commands went, as JSON
    #[arg(long, hide = true)]
    pub(crate) trace: bool,
}

const PORTALS: &str = "Who reaches it, and where";
const WORK: &str = "Work";
const DISKS: &str = "Disks";
const SERVICE: &str = "Service";

pub(crate) const NOTES: &str = "\
A file or device is had by one process: whoever comes second is told which. A file keeps its
identity under any name; a copy is another disk, or refused where the identity was copied, too.

file: takes ?size=SIZE to make the file if it is not there, ?fill to write zeros to its holes first
(what was never written is read without asking the medium), ?readonly to have it never written, and
every kind ?block=4096 for blocks of another size than 512 bytes.

A file has the flags' names at its top, and several namespaces where that is wanted:

  nvme = [\"0.0.0.0:4420\", { address = \"0.0.0.0:4421\", ana = \"non-optimized\" }]
  iscsi = [\"0.0.0.0:3260\", { address = \"0.0.0.0:3261\", ana = \"non-optimized\" }]
  shards = 2
  busy_poll = \"50us\"
  metrics = \"127.0.0.1:9420\"
  user = \"afar\"
  limits = { memory = \"64MiB\", host-controllers = 16 }
  [[subsystem]]
  name = \"disk\"
  allow = [\"nqn.2014-08.org.example:host\", \"iqn.1994-05.com.example:host\"]
  chap = { user = \"host\", secret = \"at least 12 bytes\" }
  namespaces = [ { id = 1, uri = \"file:/data/disk.img?size=10GiB\" } ]

A subsystem may have an nqn and an iqn in place of a name, and a namespace a uuid and an nguid, for
disks that were served elsewhere before. Over iSCSI the target is
iqn.2026-11.local.afar:MACHINE:NAME, and
namespace N is logical unit N - 1. What hosts of one protocol reserve, those of the other cannot
write. chap is what initiators prove; with target_user and target_secret the target proves itself,
too. A list of them, each with an initiator, has each initiator prove something else. A subsystem
with chap is not reached over NVMe/TCP, where nothing can be proved, unless nvme = true says so;
nvme = false closes any other. discovery_chap, at the top, is the same for those that ask which
targets there are.

After SIGHUP it is followed anew, or not at all if anything in it cannot be: what changes are
subsystems, namespaces, access states (ana: optimized, non-optimized, inaccessible, persistent-loss
or change, which initiators hear of as ALUA: standby for inaccessible, unavailable for
persistent-loss; hosts are told where there is more than one address) and, for new connections, who
is allowed. A namespace with another uri is
opened anew; a file that is there keeps the size it has. What is opened then has to be in a
directory that was in use at the start, or under one (--sandbox off lifts that), and --user has to
be allowed to open it.

Limits on what hosts may take, with their defaults:

  memory 32MiB         for data on its way, on each shard, beyond what each association has
  share 1280KiB        of that which each association (an NVMe controller, an iSCSI session) has
                       for itself, on each shard where it is
  stall 10s            a peer that moves less than 64 KiB in this time of what it owes (data it
                       was asked for, or reading what it is sent) is let go
  handshake 10s        for a connection to say what it is for
  handshakes 1024      connections at a time that have not: the oldest ends for the next
  wrong-secret 1s      before an initiator hears that it has not proved who it is
  controllers 4096     at a time; beyond, those end that only discover. As many sessions
  host-controllers 64  of one host NQN, and sessions of one initiator
  connections 16384    on each shard, and of those that have not said what they are for

Not done: authentication of NVMe/TCP hosts, TLS, iSCSI error recovery above level 0. Serve on
networks you trust.

Exit status: 0 it was told to end; 1 it failed; 2 bad usage.

Example: afar serve --nvme 0.0.0.0:4420 --iscsi 0.0.0.0:3260 disk=file:/data/disk.img?size=10GiB";

/// What `afar serve WORDS` means.
#[cfg(test)]
pub(crate) fn of_words<'a>(words: impl IntoIterator<Item = &'a &'a str>) -> ServeFlags {
    use clap::FromArgMatches as _;
    let command = ServeFlags::augment_args(clap::Command::new("serve").no_binary_name(true));
    let matches = command.try_get_matches_from(words).expect("flags are right");
    ServeFlags::from_arg_matches(&matches).expect("flags are right")
}
