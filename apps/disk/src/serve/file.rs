//! Reads a configuration file: TOML into a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use measure::{Bytes, Duration};
use nvme::Nqn;
use nvme::log::AnaState;
use scsi::iscsi::{Chap, Credentials, Secret};
use serde::Deserialize;
use target::IscsiAccess;

use crate::serve::socket_address;
use document::toml_text;

use super::error::FileError;
use super::limits;
use super::plan::{
    Fixed, NamespacePlan, Plan, SubsystemPlan, allowed, controllers, iqn, is_id, is_iscsi_name, nqn,
};
use super::sandbox::Sandbox;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    nvme: Option<Vec<PortalEntry>>,
    #[serde(default)]
    iscsi: Vec<PortalEntry>,
    discovery_chap: Option<ChapTable>,
    shards: Option<u16>,
    #[serde(default = "none")]
    busy_poll: String,
    zero_copy: Option<String>,
    #[serde(default)]
    limits: BTreeMap<String, limits::Value>,
    metrics: Option<String>,
    state: Option<PathBuf>,
    #[serde(default)]
    shared: bool,
    controllers: Option<String>,
    user: Option<String>,
    #[serde(default)]
    sandbox: Sandbox,
    #[serde(default)]
    subsystem: Vec<SubsystemTable>,
}

/// An address, optionally with its access state (ANA); optimized by default.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"ADDRESS:PORT\" or { address = \"ADDRESS:PORT\", ana = \
    \"non-optimized\" }"
)]
enum PortalEntry {
    Address(String),
    Table(PortalTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortalTable {
    address: String,
    ana: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubsystemTable {
    name: Option<String>,
    nqn: Option<String>,
    iqn: Option<String>,
    allow: Option<Vec<String>>,
    chap: Option<ChapEntry>,
    /// Whether NVMe/TCP hosts, which are not authenticated, may connect.
    nvme: Option<bool>,
    namespaces: Vec<NamespaceTable>,
}

/// CHAP credentials: the same for all initiators, or others for each.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected { user = \"USER\", secret = \"SECRET\" } or a list of these, each with \
    an initiator"
)]
enum ChapEntry {
    All(ChapTable),
    Each(Vec<InitiatorChapTable>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InitiatorChapTable {
    initiator: String,
    user: String,
    secret: String,
    target_user: Option<String>,
    target_secret: Option<String>,
}

/// CHAP credentials of an initiator, and of the target if it proves itself, too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChapTable {
    user: String,
    secret: String,
    target_user: Option<String>,
    target_secret: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceTable {
    id: u32,
    uri: String,
    nguid: Option<String>,
    uuid: Option<String>,
}

const LOOPBACK: &str = "127.0.0.1:4420";

/// Access states (ANA), with nvme-cli's names.
pub(crate) const STATES: [(&str, AnaState); 5] = [
    ("optimized", AnaState::Optimized),
    ("non-optimized", AnaState::NonOptimized),
    ("inaccessible", AnaState::Inaccessible),
    ("persistent-loss", AnaState::PersistentLoss),
    ("change", AnaState::Change),
];

// The default of `busy_poll`.
fn none() -> String {
    "20us".to_owned()
}

/// Reads and checks a configuration file.
///
/// # Errors
/// The first error in the file, with its line if it is one of TOML.
pub(crate) fn read(path: &Path) -> Result<Plan, FileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| FileError::Unreadable { path: path.to_owned(), source })?;
    console::terminal::detail(|| format!("read {}", path.display()));
    parse(&text).map_err(|what| FileError::Value { path: path.to_owned(), what })
}

// Parses and checks the text of a configuration file.
fn parse(text: &str) -> Result<Plan, String> {
    let document: Document = toml_text::parse(text)
        .map_err(|toml_text::Wrong { line, message }| format!("line {line}: {message}"))?;
    let address = |name: &'static str| {
        move |text: &String| socket_address(text).map_err(|error| format!("{name}: {error}"))
    };
    let nvme = match document.nvme {
        Some(nvme) if nvme.is_empty() => {
            return Err("nvme is empty; leave it out for 127.0.0.1:4420".to_owned());
        }
        Some(nvme) => nvme,
        None if document.iscsi.is_empty() => vec![PortalEntry::Address(LOOPBACK.to_owned())],
        None => Vec::new(),
    };
    let chap = document.discovery_chap.as_ref().map(chap).transpose();
    let busy_poll = document.busy_poll.parse::<Duration>();
    let zero_copy = document.zero_copy.as_deref().map(str::parse::<Bytes>).transpose();
    let (nvme, ana) = portals("nvme", &nvme)?;
    let (iscsi, iscsi_ana) = portals("iscsi", &document.iscsi)?;
    let fixed = Fixed {
        nvme,
        iscsi,
        discovery_chap: chap.map_err(|what| format!("discovery_chap: {what}"))?,
        shards: document.shards,
        busy_poll: busy_poll.map_err(|error| format!("busy_poll: {error}"))?,
        zero_copy: zero_copy.map_err(|error| format!("zero_copy: {error}"))?,
        limits: limits::of_table(&document.limits)?,
        metrics: document.metrics.as_ref().map(address("metrics")).transpose()?,
        state: document.state,
        is_shared: document.shared,
        controllers: controllers(document.controllers.as_deref())?,
        user: document.user,
        sandbox: document.sandbox,
    };
    fixed.check()?;
    if document.subsystem.is_empty() {
        return Err("there is no [[subsystem]]; give one a name and namespaces".to_owned());
    }
    let mut subsystems: Vec<SubsystemPlan> = Vec::new();
    for table in &document.subsystem {
        let name = table.name.as_ref().or(table.nqn.as_ref()).map_or("", |name| name);
        let plan = subsystem(table).map_err(|what| format!("subsystem {name:?}: {what}"))?;
        if subsystems.iter().any(|other| other.nqn == plan.nqn) {
            return Err(format!("subsystem {name:?} is there twice; give one another name"));
        }
        if subsystems.iter().any(|other| other.iscsi.name == plan.iscsi.name) {
            let iqn = &plan.iscsi.name;
            return Err(format!("subsystem {name:?}: iqn {iqn:?} is there twice; give another"));
        }
        subsystems.push(plan);
    }
    have_identities_of_their_own(&subsystems)?;
    let plan = Plan { fixed, ana, iscsi_ana, subsystems };
    plan.check_leases()?;
    Ok(plan)
}

