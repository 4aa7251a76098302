//! A target in a world: started, killed, drained and started again, with two ways to it.

use std::net::SocketAddr;

use host::initiator::{InitiatorConfig, IscsiUri};
use host::{DiskPath, HostConfig, NvmeUri};
use measure::Duration;
use nvme::{Digests, Nqn};
use simworld::{Link, Process, World};
use target::{Identity, IscsiAccess, Namespace, Subsystem, Target, TargetConfig};

use crate::medium::Medium;

/// Which protocol each of two ways speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    Nvme,
    Iscsi,
    /// One way each.
    Both,
}

pub(crate) const NQN: &str = "nqn.2026-11.example:seeds";
pub(crate) const IQN: &str = "iqn.2026-11.example:seeds";

/// The addresses of a target: two for NVMe/TCP, two for iSCSI.
pub(crate) struct House<'w> {
    world: &'w World,
    pub(crate) medium: Medium,
    pub(crate) nvme: Vec<SocketAddr>,
    pub(crate) iscsi: Vec<SocketAddr>,
    /// A link for each way.
    pub(crate) links: [usize; 2],
    now: Option<(Process, Target)>,
}

fn nqn(text: &str) -> Nqn {
    Nqn::new(text).expect("it is a name")
}

impl<'w> House<'w> {
    /// With a device of so many bytes; one that lies flushes nothing.
    pub(crate) fn new(world: &'w World, bytes: u64, lies: bool) -> Self {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let nvme = vec![at("10.0.0.1:4420"), at("10.0.1.1:4420")];
        let iscsi = vec![at("10.0.0.1:3260"), at("10.0.1.1:3260")];
        let links = [0, 1].map(|way| world.lay(&[nvme[way], iscsi[way]], Link::default()));
        let mut house =
            Self { world, medium: Medium::new(bytes, lies), nvme, iscsi, links, now: None };
        house.start();
        house
    }

    /// Starts a target, if there is none.
    pub(crate) fn start(&mut self) {
        if self.now.is_some() {
            return;
        }
        let process = self.world.process();
        let device = self.medium.open(self.world.draw(u64::MAX));
        let namespace = Namespace::new(1, device, Identity::of([5; 16]));
        let subsystem = Subsystem::new(nqn(NQN), None, vec![namespace]);
        subsystem.set_iscsi(Some(IscsiAccess {
            name: IQN.to_owned(),
            initiators: None,
            chap: None,
            chap_of: std::collections::BTreeMap::new(),
        }));
        let config = TargetConfig {
            nvme: self.nvme.clone(),
            iscsi: self.iscsi.clone(),
            shards: 2,
            ..TargetConfig::default()
        };
        let target = Target::start_in(&process.world(), &config, vec![subsystem]);
        self.now = Some((process, target.expect("it listens")));
    }

    /// What its cache has is lost, as is all that was under way; whether there was one.
    pub(crate) fn kill(&mut self) -> bool {
        let Some((process, target)) = self.now.take() else { return false };
        process.kill();
        drop(target);
        true
    }

    /// It answers what is under way, and ends. Its cache is lost then, too.
    pub(crate) fn drain(&mut self) -> bool {
        let Some((_, target)) = self.now.take() else { return false };
        target.stop().expect("no shard has failed");
        true
    }

    pub(crate) const fn target(&self) -> Option<&(Process, Target)> {
        self.now.as_ref()
    }

    /// Two ways to it.
    pub(crate) fn ways(&self, speech: Speech) -> Vec<DiskPath> {
        let [first, second] = [0, 1].map(|way| match (speech, way) {
            (Speech::Nvme, _) | (Speech::Both, 0) => self.nvme_way(way),
            _ => self.iscsi_way(way),
        });
        vec![first, second]
    }

    fn nvme_way(&self, way: usize) -> DiskPath {
        let uri: NvmeUri =
            format!("nvme+tcp://{}/{NQN}", self.nvme[way]).parse().expect("it is one");
        let host = HostConfig {
            host: nqn("nqn.2026-11.example:host"),
            host_id: [7; 16],
            keep_alive_ms: 1000,
            digests: Digests { header: false, data: self.world.draw(2) == 0 },
        };
        DiskPath::Nvme(uri, host)
    }

    fn iscsi_way(&self, way: usize) -> DiskPath {
        let uri: IscsiUri =
            format!("iscsi://{}/{IQN}", self.iscsi[way]).parse().expect("it is one");
        let config = InitiatorConfig {
            session_id: 77,
            ping_after: Duration::from_ms(500),
            ping_timeout: Duration::from_ms(500),
            login_timeout: Duration::from_ms(2000),
            command_timeout: Duration::from_ms(5000),
            ..InitiatorConfig::named("iqn.2026-11.example:host")
        };
        DiskPath::Iscsi(uri, config)
    }
}

impl Drop for House<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _was_there = self.drain();
        }
    }
}
