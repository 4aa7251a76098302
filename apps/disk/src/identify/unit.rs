//! `afar identify` over iSCSI: inquiry data, capacity and limits of logical units.

use std::fmt::Write;

use host::initiator::{IdentifiedUnit, IscsiUri, identify as ask};
use measure::Bytes;
use scsi::iscsi::Digests;
use serde_json::{Value, json};

use super::controller::hex;
use super::error::IdentifyError;
use client::InitiatorFlags;
use client::{InitiatorError, Unserved, initiator};

/// Identifies the logical units that a URI names; returns a table, and JSON.
///
/// # Errors
/// When the URI or a flag is invalid, or the target cannot be reached.
pub(super) fn identify_unit(
    uri: &str,
    flags: &InitiatorFlags,
) -> Result<[String; 2], IdentifyError> {
    let parsed: IscsiUri = uri.parse().map_err(InitiatorError::from)?;
    let config = initiator(flags, &parsed, Digests::default())?;
    let found = ask(&parsed, &config).map_err(|source| {
        match Unserved::of(&source, uri, &parsed.address) {
            Some(unserved) => unserved.into(),
            None => IdentifyError::Controller { uri: uri.to_owned(), source },
        }
    })?;
    let record = format!("{:#}\n", to_json(&parsed.target, &found));
    Ok([to_table(&parsed.target, &found), record])
}

// A limit in blocks and bytes; 0 means that none is reported.
fn limit(blocks: u64, block_bytes: u32) -> String {
    match blocks {
        0 => "not said".to_owned(),
        blocks => {
            let bytes = Bytes::new(blocks.saturating_mul(block_bytes.into()));
            format!("{blocks} blocks, {bytes}")
        }
    }
}

fn to_table(target: &str, found: &[IdentifiedUnit]) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _infallible = writeln!(text, "{name:<22}{value}");
    };
    row("target", target);
    for unit in found {
        row("\nlun", &format!(" {}", unit.lun.number()));
        for (name, value) in rows(unit) {
            row(name, &value);
        }
    }
    text
}

// The table's rows of a logical unit.
fn rows(unit: &IdentifiedUnit) -> Vec<(&'static str, String)> {
    let IdentifiedUnit { inquiry, capacity, limits, provisioning, ids, .. } = unit;
    let block = capacity.block_bytes;
    let bytes = Bytes::new(capacity.block_count.saturating_mul(block.into()));
    let mut rows = vec![
        ("vendor", inquiry.vendor.clone()),
        ("product", inquiry.product.clone()),
        ("revision", inquiry.revision.clone()),
        ("version", format!("{:#04x}", inquiry.version)),
        ("capacity", format!("{bytes}: {} blocks of {block} B", capacity.block_count)),
        ("physical block", Bytes::new(u64::from(block) << capacity.physical_exponent).to_string()),
    ];
    rows.extend(unit.serial.clone().map(|serial| ("serial", serial)));
    rows.extend(ids.eui_long.map(|id| ("eui-64 based", hex(&id))));
    rows.extend(ids.eui.map(|id| ("eui-64", hex(&id))));
    rows.extend(ids.naa_long.map(|id| ("naa", hex(&id))));
    rows.extend(ids.naa.map(|id| ("naa", hex(&id))));
    rows.extend(ids.vendor.clone().map(|id| ("t10 vendor", id)));
    rows.push(("transfer length", limit(limits.transfer_blocks.into(), block)));
    rows.push(("unmap", {
        let most = limit(limits.unmap_blocks.into(), block);
        if provisioning.has_unmap { most } else { "no".to_owned() }
    }));
    rows.push(("write same", {
        let most = limit(limits.write_same_blocks, block);
        if unit.has_write_same { most } else { "no".to_owned() }
    }));
    rows.push(("compare and write", limit(limits.compare_blocks.into(), block)));
    if let Some(mode) = unit.mode {
        let cache = match mode.has_write_cache {
            Some(true) => "volatile",
            Some(false) => "none that is volatile",
            None => "not said",
        };
        rows.push(("write cache", cache.to_owned()));
        rows.push(("fua", if mode.has_forced { "yes" } else { "no" }.to_owned()));
    }
    let attributes = [
        (unit.mode.is_some_and(|mode| mode.is_write_protected), "write-protected"),
        (capacity.is_thin, "thin"),
        (unit.reads_zeros(), "unmapped blocks read as zeros"),
    ];
    let attributes = attributes.into_iter().filter(|(is, _)| *is).map(|(_, name)| name);
    let attributes: Vec<_> = attributes.collect();
    if !attributes.is_empty() {
        rows.push(("is", attributes.join(", ")));
    }
    rows
}

fn to_json(target: &str, found: &[IdentifiedUnit]) -> Value {
    let units = found.iter().map(|unit| {
        let IdentifiedUnit { inquiry, capacity, limits, provisioning, ids, mode, .. } = unit;
        json!({
            "lun": unit.lun.number(),
            "vendor": inquiry.vendor,
            "product": inquiry.product,
            "revision": inquiry.revision,
            "version": inquiry.version,
            "block_count": capacity.block_count,
            "block_bytes": capacity.block_bytes,
            "physical_exponent": capacity.physical_exponent,
            "lbpme": capacity.is_thin,
            "lbprz": unit.reads_zeros(),
            "serial": unit.serial,
            "eui64": ids.eui.map(|id| hex(&id)),
            "eui64_based": ids.eui_long.map(|id| hex(&id)),
            "naa": ids.naa_long.map(|id| hex(&id)).or_else(|| ids.naa.map(|id| hex(&id))),
            "t10_vendor": ids.vendor,
            "transfer_blocks": limits.transfer_blocks,
            "optimal_blocks": limits.optimal_blocks,
            "unmap_blocks": limits.unmap_blocks,
            "unmap_ranges": limits.unmap_ranges,
            "write_same_blocks": limits.write_same_blocks,
            "compare_blocks": limits.compare_blocks,
            "lbpu": provisioning.has_unmap,
            "lbpws": provisioning.has_write_same,
            "write_same": unit.has_write_same,
            "wce": mode.and_then(|mode| mode.has_write_cache),
            "dpofua": mode.map(|mode| mode.has_forced),
            "wp": mode.map(|mode| mode.is_write_protected),
        })
    });
    json!({ "target": target, "units": units.collect::<Vec<_>>() })
}