// Refuses an identifier that two namespaces have: hosts would take them for one disk.
fn have_identities_of_their_own(subsystems: &[SubsystemPlan]) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for (subsystem, one) in subsystems.iter().flat_map(|s| s.namespaces.iter().map(move |n| (s, n)))
    {
        for (name, id) in [("nguid", one.nguid), ("uuid", one.uuid)] {
            if id.is_some_and(|id| !known.insert((name, id))) {
                let nqn = subsystem.nqn.as_str();
                return Err(format!(
                    "namespace {} of {nqn}: another has the same {name}; give each its own",
                    one.id
                ));
            }
        }
    }
    Ok(())
}

type Proofs = (Option<Chap>, BTreeMap<String, Chap>);

// CHAP credentials of all initiators, and of single ones by name.
fn proofs(entry: Option<&ChapEntry>) -> Result<Proofs, String> {
    let each = match entry {
        None => return Ok((None, BTreeMap::new())),
        Some(ChapEntry::All(table)) => return Ok((Some(chap(table)?), BTreeMap::new())),
        Some(ChapEntry::Each(each)) if each.is_empty() => {
            return Err("the list is empty; leave it out if nobody is to prove anything".to_owned());
        }
        Some(ChapEntry::Each(each)) => each,
    };
    let mut proofs = BTreeMap::new();
    for InitiatorChapTable { initiator, user, secret, target_user, target_secret } in each {
        if !is_iscsi_name(initiator) {
            return Err(format!("initiator {initiator:?}: it begins with iqn., eui. or naa."));
        }
        let (user, secret) = (user.clone(), secret.clone());
        let (target_user, target_secret) = (target_user.clone(), target_secret.clone());
        let proof = chap(&ChapTable { user, secret, target_user, target_secret });
        let proof = proof.map_err(|what| format!("initiator {initiator:?}: {what}"))?;
        if proofs.insert(initiator.clone(), proof).is_some() {
            return Err(format!("initiator {initiator:?} is there twice; leave one out"));
        }
    }
    Ok((None, proofs))
}

// Checks CHAP credentials: secrets of at least 96 bits, different at both ends (RFC 7143 9.2.1).
fn chap(table: &ChapTable) -> Result<Chap, String> {
    let credentials = |user: &str, secret: &str| {
        if user.is_empty() || !(12..=255).contains(&secret.len()) {
            return Err("a user and a secret of 12 to 255 bytes are needed".to_owned());
        }
        Ok(Credentials { name: user.to_owned(), secret: Secret::new(secret) })
    };
    let initiator = credentials(&table.user, &table.secret)?;
    let target = match (&table.target_user, &table.target_secret) {
        (None, None) => None,
        (Some(user), Some(secret)) if *secret != table.secret => Some(credentials(user, secret)?),
        (Some(_), Some(_)) => return Err("secret and target_secret must differ".to_owned()),
        _ => return Err("target_user and target_secret go together".to_owned()),
    };
    Ok(Chap { initiator, target })
}

