//! A store over one way to the drive: drive, file system and server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use chart::{BLUE, GREEN, ORANGE, PURPLE};
use launch::{Child, KvServed, ServeSpec};
use measure::Duration;
use results::served::KvServed as KvRecord;
use serde::{Deserialize, Serialize};
use sys::processors::ProcessorTime;

use super::image::{self, DRIVE, Image, MOUNTED, RECORD};
use super::place::{Place, start};
use super::tgt::{self, Tgt};
use crate::ReproduceError;

/// The ways to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Over {
    /// The drive is local.
    Local,
    Nvme,
    Iscsi,
    /// iSCSI with Debian's tgt as the target: the control.
    Tgt,
}

/// A running stack. [`Stack::end`] ends it, and so does dropping it.
pub(crate) struct Stack<'a> {
    place: &'a Place,
    kv: Option<KvServed>,
    attached: Option<Child>,
    target: Option<Target>,
    is_mounted: bool,
}

/// The target of a remote drive.
enum Target {
    Own(Child),
    /// tgt, and the process that presents the drive as a file to it.
    Tgt(Tgt, Child),
}

/// Processor time until now: of the host (server and `afar attach`), of the target, and of all
/// programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    host_ns: u64,
    target_ns: u64,
    all: ProcessorTime,
    wall_ns: u64,
}

/// Processor time between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// Processor time of the host for each request, in microseconds,
    pub(crate) host_us: f64,
    /// and of the target.
    pub(crate) target_us: f64,
    /// The share of all processors that programs used.
    pub(crate) busy: f64,
    /// The share of the wanted processor time that other guests took.
    pub(crate) stolen: f64,
}

/// Largest share that other guests may take, as in runs of programs.
const STOLEN_MOST: f64 = 0.10;
const SUBSYSTEM: &str = "nqn.2026-11.local.afar:store";
const UNIT: &str = "iqn.2026-11.local.afar:store/0";
/// The directory in which the drive is a file for the host,
const DISK: &str = "disk";
/// and the one for tgt.
const BEHIND: &str = "behind";
const STATE: &str = "state";

impl Over {
    /// The ways that can be measured on this machine, local first.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::Local, Self::Nvme, Self::Iscsi];
        all.extend(tgt::is_installed().then_some(Self::Tgt));
        all
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Nvme => "NVMe/TCP",
            Self::Iscsi => "iSCSI",
            Self::Tgt => "iSCSI, tgt",
        }
    }

    pub(crate) const fn colour(self) -> &'static str {
        match self {
            Self::Local => BLUE,
            Self::Nvme => ORANGE,
            Self::Iscsi => GREEN,
            Self::Tgt => PURPLE,
        }
    }
}

impl<'a> Stack<'a> {
    /// Starts a store on a copy of the image, on a drive emulated by `model`.
    ///
    /// # Errors
    /// When a part cannot be started.
    pub(crate) fn start(
        place: &'a Place,
        image: &Image,
        (model, over): (&str, Over),
        work: Duration,
    ) -> Result<Self, ReproduceError> {
        image.copy(place)?;
        let drive = format!("{model}:file:{}", place.path(DRIVE).display());
        let (attached, target, is_mounted) = (None, None, false);
        let mut stack = Self { place, kv: None, attached, target, is_mounted };
        let uri = stack.reach(&drive, over)?;
        stack.attached = Some(attach(place, &uri, DISK)?);
        let at = place.make(MOUNTED)?;
        place.mount(&place.path(DISK).join("disk"), &at)?;
        stack.is_mounted = true;
        stack.kv = Some(image::serve(place, true, work)?);
        Ok(stack)
    }

