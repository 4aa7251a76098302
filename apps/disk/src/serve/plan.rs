//! What is to be served, checked, before anything of it is opened.

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

/// See the module's description.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) fixed: Fixed,
    /// How namespaces are reached from each address.
    pub(crate) ana: Vec<AnaState>,
    /// The same for initiators.
    pub(crate) iscsi_ana: Vec<AnaState>,
    pub(crate) subsystems: Vec<SubsystemPlan>,
}

/// What stays as it is while a target runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) nvme: Vec<SocketAddr>,
    pub(crate) iscsi: Vec<SocketAddr>,
    pub(crate) discovery_chap: Option<Chap>,
    /// As many as processors if `None`.
    pub(crate) shards: Option<u16>,
    pub(crate) busy_poll: Duration,
    /// From how many bytes on answers are sent without copying them.
    pub(crate) zero_copy: Option<Bytes>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Option<SocketAddr>,
    /// Directory for what is to outlive the process; beside each file if `None`.
    pub(crate) state: Option<PathBuf>,
    /// Other targets may serve the same files and devices at the same time.
    pub(crate) is_shared: bool,
    /// Numbers of controllers, the first and the last.
    pub(crate) controllers: [u16; 2],
    /// Whose rights it has once everything is open.
    pub(crate) user: Option<String>,
    pub(crate) sandbox: Sandbox,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubsystemPlan {
    pub(crate) nqn: Nqn,
    /// Who may connect; anybody if `None`.
    pub(crate) allow: Option<BTreeSet<Nqn>>,
    pub(crate) iscsi: IscsiAccess,
    /// Their identifiers differ.
    pub(crate) namespaces: Vec<NamespacePlan>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamespacePlan {
    pub(crate) id: u32,
    /// As it was written, and what that means.
    pub(crate) text: String,
    pub(crate) uri: BackendUri,
    /// Its identifiers, if others than those of its medium.
    pub(crate) nguid: Option<[u8; 16]>,
    pub(crate) uuid: Option<[u8; 16]>,
}

impl NamespacePlan {
    /// Whether it is the same disk, however that is written.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self == &Self { text: self.text.clone(), ..other.clone() }
    }
}

/// In front of this machine's part and a name that is no NQN. The domain is nobody's (RFC 6762).
const PREFIX: &str = "nqn.2026-11.local.afar:";
const IQN_PREFIX: &str = "iqn.2026-11.local.afar:";
/// Several times what a wake-up costs.
const BUSY_POLL: Duration = Duration::from_us(20);
const BUSY_POLL_MOST: Duration = Duration::from_ms(1);
const NVME: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4420);

/// The file that the words name, if that is what they are.
///
/// # Errors
/// When other disks or flags are beside it.
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
    /// All that is to be served.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &NamespacePlan> {
        self.subsystems.iter().flat_map(|subsystem| &subsystem.namespaces)
    }

    /// All files and devices that are opened for that.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.namespaces().flat_map(|one| one.uri.files())
    }

    /// What flags say.
    ///
    /// # Errors
    /// The first thing that cannot be.
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

    /// What cannot be done with memory of which each host sees a disk of its own.
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
    /// The first value that cannot be, with its name.
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

    /// The names of what is not alike.
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

/// The numbers that controllers may have: all if nothing is said.
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

/// The NQN that a name stands for.
pub(crate) fn nqn(name: &str) -> Option<Nqn> {
    if name.starts_with("nqn.") {
        return Nqn::new(name).filter(|nqn| nqn.as_str() != Nqn::DISCOVERY);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=64).contains(&name.len()) && name.chars().all(is_plain);
    fits.then(|| Nqn::new(&format!("{PREFIX}{}:{name}", machine::part()))).flatten()
}

/// What a subsystem of this name is called over iSCSI (RFC 7143 4.2.7).
pub(crate) fn iqn(name: &str) -> String {
    match name.strip_prefix("nqn.") {
        Some(rest) => format!("iqn.{rest}"),
        None => format!("{IQN_PREFIX}{}:{name}", machine::part()),
    }
}

/// Whether something is the name of an iSCSI initiator or target.
pub(crate) fn is_iscsi_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
    let has_kind = ["iqn.", "eui.", "naa."].iter().any(|kind| name.starts_with(kind));
    has_kind && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

/// Names of hosts, and of initiators; `None` if there are none.
#[expect(clippy::type_complexity, reason = "hosts, and initiators")]
pub(crate) fn allowed(
    names: &[String],
) -> Result<Option<(BTreeSet<Nqn>, BTreeSet<String>)>, String> {
    let (mut hosts, mut initiators) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        if is_iscsi_name(name) {
            initiators.insert(name.clone());
        } else {
            // Base 4.7: all formats of names begin so.
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

/// Whether a namespace can have this identifier.
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
