//! The plan: what to serve, checked before anything is opened.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use backend::BackendUri;
use measure::{Bytes, Duration};
use nvme::Nqn;
use nvme::log::AnaState;
use scsi::iscsi::{Chap, NAME_BYTES_MAX};
use target::{CONTROLLER_ID_MAX, IscsiAccess, Limits, NAMESPACES_MAX, SHARDS_MAX};

use crate::serve::flags::ServeFlags;

use super::{Sandbox, ServeError, limits, machine};

/// What a target serves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) fixed: Fixed,
    /// The access state (ANA) of each address of `nvme`.
    pub(crate) ana: Vec<AnaState>,
    /// The access state (ALUA) of each address of `iscsi`.
    pub(crate) iscsi_ana: Vec<AnaState>,
    pub(crate) subsystems: Vec<SubsystemPlan>,
}

/// Settings that cannot change while a target runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) nvme: Vec<SocketAddr>,
    pub(crate) iscsi: Vec<SocketAddr>,
    pub(crate) discovery_chap: Option<Chap>,
    /// Threads; as many as processors if `None`.
    pub(crate) shards: Option<u16>,
    pub(crate) busy_poll: Duration,
    /// Answers of this size or more are sent without copying them; none if `None`.
    pub(crate) zero_copy: Option<Bytes>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Option<SocketAddr>,
    /// Directory for reservations and identities; beside each file if `None`.
    pub(crate) state: Option<PathBuf>,
    /// Other targets may serve the same files and devices at the same time.
    pub(crate) is_shared: bool,
    /// First and last controller identifier.
    pub(crate) controllers: [u16; 2],
    /// The user that the target becomes once everything is open.
    pub(crate) user: Option<String>,
    pub(crate) sandbox: Sandbox,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubsystemPlan {
    pub(crate) nqn: Nqn,
    /// Hosts that may connect; any if `None`.
    pub(crate) allow: Option<BTreeSet<Nqn>>,
    pub(crate) iscsi: IscsiAccess,
    /// The namespaces, with distinct identifiers.
    pub(crate) namespaces: Vec<NamespacePlan>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamespacePlan {
    pub(crate) id: u32,
    /// The URI as it was written, and parsed.
    pub(crate) text: String,
    pub(crate) uri: BackendUri,
    /// Identifiers in place of those of the medium.
    pub(crate) nguid: Option<[u8; 16]>,
    pub(crate) uuid: Option<[u8; 16]>,
}

impl NamespacePlan {
    /// Whether `other` is the same disk, even if its URI is written differently.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self == &Self { text: self.text.clone(), ..other.clone() }
    }
}

/// The prefix of NQNs made from a name. The domain `local` belongs to nobody (RFC 6762).
const PREFIX: &str = "nqn.2026-11.local.afar:";
const IQN_PREFIX: &str = "iqn.2026-11.local.afar:";
/// Default busy-polling time: several times the cost of a wake-up.
const BUSY_POLL: Duration = Duration::from_us(20);
const BUSY_POLL_MOST: Duration = Duration::from_ms(1);
const NVME: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4420);

/// The configuration file, if a DISK names one.
///
/// # Errors
/// When another disk, or a flag that the file replaces, is beside it.
pub(crate) fn file_of(flags: &ServeFlags) -> Result<Option<PathBuf>, ServeError> {
    let is_file = |word: &&String| !word.contains('=') && word.ends_with(".toml");
    let Some(file) = flags.disks.iter().find(is_file) else { return Ok(None) };
    let beside = [
        (flags.disks.len() > 1, "another DISK"),
        (!flags.nvme.is_empty(), "--nvme"),
        (!flags.iscsi.is_empty(), "--iscsi"),
        (!flags.allow.is_empty(), "--allow"),
        (flags.shards.is_some(), "--shards"),
        (flags.busy_poll.is_some(), "--busy-poll"),
        (flags.zero_copy.is_some(), "--zero-copy"),
        (!flags.limits.is_empty(), "--limit"),
        (flags.metrics.is_some(), "--metrics"),
        (flags.state.is_some(), "--state"),
        (flags.shared, "--shared"),
        (flags.controllers.is_some(), "--controllers"),
        (flags.user.is_some(), "--user"),
        (flags.sandbox.is_some(), "--sandbox"),
    ];
    match beside.iter().find(|(is_there, _)| *is_there) {
        Some((_, flag)) => Err(ServeError::Beside { file: file.clone(), flag }),
        None => Ok(Some(file.into())),
    }
}

