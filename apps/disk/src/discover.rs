//! `afar discover`: lists the subsystems or iSCSI targets at an address.

pub(crate) mod flags;

use std::fmt::Write;
use std::process::ExitCode;

use console::{Class, Classed, Failure, Output};
use host::initiator::{IscsiUri, discover as ask_targets};
use host::{HostConfig, HostError, discover as ask};
use nvme::log::DiscoveryPage;
use scsi::iscsi::{Digests, TargetRecord};
use serde_json::{Value, json};

use crate::discover::flags::DiscoverFlags;
use crate::serve::{PortError, with_port};
use client::{HostNameError, InitiatorError, host_name, initiator};

/// Why discovery fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    #[error(transparent)]
    Host(#[from] HostNameError),
    #[error(transparent)]
    Initiator(#[from] InitiatorError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(
        "{0}: this names a subsystem, not where to ask for those there are; write HOST[:PORT], and \
         ask for one by afar identify nvme+tcp://HOST/{0}"
    )]
    Subsystem(String),
    #[error("{address}: {source}{}", source.remedy())]
    Target { address: String, source: HostError },
}

impl Classed for DiscoverError {
    fn class(&self) -> Class {
        match self {
            Self::Host(_) | Self::Initiator(_) | Self::Port(_) | Self::Subsystem(_) => Class::Usage,
            Self::Target { .. } => Class::Failed,
        }
    }
}

/// NVMe/TCP's port of I/O controllers (TCP 3.1.1); afar's targets serve discovery at it, too.
const PORT: u16 = 4420;
/// iSCSI's port (RFC 7143 4.2.7.4).
const ISCSI_PORT: u16 = 3260;
const ISCSI: &str = "iscsi://";

/// Runs `afar discover`.
///
/// # Errors
/// When a flag is invalid, or the target cannot be reached.
pub fn discover(flags: &DiscoverFlags) -> Result<ExitCode, Failure> {
    let [json, csv] = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let outputs = [json?, csv?];
    if let Some(portal) = flags.address.strip_prefix(ISCSI) {
        return discover_targets(portal, flags, outputs);
    }
    if flags.address.starts_with("nqn.") {
        return Err(DiscoverError::Subsystem(flags.address.clone()).into());
    }
    flags.initiator.fit(&[&flags.address]).map_err(DiscoverError::from)?;
    let host = host_name(&flags.host).map_err(DiscoverError::from)?;
    let address = with_port(&flags.address, PORT).map_err(DiscoverError::from)?;
    let page = ask(&address, &HostConfig::named(host))
        .map_err(|source| DiscoverError::Target { address: address.clone(), source })?;
    let found = to_json(&page);
    let ([json, csv], as_csv) = (outputs, || {
        let leading = ["subsystem", "address", "port", "transport"];
        console::csv_of(&found["entries"], &leading)
    });
    let as_json = || format!("{found:#}\n");
    console::answer(|| to_table(&page), vec![(json, &as_json), (csv, &as_csv)])?;
    Ok(ExitCode::SUCCESS)
}

// Lists iSCSI targets at a portal (SendTargets).
fn discover_targets(
    portal: &str,
    flags: &DiscoverFlags,
    [json, csv]: [Option<Output>; 2],
) -> Result<ExitCode, Failure> {
    let (user, address) = match portal.trim_end_matches('/').rsplit_once('@') {
        Some((user, address)) => (Some(user.to_owned()), address),
        None => (None, portal.trim_end_matches('/')),
    };
    flags.initiator.fit(&[&flags.address]).map_err(DiscoverError::from)?;
    let portal =
        IscsiUri::portal(user, with_port(address, ISCSI_PORT).map_err(DiscoverError::from)?);
    let config = initiator(&flags.initiator, &portal, Digests::default());
    let config = config.map_err(DiscoverError::from)?;
    let address = portal.address.clone();
    let targets = ask_targets(&portal, &config)
        .map_err(|source| DiscoverError::Target { address, source })?;
    let found = targets_to_json(&targets);
    let as_json = || format!("{found:#}\n");
    let as_csv = || console::csv_of(&found["targets"], &["target", "address", "group"]);
    console::answer(|| targets_to_table(&targets), vec![(json, &as_json), (csv, &as_csv)])?;
    Ok(ExitCode::SUCCESS)
}

// Splits TargetAddress into an address and its portal group tag (RFC 7143 13.8).
fn parts(address: &str) -> (&str, Option<&str>) {
    address.rsplit_once(',').map_or((address, None), |(place, group)| (place, Some(group)))
}

fn targets_to_json(targets: &[TargetRecord]) -> Value {
    let targets: Vec<_> = targets
        .iter()
        .map(|target| {
            let portals = target.addresses.iter().map(|address| {
                let (address, group) = parts(address);
                json!({ "address": address, "group": group })
            });
            json!({ "target": target.name, "portals": portals.collect::<Vec<_>>() })
        })
        .collect();
    json!({ "targets": targets })
}

