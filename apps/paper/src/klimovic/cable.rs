//! Two network namespaces with a veth pair between them, which can be tuned.
//!
//! Invariant: child processes hold the namespaces, and the kernel kills these when this process
//! ends. Nothing else refers to the namespaces, so they vanish with it, and the machine's own
//! network is never changed.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Child;

use super::super::{ReproduceError, programs};
use super::rungs::Rung;

/// Two connected network namespaces; dropping it removes them.
pub(super) struct Cable {
    holders: Vec<Child>,
}

/// An end of the cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Target,
    Tenants,
}

/// The target's address in its namespace.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const TENANTS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const INTERFACE: &str = "afar0";
const NETWORK: &str = "10.9.0.0/24";
const UNSHARED: Duration = Duration::from_secs(5);
const PROGRAMS: [(&str, &str); 6] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("sleep", "coreutils"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
];
/// The name of bbr in the list of congestion controls.
const BBR: &str = "bbr";

/// Checks that a cable can be made.
///
/// # Errors
/// When this is not root, or a program is missing.
pub(super) fn check() -> Result<(), ReproduceError> {
    if sys::process::effective_user() != 0 {
        return Err(ReproduceError::NotRoot);
    }
    programs::check(&PROGRAMS)
}

/// Whether the kernel has bbr already; its module is not loaded, because it would stay loaded.
pub(super) fn has_bbr() -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    fs::read_to_string(path).is_ok_and(|names| names.split_whitespace().any(|name| name == BBR))
}

impl Cable {
    /// Creates the namespaces and the veth pair, tuned for a rung and a number of processors.
    ///
    /// # Errors
    /// When a program fails.
    pub(super) fn new(rung: Rung, processors: usize) -> Result<Self, ReproduceError> {
        let mut cable = Self { holders: Vec::new() };
        for _ in [End::Target, End::Tenants] {
            let mut command = Command::new("unshare");
            command.args(["--net", "sleep", "infinity"]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            cable.holders.push(start(command)?);
        }
        cable.holders.iter().try_for_each(wait_for_network)?;
        let [a, b] = [End::Target, End::Tenants].map(|end| cable.pid(end).to_string());
        let mut make = Command::new("ip");
        make.args(["link", "add", INTERFACE, "netns", &a, "type", "veth"]);
        make.args(["peer", "name", INTERFACE, "netns", &b]);
        run(make)?;
        for (end, address) in [(End::Target, ADDRESS), (End::Tenants, TENANTS_ADDRESS)] {
            cable.set(end, address, rung, processors)?;
        }
        Ok(cable)
    }

    /// The process that holds the namespace of an end.
    fn pid(&self, end: End) -> u32 {
        let index = match end {
            End::Target => 0,
            End::Tenants => 1,
        };
        self.holders[index].id()
    }

    /// A command that runs `program` in the namespace of an end.
    pub(super) fn command(&self, end: End, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.pid(end).to_string(), "--"]).arg(program);
        command
    }

    /// Runs a command in the namespace of an end.
    fn run(&self, end: End, words: &str) -> Result<(), ReproduceError> {
        let mut words = words.split(' ');
        let mut command = self.command(end, Path::new(words.next().unwrap_or_default()));
        command.args(words);
        run(command)
    }

    /// Sets up the interface of an end.
    fn set(
        &self,
        end: End,
        address: Ipv4Addr,
        rung: Rung,
        all: usize,
    ) -> Result<(), ReproduceError> {
        let on = if rung.has(Rung::Offloads) { "on" } else { "off" };
        let mtu = if rung.has(Rung::Jumbo) { 9000 } else { 1500 };
        let control = if rung.has(Rung::Bbr) && has_bbr() { BBR } else { "cubic" };
        self.run(end, &format!("ip addr add {address}/24 dev {INTERFACE}"))?;
        self.run(end, &format!("ip link set {INTERFACE} mtu {mtu} up"))?;
        self.run(end, &format!("ethtool -K {INTERFACE} tso {on} gso {on} gro {on}"))?;
        // Set by route, because a namespace may only select congestion controls that the machine
        // allows.
        let route = format!("{NETWORK} dev {INTERFACE} proto kernel scope link src {address}");
        self.run(end, &format!("ip route replace {route} congctl {control}"))?;
        if rung.has(Rung::Affinity) && all > 1 {
            self.run(end, &format!("ethtool -L {INTERFACE} rx {all} tx {all}"))?;
            self.steer(end, all)?;
        }
        Ok(())
    }

    // Gives each processor a queue to send on (XPS), and spreads received packets over all (RPS).
    fn steer(&self, end: End, processors: usize) -> Result<(), ReproduceError> {
        // Mounts this namespace's /sys, in a mount namespace that ends with the shell.
        let mut script = "mount -t sysfs sysfs /sys".to_owned();
        let every = mask(0..processors);
        for queue in 0..processors {
            let own = mask(queue..=queue);
            let path = format!("/sys/class/net/{INTERFACE}/queues");
            script += &format!(" && echo {own} > {path}/tx-{queue}/xps_cpus");
            script += &format!(" && echo {every} > {path}/rx-{queue}/rps_cpus");
        }
        let mut command = self.command(end, Path::new("unshare"));
        command.args(["--mount", "sh", "-c", &script]);
        run(command)
    }
}

// A set of processors as the kernel parses it: 32-bit words, the highest first.
fn mask(processors: impl Iterator<Item = usize>) -> String {
    let mut words = Vec::new();
    for processor in processors {
        if words.len() <= processor / 32 {
            words.resize(processor / 32 + 1, 0_u32);
        }
        words[processor / 32] |= 1 << (processor % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

/// Starts a child process, which is killed when the returned value is dropped.
pub(super) fn start(mut command: Command) -> Result<Child, ReproduceError> {
    command.env("LC_ALL", "C");
    let program = command.get_program().to_string_lossy().into_owned();
    Child::start(command).map_err(|source| ReproduceError::Start { program, source })
}

/// Runs a command to its end; an error has its messages.
fn run(mut command: Command) -> Result<(), ReproduceError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let words = format!("{command:?}");
    let mut child = start(command)?;
    let said = child.errors();
    match child.finish() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(ReproduceError::Network { words, said }),
    }
}

// Waits until a child has a network namespace of its own.
fn wait_for_network(holder: &Child) -> Result<(), ReproduceError> {
    let own = fs::read_link("/proc/self/ns/net").ok();
    let path = format!("/proc/{}/ns/net", holder.id());
    let deadline = Instant::now() + UNSHARED;
    while fs::read_link(&path).ok().is_none_or(|network| Some(network) == own) {
        if Instant::now() > deadline {
            let said = "it has no network of its own".to_owned();
            return Err(ReproduceError::Network { words: "unshare --net".to_owned(), said });
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_words_of_32_bits() {
        assert_eq!(mask(0..2), "00000003");
        assert_eq!(mask(33..=33), "00000002,00000000");
    }
}