impl Plan {
    /// All namespaces of all subsystems.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &NamespacePlan> {
        self.subsystems.iter().flat_map(|subsystem| &subsystem.namespaces)
    }

    /// All files and devices that the namespaces open.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.namespaces().flat_map(|one| one.uri.files())
    }

    /// The plan that flags describe.
    ///
    /// # Errors
    /// The first flag or disk that is invalid.
    pub(crate) fn of_flags(flags: &ServeFlags) -> Result<Self, ServeError> {
        let fixed = Fixed {
            nvme: match flags.nvme.is_empty() && flags.iscsi.is_empty() {
                true => vec![NVME],
                false => flags.nvme.clone(),
            },
            iscsi: flags.iscsi.clone(),
            discovery_chap: None,
            shards: flags.shards,
            busy_poll: flags.busy_poll.unwrap_or(BUSY_POLL),
            zero_copy: flags.zero_copy,
            limits: limits::of_words(&flags.limits)
                .map_err(|what| ServeError::Flag(format!("--limit: {what}")))?,
            metrics: flags.metrics,
            state: flags.state.clone(),
            is_shared: flags.shared,
            controllers: controllers(flags.controllers.as_deref())
                .map_err(|what| ServeError::Flag(format!("--{what}")))?,
            user: flags.user.clone(),
            sandbox: flags.sandbox.unwrap_or_default(),
        };
        fixed.check().map_err(|what| ServeError::Flag(format!("--{what}")))?;
        let allowed =
            allowed(&flags.allow).map_err(|what| ServeError::Flag(format!("--{what}")))?;
        let (allow, initiators) = allowed.unzip();
        let mut subsystems: Vec<SubsystemPlan> = Vec::new();
        for word in &flags.disks {
            // An NQN has no '=', and a URI may.
            let split = word.split_once('=');
            let (name, uri) = split.ok_or_else(|| ServeError::Disk(word.clone()))?;
            let nqn = nqn(name).ok_or_else(|| ServeError::Name { name: name.to_owned() })?;
            if subsystems.iter().any(|other| other.nqn == nqn) {
                return Err(ServeError::Twice { name: name.to_owned() });
            }
            let parsed = uri.parse();
            let parsed =
                parsed.map_err(|source| ServeError::Uri { name: name.to_owned(), source })?;
            let namespaces = vec![NamespacePlan {
                id: 1,
                text: uri.to_owned(),
                uri: parsed,
                nguid: None,
                uuid: None,
            }];
            let (allow, initiators) = (allow.clone(), initiators.clone());
            let iscsi = IscsiAccess { name: iqn(name), initiators, ..IscsiAccess::default() };
            subsystems.push(SubsystemPlan { nqn, allow, iscsi, namespaces });
        }
        let all = |addresses: &[_]| vec![AnaState::Optimized; addresses.len()];
        let (ana, iscsi_ana) = (all(&fixed.nvme), all(&fixed.iscsi));
        let plan = Self { fixed, ana, iscsi_ana, subsystems };
        plan.check_leases().map_err(ServeError::Flag)?;
        Ok(plan)
    }

    /// Refuses iSCSI and fixed identifiers for leased memory, of which each host sees its own disk.
    pub(crate) fn check_leases(&self) -> Result<(), String> {
        let Some(leased) = self.namespaces().find(|one| one.uri.is_leased()) else {
            return Ok(());
        };
        if !self.fixed.iscsi.is_empty() {
            return Err(format!(
                "iscsi: {} is for NVMe hosts alone; serve it without iSCSI, by another afar serve",
                leased.text
            ));
        }
        if leased.nguid.is_some() || leased.uuid.is_some() {
            return Err(format!(
                "{}: each host sees another disk; leave nguid and uuid out",
                leased.text
            ));
        }
        Ok(())
    }
}

impl Fixed {
    /// Checks values; the error is the first that is out of range, with its name.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.busy_poll > BUSY_POLL_MOST {
            return Err(format!(
                "busy-poll {}: at most 1ms; longer is better slept",
                self.busy_poll
            ));
        }
        match self.shards {
            Some(shards) if !(1..=SHARDS_MAX).contains(&usize::from(shards)) => {
                Err(format!("shards {shards}: 1 to {SHARDS_MAX}"))
            }
            _ => Ok(()),
        }
    }

    /// The names of settings that differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let alike = [
            ("nvme", self.nvme == other.nvme),
            ("iscsi", self.iscsi == other.iscsi),
            ("discovery_chap", self.discovery_chap == other.discovery_chap),
            ("shards", self.shards == other.shards),
            ("busy_poll", self.busy_poll == other.busy_poll),
            ("zero_copy", self.zero_copy == other.zero_copy),
            ("limits", self.limits == other.limits),
            ("metrics", self.metrics == other.metrics),
            ("state", self.state == other.state),
            ("shared", self.is_shared == other.is_shared),
            ("controllers", self.controllers == other.controllers),
            ("user", self.user == other.user),
            ("sandbox", self.sandbox == other.sandbox),
        ];
        alike.into_iter().filter(|(_, is_alike)| !is_alike).map(|(name, _)| name).collect()
    }
}

/// Parses FIRST-LAST, a range of controller identifiers; all of them if `None`.
pub(crate) fn controllers(text: Option<&str>) -> Result<[u16; 2], String> {
    let Some(text) = text else { return Ok([1, CONTROLLER_ID_MAX]) };
    let ends = text
        .split_once('-')
        .and_then(|(first, last)| Some([first.parse::<u16>().ok()?, last.parse::<u16>().ok()?]));
    let ends = ends.filter(|[first, last]| 1 <= *first && first <= last);
    ends.filter(|[_, last]| *last <= CONTROLLER_ID_MAX).ok_or_else(|| {
        format!(
            "controllers {text:?}: write FIRST-LAST, both 1 to {CONTROLLER_ID_MAX}, e.g. 1-1000"
        )
    })
}