// Addresses to listen at, and the access state of each. `name` is the key in the file.
fn portals(
    name: &str,
    entries: &[PortalEntry],
) -> Result<(Vec<SocketAddr>, Vec<AnaState>), String> {
    let portals = entries.iter().map(|entry| portal(name, entry)).collect::<Result<Vec<_>, _>>()?;
    Ok(portals.into_iter().unzip())
}

// Parses an address to listen at, and its access state.
fn portal(name: &str, entry: &PortalEntry) -> Result<(SocketAddr, AnaState), String> {
    let (address, ana) = match entry {
        PortalEntry::Address(address) => (address, AnaState::Optimized),
        PortalEntry::Table(PortalTable { address, ana }) => {
            let state = STATES.iter().find(|(name, _)| name == ana).map(|(_, state)| *state);
            let names = || STATES.map(|(name, _)| name).join(", ");
            (address, state.ok_or_else(|| format!("ana {ana:?}: write one of {}", names()))?)
        }
    };
    let address = socket_address(address).map_err(|error| format!("{name}: {error}"))?;
    Ok((address, ana))
}

// Parses an NGUID or UUID: 32 hexadecimal digits, not all 0; hyphens are ignored.
fn identifier(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|number| is_hex && *number > 0)?;
    Some(number.to_be_bytes())
}