    // Starts the target if there is one. Returns the URI to attach.
    fn reach(&mut self, drive: &str, over: Over) -> Result<String, ReproduceError> {
        let place = self.place;
        if over == Over::Local {
            return Ok(drive.to_owned());
        }
        if over == Over::Tgt {
            let behind = attach(place, drive, BEHIND)?;
            let tgt = Tgt::start(place, &place.path(BEHIND).join("disk"))?;
            let uri = tgt.uri();
            self.target = Some(Target::Tgt(tgt, behind));
            return Ok(uri);
        }
        place.make(STATE)?;
        let any = vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)];
        let (nvme, iscsi) = if over == Over::Nvme { (any, Vec::new()) } else { (Vec::new(), any) };
        let disks = vec![(SUBSYSTEM.to_owned(), drive.to_owned())];
        let spec = ServeSpec { disks, nvme, iscsi, ..ServeSpec::default() };
        let served = spec.start(place.command(&launch::program()))?;
        let nvme = served.ready.nvme.first().map(|at| format!("nvme+tcp://{at}/{SUBSYSTEM}"));
        let iscsi = served.ready.iscsi.first().map(|at| format!("iscsi://{at}/{UNIT}"));
        self.target = Some(Target::Own(served.child));
        nvme.or(iscsi).ok_or(ReproduceError::Untraced)
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.kv.as_ref().map(|kv| kv.address).expect("it has been started")
    }

    /// Processor time until now.
    pub(crate) fn used(&self) -> Used {
        let of = |child: &Child| {
            sys::usage::of_process(child.id()).map_or(0, |usage| usage.processor_ns())
        };
        let host = [self.kv.as_ref().map(|kv| &kv.child), self.attached.as_ref()];
        Used {
            host_ns: host.into_iter().flatten().map(of).sum(),
            target_ns: match &self.target {
                None => 0,
                Some(Target::Own(target)) => of(target),
                Some(Target::Tgt(tgt, behind)) => of(&tgt.child) + of(behind),
            },
            all: ProcessorTime::now(),
            wall_ns: sys::clock::monotonic_ns(),
        }
    }

    /// Ends the stack. Returns a lower bound of the share of gets that read no block from the
    /// drive; `None` if it is not known.
    ///
    /// # Errors
    /// When a part does not end with success.
    pub(crate) fn end(mut self) -> Result<Option<f64>, ReproduceError> {
        if let Some(kv) = self.kv.take() {
            image::end(kv)?;
        }
        let text = std::fs::read_to_string(self.place.seen(RECORD)).unwrap_or_default();
        let record: Option<KvRecord> = results::read(&text).ok();
        self.take_down()?;
        Ok(record.and_then(|record| cached(&record)))
    }

    // Ends all parts from the top down, because each uses those below.
    fn take_down(&mut self) -> Result<(), ReproduceError> {
        drop(self.kv.take());
        if std::mem::take(&mut self.is_mounted) {
            let at = self.place.path(MOUNTED).display().to_string();
            self.place.run(&["umount", &at])?;
        }
        detach(self.attached.take())?;
        match self.target.take() {
            None => Ok(()),
            Some(Target::Own(target)) => detach(Some(target)),
            Some(Target::Tgt(tgt, behind)) => {
                drop(tgt);
                detach(Some(behind))
            }
        }
    }
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        let _the_first_error_counts = self.take_down();
    }
}

impl Spent {
    /// Whether other guests took so much processor time that figures are disturbed.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.stolen > STOLEN_MOST
    }
}

impl Used {
    /// The processor time since `earlier`, in which `requests` were answered.
    pub(crate) fn since(&self, earlier: &Self, requests: u64) -> Spent {
        let each = |now: u64, before: u64| {
            now.saturating_sub(before) as f64 / 1e3 / requests.max(1) as f64
        };
        let wall_ns = self.wall_ns.saturating_sub(earlier.wall_ns).max(1) as f64;
        let all = self.all.programs_since(earlier.all).as_secs_f64() * 1e9;
        Spent {
            host_us: each(self.host_ns, earlier.host_ns),
            target_us: each(self.target_ns, earlier.target_ns),
            busy: all / wall_ns / self.all.count().max(1) as f64,
            stolen: self.all.stolen_since(earlier.all),
        }
    }
}

/// Attaches the drive of a URI as a file in a directory.
fn attach(place: &Place, uri: &str, name: &str) -> Result<Child, ReproduceError> {
    let at = place.make(name)?;
    let mut command = place.command(&launch::program());
    command.args(["attach", "--quiet", uri]).arg(&at);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = start(command)?;
    place.wait_for(&Path::new(name).join("disk").display().to_string(), &mut child)?;
    Ok(child)
}

/// Ends a child process, if there is one.
fn detach(child: Option<Child>) -> Result<(), ReproduceError> {
    let Some(mut child) = child else { return Ok(()) };
    child.terminate();
    Ok(child.finish().map(drop)?)
}

// A lower bound of the share of gets without a cache miss: counts each miss as a get of its own.
fn cached(record: &KvRecord) -> Option<f64> {
    let gets = record.results.operations.iter().find(|of| of.operation == "get")?.served.count;
    let misses = record.results.store.block_cache_miss_count;
    (gets > 0).then(|| (1.0 - misses as f64 / gets as f64).max(0.0))
}
