//! `afar identify` over NVMe/TCP: identify data of a controller and its namespaces, with the names
//! of nvme(1).

use std::fmt::Write;

use host::{HostConfig, Identified, IdentifiedNamespace, NvmeUri, identify as ask};
use measure::Bytes;
use nvme::FoundController;
use serde_json::{Value, json};

use client::{Unserved, host_name};

use super::error::IdentifyError;

/// Names of bits, the lowest first; those without a name are left out.
type Bits = [(u32, &'static str)];

/// Bits of CMIC, OAES and ONCS (Base 5.1.13.2.1).
const SHARING: &Bits = &[(0, "several ports"), (1, "several controllers"), (3, "access states")];
const EVENTS: &Bits = &[(8, "namespaces"), (11, "access states"), (31, "discovery")];
const COMMANDS: &Bits = &[
    (0, "compare"),
    (1, "write-uncorrectable"),
    (2, "dataset-management"),
    (3, "write-zeroes"),
    (5, "reservations"),
    (6, "timestamp"),
    (7, "verify"),
    (8, "copy"),
];

/// Identifies a controller and its namespaces; returns a table, and JSON.
///
/// # Errors
/// When the URI or the host's name is invalid, or the controller cannot be reached.
pub(super) fn identify(uri: &str, host: &str) -> Result<[String; 2], IdentifyError> {
    let parsed: NvmeUri = uri.parse()?;
    let host = host_name(host)?;
    let found = ask(&parsed, &HostConfig::named(host)).map_err(|source| {
        match Unserved::of(&source, uri, &parsed.address) {
            Some(unserved) => unserved.into(),
            None => IdentifyError::Controller { uri: uri.to_owned(), source },
        }
    })?;
    Ok([to_table(&found), format!("{:#}\n", to_json(&found))])
}

// The number, and the names of its bits that are set.
fn names(bits: u32, of: &Bits) -> String {
    let set = of.iter().filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, name)| *name);
    let set: Vec<_> = set.collect();
    if set.is_empty() { format!("{bits:#x}") } else { format!("{bits:#x}: {}", set.join(", ")) }
}

// MAJOR.MINOR.TERTIARY of VER.
fn version(of: u32) -> String {
    format!("{}.{}.{}", of >> 16, of >> 8 & 0xff, of & 0xff)
}