/// The NQN for a name, or the name itself if it begins with `nqn.`; `None` if it is invalid.
pub(crate) fn nqn(name: &str) -> Option<Nqn> {
    if name.starts_with("nqn.") {
        return Nqn::new(name).filter(|nqn| nqn.as_str() != Nqn::DISCOVERY);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=64).contains(&name.len()) && name.chars().all(is_plain);
    fits.then(|| Nqn::new(&format!("{PREFIX}{}:{name}", machine::part()))).flatten()
}

/// The iSCSI name of the subsystem with this name or NQN (RFC 7143 4.2.7).
pub(crate) fn iqn(name: &str) -> String {
    match name.strip_prefix("nqn.") {
        Some(rest) => format!("iqn.{rest}"),
        None => format!("{IQN_PREFIX}{}:{name}", machine::part()),
    }
}

/// Whether `name` is a valid name of an iSCSI initiator or target.
pub(crate) fn is_iscsi_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
    let has_kind = ["iqn.", "eui.", "naa."].iter().any(|kind| name.starts_with(kind));
    has_kind && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

/// Splits names into those of hosts and of initiators; `None` if there are no names.
#[expect(clippy::type_complexity, reason = "hosts, and initiators")]
pub(crate) fn allowed(
    names: &[String],
) -> Result<Option<(BTreeSet<Nqn>, BTreeSet<String>)>, String> {
    let (mut hosts, mut initiators) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        if is_iscsi_name(name) {
            initiators.insert(name.clone());
        } else {
            // All formats of NQNs begin with "nqn." (Base 4.7).
            let nqn =
                Some(name.as_str()).filter(|name| name.starts_with("nqn.")).and_then(Nqn::new);
            hosts.insert(nqn.ok_or_else(|| {
                format!(
                    "allow {name:?}: the name of an NVMe host begins with nqn., that of an \
                     initiator with iqn., eui. or naa.; both have 223 bytes at most"
                )
            })?);
        }
    }
    Ok((!names.is_empty()).then_some((hosts, initiators)))
}

/// Whether `id` is a valid namespace identifier (NSID).
pub(crate) const fn is_id(id: u32) -> bool {
    matches!(id, 1..=NAMESPACES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> ServeFlags {
        crate::serve::flags::of_words(words)
    }

    #[test]
    fn names_become_nqns() {
        let text = |name: &str| nqn(name).map(|nqn| nqn.as_str().to_owned());
        assert_eq!(
            text("disk").as_deref(),
            Some(&*format!("nqn.2026-11.local.afar:{}:disk", machine::part()))
        );
        assert_eq!(text("nqn.2014-08.org:x").as_deref(), Some("nqn.2014-08.org:x"));
        for wrong in ["", "a b", "a/b", "ä", Nqn::DISCOVERY] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn disks_are_named_once() {
        let plan = |words: &[&str]| {
            let plan = Plan::of_flags(&flags(words));
            plan.map(|plan| plan.subsystems.len()).map_err(|error| error.to_string())
        };
        assert_eq!(plan(&["a=null:", "b=memory:1MiB"]), Ok(2));
        for (wrong, reason) in [
            (&["null:"][..], "write NAME=URI"),
            (&["a=null:", "a=null:"], "two disks have this name"),
            (&["a=disk:"], "no device is called"),
            (&["a=null:", "--busy-poll", "2ms"], "--busy-poll 2.0 ms: at most 1ms"),
            (&["a=null:", "--controllers", "5-4"], "--controllers \"5-4\": write FIRST-LAST"),
            (&["a=null:", "--controllers", "0-4"], "both 1 to 65519"),
        ] {
            let error = plan(wrong).expect_err("it cannot be");
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_file_says_everything() {
        let file = |words: &[&str]| file_of(&flags(words)).map_err(|error| error.to_string());
        assert_eq!(file(&["a=file:/x.toml"]), Ok(None));
        assert_eq!(file(&["flash.toml"]), Ok(Some("flash.toml".into())));
        for words in [
            &["flash.toml", "a=null:"][..],
            &["flash.toml", "--shards", "2"],
            &["flash.toml", "--nvme", "4420"],
        ] {
            let error = file(words).expect_err("it cannot be");
            assert!(error.contains("write it in the file"), "{error}");
        }
    }

    #[test]
    fn what_differs_has_a_name() {
        let plan = |words: &[&str]| Plan::of_flags(&flags(words)).expect("it can be").fixed;
        let one = plan(&["a=null:"]);
        assert!(one.differences(&plan(&["b=null:"])).is_empty());
        let other = plan(&["a=null:", "--shards", "2", "--nvme", "1"]);
        assert_eq!(one.differences(&other), ["nvme", "shards"]);
    }
}