fn targets_to_table(targets: &[TargetRecord]) -> String {
    let wide = targets.iter().map(|target| target.name.chars().count()).max().unwrap_or(0).max(6);
    let mut text = String::new();
    let mut row = |name: &str, address: &str, group: &str| {
        let _infallible = writeln!(text, "{name:<wide$}  {group:<5}  {address}");
    };
    row("TARGET", "ADDRESS", "GROUP");
    for target in targets {
        for address in &target.addresses {
            let (place, group) = parts(address);
            row(&target.name, place, group.unwrap_or("-"));
        }
        if target.addresses.is_empty() {
            // Without an address, the target is at the portal that was asked.
            row(&target.name, "-", "-");
        }
    }
    text
}

// The discovery log page as JSON.
fn to_json(page: &DiscoveryPage) -> Value {
    let entries: Vec<_> = page
        .entries
        .iter()
        .map(|entry| {
            json!({
                "subsystem": entry.subsystem,
                "kind": entry.kind_name(),
                "transport": entry.transport_name(),
                "address": entry.address,
                "port": entry.service,
            })
        })
        .collect();
    json!({
        "generation": page.generation,
        "record_count": page.record_count,
        "entries": entries,
    })
}

// The subsystems of a discovery log page as a table, without this discovery controller.
fn to_table(page: &DiscoveryPage) -> String {
    let name = |text: &str| text.chars().count();
    let others = || page.entries.iter().filter(|entry| !entry.is_this_discovery());
    let names = others().map(|entry| name(&entry.subsystem));
    let addresses = others().map(|entry| name(&entry.address));
    let wide = [names.max().unwrap_or(0).max(9), addresses.max().unwrap_or(0).max(7)];
    let mut text = String::new();
    let mut row = |cells: [&str; 4]| {
        let [subsystem, address, port, transport] = cells;
        let [first, second] = wide;
        let _infallible =
            writeln!(text, "{subsystem:<first$}  {address:<second$}  {port:<5}  {transport}");
    };
    row(["SUBSYSTEM", "ADDRESS", "PORT", "TRANSPORT"]);
    for entry in others() {
        row([&entry.subsystem, &entry.address, &entry.service, entry.transport_name()]);
    }
    let told = page.entries.len() as u64;
    if told < page.record_count {
        let _infallible = writeln!(text, "and {} more", page.record_count - told);
    }
    text
}

#[cfg(test)]
mod tests {
    use nvme::Nqn;
    use nvme::log::FoundEntry;

    use super::*;

    #[test]
    fn tables_have_columns_and_json_has_names() {
        let entry = FoundEntry {
            transport: 3,
            kind: 2,
            port: 1,
            subsystem: "nqn.2026-11.local.afar:disk".to_owned(),
            address: "10.0.0.2".to_owned(),
            service: "4420".to_owned(),
        };
        let own = FoundEntry { kind: 3, subsystem: Nqn::DISCOVERY.to_owned(), ..entry.clone() };
        let page = DiscoveryPage { generation: 7, record_count: 4, entries: vec![entry, own] };
        assert_eq!(
            to_table(&page),
            "SUBSYSTEM                    ADDRESS   PORT   TRANSPORT\n\
             nqn.2026-11.local.afar:disk  10.0.0.2  4420   tcp\n\
             and 2 more\n"
        );
        let json: Value = to_json(&page);
        assert_eq!(json["generation"], 7);
        assert_eq!(json["entries"][0]["kind"], "nvm subsystem");
        assert_eq!(json["entries"][0]["port"], "4420");
        assert_eq!(json["entries"][1]["kind"], "this discovery subsystem");
    }

    #[test]
    fn targets_have_columns_and_names() {
        let addresses = vec!["10.0.0.2:3260,1".to_owned(), "[::1]:3260,2".to_owned()];
        let one = TargetRecord { name: "iqn.x:disk".to_owned(), addresses };
        let other = TargetRecord { name: "iqn.x:d".to_owned(), addresses: Vec::new() };
        let both = [one, other];
        assert_eq!(
            targets_to_table(&both),
            "TARGET      GROUP  ADDRESS\n\
             iqn.x:disk  1      10.0.0.2:3260\n\
             iqn.x:disk  2      [::1]:3260\n\
             iqn.x:d     -      -\n"
        );
        let json: Value = targets_to_json(&both);
        assert_eq!(json["targets"][0]["portals"][1]["address"], "[::1]:3260");
        assert_eq!(json["targets"][0]["portals"][1]["group"], "2");
    }

    #[test]
    fn ports_are_added_where_there_is_none() {
        for (text, whole) in [
            ("disk", "disk:4420"),
            ("disk:1", "disk:1"),
            ("10.0.0.2", "10.0.0.2:4420"),
            ("::1", "[::1]:4420"),
            ("[::1]", "[::1]:4420"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(with_port(text, PORT).expect("a port"), whole);
        }
    }
}