// Most bytes of a command (MDTS, in pages of 4 KiB); `None` if there is no limit.
fn transfer_bytes(found: &FoundController) -> Option<Bytes> {
    let pages = (found.transfer_shift > 0).then_some(u32::from(found.transfer_shift))?;
    4096_u64.checked_shl(pages).map(Bytes::new)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn uuid(bytes: &[u8; 16]) -> String {
    let text = hex(bytes);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

// The text of an identifier; `None` if it is all zeros, which means there is none.
fn known<const N: usize>(id: &[u8; N], text: impl Fn(&[u8; N]) -> String) -> Option<String> {
    (*id != [0; N]).then(|| text(id))
}

fn to_table(found: &Identified) -> String {
    let of = &found.controller;
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        let _infallible = writeln!(text, "{name:<11}{value}");
    };
    row("mn", of.model.clone());
    row("sn", of.serial.clone());
    row("fr", of.firmware.clone());
    row("subnqn", of.subsystem.clone());
    row("cntlid", of.instance.controller.to_string());
    row("ver", version(of.version));
    row(
        "mdts",
        match transfer_bytes(of) {
            Some(bytes) => format!("{}: {bytes} in a command", of.transfer_shift),
            None => format!("{}: any size", of.transfer_shift),
        },
    );
    row("ioccsz", format!("{} of data in a capsule", Bytes::new(of.capsule_bytes.into())));
    row("maxcmd", of.commands_max.to_string());
    row("nn", of.namespaces_max.to_string());
    row("cmic", names(of.sharing.into(), SHARING));
    row("oaes", names(of.events, EVENTS));
    row("oncs", names(of.optional_commands.into(), COMMANDS));
    let cache = if of.has_volatile_cache() { "volatile" } else { "none that is volatile" };
    row("vwc", format!("{:#x}: {cache}", of.volatile_cache));
    row(
        "kas",
        format!("{}: steps of {} ms", of.keep_alive_steps, 100 * u32::from(of.keep_alive_steps)),
    );
    row("cqt", format!("{} ms", of.quiesce_ms));
    row("ccrl", of.resets_max.to_string());
    row(
        "ana",
        of.ana.map_or_else(
            || "not reported".to_owned(),
            |ana| {
                let (count, seconds) = (ana.group_count, ana.transition_s);
                format!("{:#x}: groups {count}, a change takes up to {seconds} s", ana.capabilities)
            },
        ),
    );
    for namespace in &found.namespaces {
        row("\nnsid", format!(" {}", namespace.id));
        for (name, value) in rows(namespace) {
            row(name, value);
        }
    }
    text
}

// The table's rows of a namespace.
fn rows(namespace: &IdentifiedNamespace) -> Vec<(&'static str, String)> {
    let of = &namespace.found;
    let bytes = |blocks: u64| {
        let bytes = u128::from(blocks) << of.block_shift;
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    };
    let block_bytes = Bytes::new(1 << of.block_shift.min(63));
    let mut rows = vec![
        ("nsze", format!("{}: {} blocks of {block_bytes}", bytes(of.block_count), of.block_count)),
        ("ncap", bytes(of.capacity_blocks).to_string()),
        ("nuse", bytes(of.used_blocks).to_string()),
    ];
    let ids = [
        ("nguid", known(&of.ids.nguid, |id| hex(id))),
        ("eui64", known(&of.ids.eui64, |id| hex(id))),
        ("uuid", known(&of.ids.uuid, uuid)),
    ];
    rows.extend(ids.into_iter().filter_map(|(name, id)| Some((name, id?))));
    if let Some(state) = namespace.state {
        rows.push(("ana", format!("{}, in group {}", state.name(), of.ana_group)));
    }
    let attributes = [
        (of.is_shared, "shared"),
        (of.is_write_protected, "write-protected"),
        (of.reads_zeros(), "deallocated blocks read as zeros"),
        (of.reservation_kinds != 0, "reservations"),
    ];
    let attributes = attributes.into_iter().filter(|(is, _)| *is).map(|(_, name)| name);
    let attributes: Vec<_> = attributes.collect();
    if !attributes.is_empty() {
        rows.push(("is", attributes.join(", ")));
    }
    rows
}

// The identify data as JSON, with nvme-cli's names.
fn to_json(found: &Identified) -> Value {
    let of = &found.controller;
    let namespaces = found.namespaces.iter().map(|IdentifiedNamespace { id, found, state }| {
        json!({
            "nsid": id,
            "nsze": found.block_count,
            "ncap": found.capacity_blocks,
            "nuse": found.used_blocks,
            "lbads": found.block_shift,
            "ms": found.metadata_bytes,
            "nmic": u8::from(found.is_shared),
            "rescap": found.reservation_kinds,
            "dlfeat": found.deallocation,
            "nsattr": u8::from(found.is_write_protected),
            "anagrpid": found.ana_group,
            "nguid": known(&found.ids.nguid, |id| hex(id)),
            "eui64": known(&found.ids.eui64, |id| hex(id)),
            "uuid": known(&found.ids.uuid, uuid),
            "ana_state": state.map(|state| state.name()),
        })
    });
    json!({
        "mn": of.model,
        "sn": of.serial,
        "fr": of.firmware,
        "subnqn": of.subsystem,
        "cntlid": of.instance.controller,
        "cntrltype": of.kind,
        "ver": of.version,
        "cmic": of.sharing,
        "mdts": of.transfer_shift,
        "oaes": of.events,
        "kas": of.keep_alive_steps,
        "cqt": of.quiesce_ms,
        "ccrl": of.resets_max,
        "maxcmd": of.commands_max,
        "nn": of.namespaces_max,
        "oncs": of.optional_commands,
        "vwc": of.volatile_cache,
        "anatt": of.ana.map(|ana| ana.transition_s),
        "anacap": of.ana.map(|ana| ana.capabilities),
        "nanagrpid": of.ana.map(|ana| ana.group_count),
        "ioccsz": of.capsule_bytes / 16 + 4,
        "namespaces": namespaces.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_names() {
        assert_eq!(names(0, COMMANDS), "0x0");
        assert_eq!(names(0x2c, COMMANDS), "0x2c: dataset-management, write-zeroes, reservations");
        assert_eq!(names(0x8000_0000, EVENTS), "0x80000000: discovery");
        assert_eq!(version(0x0002_0100), "2.1.0");
    }

    #[test]
    fn identifiers_are_written_as_elsewhere() {
        let id = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\0\x11\x22\x33\x44\x55\x66\x77";
        assert_eq!(known(&id, uuid).as_deref(), Some("01234567-89ab-cdef-0011-223344556677"));
        assert_eq!(known(&[0; 16], uuid), None);
    }
}
