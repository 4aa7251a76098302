//! The identity of a run at a blade, and how it keeps other runs out.
//!
//! DESIGN NOTE
//!
//! * All runs have one name (NQN), for access lists. Each blade of a run has a random host
//!   identifier of its own: the epoch of the run. Pages of an earlier run are another host's.
//! * Of memory that `afar serve` leases, each host sees a disk of its own (a view), which says that
//!   it is private: runs neither see nor overwrite one another's pages there, and nothing is
//!   reserved.
//! * A run reserves any other namespace with exclusive access for its host. Others can then neither
//!   read nor write it, over any path, until the run releases it.
//! * A run that was killed releases nothing, and no NVMe target says whether the host that holds a
//!   reservation is still there: silence may be a network that was cut, on the other side of which
//!   the run goes on. So it is preempted only on request: `--far-take` does that, and the run that
//!   had it ends with an error should it still run.
//! * Where reservations are not supported, the run warns that nothing keeps others out.

use host::{HostConfig, HostError, NvmeUri, Reservation, Taken};
use nvme::{Nqn, ReservationHolder};

/// Why a run could not reserve a blade.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    #[error("--far {uri}: {source}")]
    Connect { uri: String, source: HostError },
    #[error(
        "--far {uri}: another run has it (host {host}); wait for its end, or serve memory of which \
         each run has a part of its own (afar serve blade=lease:ttl=60s:memory:64GiB); if that run \
         was killed, --far-take takes it"
    )]
    Held { uri: String, host: String },
}

/// The host NQN of all runs.
const NAME: &str = "nqn.2026-11.local.afar:run";
const KEEP_ALIVE_MS: u32 = 10_000;

/// A host with a new random identifier.
pub(super) fn host() -> HostConfig {
    let name = Nqn::new(NAME).expect("the name is short");
    let mut host_id = [0; 16];
    sys::random::fill(&mut host_id);
    HostConfig { keep_alive_ms: KEEP_ALIVE_MS, host_id, ..HostConfig::named(name) }
}

/// Reserves a blade; with `takes`, also from a run that holds it. Returns the reservation, if one
/// is needed, and a warning if none is possible.
pub(super) fn hold(
    paths: &[(&NvmeUri, &str)],
    host: &HostConfig,
    uri: &str,
    takes: bool,
) -> Result<(Option<Reservation>, Option<String>), HoldError> {
    let [high, low] = [&host.host_id[..8], &host.host_id[8..]].map(number);
    // Not 0, which is no key.
    let key = (high ^ low).max(1);
    // Any path will do: the reservation is the host's.
    let mut taken = Err(HostError::Protocol { operation: "reserve", reason: "no path".to_owned() });
    for (target, _) in paths {
        taken = Reservation::take(target, host, key, takes);
        if taken.is_ok() {
            break;
        }
    }
    match taken.map_err(|source| HoldError::Connect { uri: uri.to_owned(), source })? {
        Taken::Alone(reservation) => Ok((Some(reservation), None)),
        Taken::Private => Ok((None, None)),
        Taken::NotOffered => Ok((
            None,
            Some(format!(
                "--far {uri} offers no reservation: another run or host that writes to it would \
                 end this one"
            )),
        )),
        Taken::Held(holder) => Err(held(uri, &holder)),
    }
}

// The big-endian number in `bytes`.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

// The error for a blade that another host holds.
fn held(uri: &str, holder: &ReservationHolder) -> HoldError {
    let host = format!("{:032x}", u128::from_be_bytes(holder.host_id));
    HoldError::Held { uri: uri.to_owned(), host }
}
