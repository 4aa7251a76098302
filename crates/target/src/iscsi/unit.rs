//! A namespace as a SCSI logical unit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scsi::{BlockLimits, LogFigures, Lun, UnitData};

use backend::Geometry;

use super::super::meter::{Kind, KindCounters};
use super::super::subsystem::{Namespace, find};

/// Ranges and blocks of one UNMAP at most: as many as initiators expect.
const UNMAP_RANGES: u32 = 256;
const UNMAP_BLOCKS: u32 = 1 << 20;
/// Bytes that one WRITE SAME may write.
const WRITE_SAME_BYTES: u64 = 16 << 20;

/// Bytes that one command may read or write: as much memory as the pool lends at once.
const TRANSFER_BYTES: u32 = 8 << 20;

/// Data of the logical unit, for a target with `ports` ports.
pub(super) fn data(namespace: &Namespace, ports: u16) -> UnitData {
    let geometry = namespace.backend.geometry();
    let blocks = |bytes: u64| u32::try_from(bytes >> geometry.block_shift).unwrap_or(u32::MAX);
    let few = |bytes: u32| blocks(u64::from(bytes)).max(1);
    UnitData {
        block_shift: geometry.block_shift,
        block_count: geometry.block_count,
        physical_shift: geometry.block_shift,
        id: namespace.nguid,
        vendor: *b"afar    ",
        product: *b"flash           ",
        revision: revision(env!("CARGO_PKG_VERSION")),
        is_thin: true,
        has_write_cache: true,
        is_read_only: geometry.is_read_only,
        limits: BlockLimits {
            transfer_blocks: few(TRANSFER_BYTES),
            optimal_blocks: few(geometry.optimal_bytes),
            unmap_blocks: UNMAP_BLOCKS,
            unmap_ranges: UNMAP_RANGES,
            write_same_blocks: blocks(WRITE_SAME_BYTES),
            compare_blocks: 255,
        },
        atomic_blocks: atomic_blocks(&geometry),
        ports,
        opening: namespace.opening,
    }
}

// How many blocks the device writes atomically; 0 if that is one block only.
fn atomic_blocks(geometry: &Geometry) -> u16 {
    match geometry.atomic_bytes >> geometry.block_shift {
        0 | 1 => 0,
        blocks => u16::try_from(blocks).unwrap_or(u16::MAX),
    }
}

// The product revision: as many numbers of a version as fit into four bytes.
fn revision(version: &str) -> [u8; 4] {
    let mut revision = *b"    ";
    let ends = version.match_indices('.').map(|(at, _)| at).chain([version.len()]);
    let fits = ends.take_while(|end| *end <= revision.len()).last().unwrap_or(0);
    revision[..fits].copy_from_slice(&version.as_bytes()[..fits]);
    revision
}

/// Statistics of all hosts and initiators, and whether the device has lost data, for LOG SENSE.
pub(super) fn figures(namespace: &Namespace) -> LogFigures {
    let all = |of: &dyn Fn(&KindCounters) -> u64| {
        let sum = |kind| namespace.counters().map(|(_, shard)| of(shard.of(kind))).sum();
        [Kind::Read, Kind::Write].map(sum)
    };
    let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let shift = namespace.backend.geometry().block_shift;
    LogFigures {
        commands: all(&|kind| value(&kind.commands)),
        blocks: all(&|kind| value(&kind.bytes)).map(|bytes| bytes >> shift),
        times_us: all(&|kind| kind.latency.sum_ns()).map(|ns| ns / 1000),
        has_lost: namespace.backend.lost().is_some(),
    }
}

/// The namespace of a LUN field; `None` if there is none.
pub(super) fn namespace_of(units: &[Arc<Namespace>], field: [u8; 8]) -> Option<&Arc<Namespace>> {
    let lun = Lun::read(field)?;
    find(units, u32::from(lun.number()) + 1)
}

/// The LUN of a namespace.
pub(super) fn lun_of(namespace: &Namespace) -> Option<Lun> {
    Lun::new(u16::try_from(namespace.id.checked_sub(1)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_whole_numbers() {
        for (version, expected) in [
            ("0.1.0", b"0.1 "),
            ("0.10.3", b"0.10"),
            ("12.3.4", b"12.3"),
            ("12.34.5", b"12  "),
            ("1.2", b"1.2 "),
        ] {
            assert_eq!(revision(version), *expected, "{version}");
        }
    }
}