// Checks the table of a subsystem.
fn subsystem(table: &SubsystemTable) -> Result<SubsystemPlan, String> {
    let nqn = match (&table.name, &table.nqn) {
        (Some(name), None) => nqn(name).ok_or(
            "a name has letters, digits, '.', '_' and '-', or is an NQN of 223 bytes; take another",
        )?,
        // Any NQN, with or without "nqn." in front.
        (None, Some(nqn)) => Nqn::new(nqn)
            .filter(|nqn| nqn.as_str() != Nqn::DISCOVERY)
            .ok_or("an NQN has 1 to 223 bytes and is not that of discovery; take another")?,
        _ => return Err("give it a name or an nqn, one of them".to_owned()),
    };
    let allowed = match &table.allow {
        Some(names) if names.is_empty() => {
            return Err("allow is empty; leave it out to let anybody connect".to_owned());
        }
        Some(names) => allowed(names)?,
        None => None,
    };
    let (allow, initiators) = allowed.unzip();
    let named = table.name.as_ref().or(table.nqn.as_ref()).map_or("", |name| name);
    let name = table.iqn.clone().unwrap_or_else(|| iqn(named));
    if table.iqn.is_some() && !is_iscsi_name(&name) {
        return Err(format!("iqn {name:?}: it begins with iqn., eui. or naa.; take another"));
    }
    let proofs = proofs(table.chap.as_ref()).map_err(|what| format!("chap: {what}"))?;
    let iscsi = IscsiAccess { name, initiators, chap: proofs.0, chap_of: proofs.1 };
    // A subsystem with CHAP over iSCSI is closed to NVMe/TCP, which has no authentication here.
    let proves_nothing = iscsi.chap.is_none() && iscsi.chap_of.is_empty();
    let allow = match table.nvme.unwrap_or(proves_nothing) {
        true => allow,
        false => Some(BTreeSet::new()),
    };
    let mut namespaces: Vec<NamespacePlan> = Vec::new();
    for NamespaceTable { id, uri: text, nguid, uuid } in &table.namespaces {
        if !is_id(*id) {
            return Err(format!("namespace {id}: identifiers are 1 to 1024; take another"));
        }
        if namespaces.iter().any(|other| other.id == *id) {
            return Err(format!("namespace {id} is there twice; give one another id"));
        }
        let uri = text.parse().map_err(|error| format!("namespace {id}: {error}"))?;
        let number = |name: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => identifier(text).map(Some).ok_or_else(|| {
                format!("namespace {id}: {name} {text:?}: write 32 hexadecimal digits, not all 0")
            }),
        };
        let (nguid, uuid) = (number("nguid", nguid)?, number("uuid", uuid)?);
        namespaces.push(NamespacePlan { id: *id, text: text.clone(), uri, nguid, uuid });
    }
    Ok(SubsystemPlan { nqn, allow, iscsi, namespaces })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: &str =
        "[[subsystem]]\nname = \"disk\"\nnamespaces = [ { id = 1, uri = \"null:\" } ]\n";

    fn refused(text: &str) -> String {
        parse(text).expect_err("it cannot be")
    }

    #[test]
    fn least_is_a_subsystem() {
        let plan = parse(DISK).expect("it is enough");
        assert_eq!(plan.fixed.nvme, ["127.0.0.1:4420".parse().expect("it is one")]);
        assert_eq!((plan.fixed.shards, plan.fixed.metrics), (None, None));
        assert!(plan.subsystems[0].nqn.as_str().starts_with("nqn.2026-11.local.afar:"));
        assert_eq!(plan.subsystems[0].allow, None);
    }

    #[test]
    fn the_example_can_be_served() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/serve/flash.toml");
        let plan = read(Path::new(example)).expect("it is one");
        assert_eq!(plan.subsystems.len(), 2);
    }

    #[test]
    fn everything_can_be_said() {
        let plan = parse(
            "nvme = [\"0.0.0.0:4420\", { address = \"[::1]:4420\", ana = \"inaccessible\" }]\n\
             iscsi = [{ address = \"[::1]:3260\", ana = \"change\" }, \"[::1]:3261\"]\n\
             shards = 2\nbusy_poll = \"50us\"\nzero_copy = \"16KiB\"\n\
             limits = { memory = \"64MiB\", controllers = 9 }\n\
             metrics = \"127.0.0.1:9420\"\nstate = \"/var/lib/afar\"\n\
             [[subsystem]]\nname = \"nqn.2014-08.org:x\"\n\
             allow = [\"nqn.a\", \"nqn.b\"]\nnamespaces = [ { id = 7, uri = \"memory:1MiB\" }, \
             { id = 1, uri = \"null:\" } ]\n[[subsystem]]\nname = \"empty\"\nnamespaces = []\n",
        );
        let plan = plan.expect("it can be");
        assert_eq!((plan.fixed.nvme.len(), plan.fixed.shards), (2, Some(2)));
        assert_eq!(plan.ana, [AnaState::Optimized, AnaState::Inaccessible]);
        assert_eq!(plan.fixed.iscsi.len(), 2);
        assert_eq!(plan.iscsi_ana, [AnaState::Change, AnaState::Optimized]);
        assert_eq!(plan.fixed.busy_poll, Duration::from_us(50));
        assert_eq!(plan.fixed.zero_copy, Some(Bytes::from_kib(16)));
        assert_eq!(
            (plan.fixed.limits.data, plan.fixed.limits.controllers),
            (Bytes::from_mib(64), 9)
        );
        assert_eq!(plan.fixed.state.as_deref(), Some(Path::new("/var/lib/afar")));
        let [first, second] = &plan.subsystems[..] else { panic!("{plan:?}") };
        assert_eq!(first.allow.as_ref().map(BTreeSet::len), Some(2));
        let ids: Vec<_> = first.namespaces.iter().map(|one| (one.id, &*one.text)).collect();
        assert_eq!(ids, [(7, "memory:1MiB"), (1, "null:")]);
        assert!(second.namespaces.is_empty());
    }

    #[test]
    fn disks_keep_the_names_they_had_elsewhere() {
        let plan = parse(
            "[[subsystem]]\nnqn = \"blktests-subsystem-1\"\nnamespaces = [ { id = 1, \
             uri = \"null:\", uuid = \"91fdba0d-f87b-4c25-b80f-db7be1418b9e\" } ]\n",
        );
        let plan = plan.expect("it can be");
        let [subsystem] = &plan.subsystems[..] else { panic!("{plan:?}") };
        assert_eq!(subsystem.nqn.as_str(), "blktests-subsystem-1");
        let uuid = 0x91fd_ba0d_f87b_4c25_b80f_db7b_e141_8b9e_u128.to_be_bytes();
        assert_eq!(
            (subsystem.namespaces[0].uuid, subsystem.namespaces[0].nguid),
            (Some(uuid), None)
        );
    }

    #[test]
    fn what_must_be_proved_is_not_to_be_had_without() {
        let with = |lines: &str| {
            parse(&format!("{DISK}{lines}\n")).map(|mut plan| plan.subsystems.remove(0))
        };
        let all = "chap = { user = \"me\", secret = \"sesame, open up\" }";
        let each =
            "chap = [{ initiator = \"iqn.a:b\", user = \"me\", secret = \"sesame, open up\" }]";
        assert_eq!(with("").expect("it can be").allow, None);
        for chap in [all, each] {
            let closed = with(chap).expect("it can be");
            assert_eq!(closed.allow, Some(BTreeSet::new()), "nobody over NVMe/TCP");
            let open = with(&format!("{chap}\nnvme = true")).expect("it can be");
            assert_eq!(open.allow, None, "the file says so");
        }
        let each = with(each).expect("it can be").iscsi;
        assert!(each.chap_for("iqn.a:b").is_some_and(|chap| chap.is_some()));
        assert!(each.chap_for("iqn.a:c").is_none(), "it has nothing to prove itself with");
        assert_eq!(with("nvme = false").expect("it can be").allow, Some(BTreeSet::new()));
        for (wrong, reason) in [
            ("chap = []", "the list is empty"),
            (
                "chap = [{ initiator = \"b\", user = \"me\", secret = \"sesame, open up\" }]",
                "begins",
            ),
            (
                "chap = [{ initiator = \"iqn.a:b\", user = \"me\", secret = \"short\" }]",
                "12 to 255",
            ),
        ] {
            let error = with(wrong).expect_err("it cannot be");
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn one_identity_is_had_once() {
        let uuid = "uuid = \"91fdba0d-f87b-4c25-b80f-db7be1418b9e\"";
        let disk = |name: &str| {
            let namespaces = format!("[ {{ id = 1, uri = \"null:\", {uuid} }} ]");
            format!("[[subsystem]]\nname = \"{name}\"\nnamespaces = {namespaces}\n")
        };
        assert!(parse(&disk("a")).is_ok());
        let twice = refused(&format!("{}{}", disk("a"), disk("b")));
        assert!(twice.contains("another has the same uuid; give each its own"), "{twice}");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let unknown = refused(&format!("shard = 2\n{DISK}"));
        assert!(unknown.starts_with("line 1: unknown field `shard`, expected one of"), "{unknown}");
        assert!(unknown.contains("`shards`"), "{unknown}");
        let unknown =
            refused("[[subsystem]]\nname = \"a\"\nnamespaces = [ { id = 1, url = \"\" } ]");
        assert!(unknown.contains("unknown field `url`, expected one of `id`, `uri`"), "{unknown}");
        let of = |namespaces: &str| {
            refused(&format!("[[subsystem]]\nname = \"a\"\nnamespaces = [ {namespaces} ]"))
        };
        let twice = of("{ id = 1, uri = \"null:\" }, { id = 1, uri = \"null:\" }");
        assert_eq!(twice, "subsystem \"a\": namespace 1 is there twice; give one another id");
        for id in [0, 1025] {
            assert!(of(&format!("{{ id = {id}, uri = \"null:\" }}")).contains("1 to 1024"));
        }
        assert!(of("{ id = 1, uri = \"disk:x\" }").contains("no device is called"));
        let uuid = of("{ id = 1, uri = \"null:\", uuid = \"91fdba0d\" }");
        assert!(uuid.contains("uuid \"91fdba0d\": write 32 hexadecimal"), "{uuid}");
        assert!(refused("[[subsystem]]\nnamespaces = []").contains("a name or an nqn"));
        assert!(of("{ id = -1, uri = \"null:\" }").starts_with("line 3: "));
        assert!(refused(&format!("{DISK}{DISK}")).contains("is there twice"));
        assert!(refused("shards = 2").contains("no [[subsystem]]"));
        for (line, reason) in [
            ("shards = 0", "shards 0: 1 to 64"),
            ("shards = 65", "shards 65: 1 to 64"),
            ("busy_poll = \"2ms\"", "at most 1ms"),
            ("busy_poll = \"soon\"", "busy_poll: "),
            ("nvme = []", "nvme is empty"),
            ("nvme = [\"here\"]", "nvme: \"here\" is no place to listen"),
            ("metrics = \"here\"", "metrics: \"here\" is no place"),
            (
                "nvme = [{ address = \"0.0.0.0:1\", ana = \"good\" }]",
                "write one of optimized, non-",
            ),
            ("nvme = [{ address = \"0.0.0.0:1\" }]", "expected \"ADDRESS:PORT\" or { address ="),
            ("limits = { memory = \"1KiB\" }", "limit memory \"1KiB\": "),
            ("limits = { queues = 1 }", "there is no limit \"queues\""),
            ("shards = ", "line 1: "),
        ] {
            let error = refused(&format!("{line}\n{DISK}"));
            assert!(error.contains(reason), "{line}: {error}");
        }
        let nobody = refused(&DISK.replace("namespaces", "allow = []\nnamespaces"));
        assert!(nobody.contains("allow is empty"), "{nobody}");
        let name = refused(&DISK.replace("disk", "a b"));
        assert!(name.starts_with("subsystem \"a b\": a name has letters"), "{name}");
    }
}
