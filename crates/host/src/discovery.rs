//! The discovery log page of the discovery controller at an address.

use nvme::log::{DISCOVERY_BYTES, DiscoveryPage, read_discovery};
use nvme::{Admin, Command, Data, Nqn, Properties, Transfer};
use sys::world::Machine;

use super::fabrics::{ADMIN_ENTRIES, HostConfig, connect_queue, set_property, submission};
use super::wire::Wire;
use super::{HostError, NvmeUri};

/// Bytes of the page's header, and of each of its entries.
const ENTRY_BYTES: u64 = DISCOVERY_BYTES as u64;
/// Bytes of a log page that one command reads; every controller supports as many.
const PART_BYTES: u32 = 4096;
/// Entries that are read at most.
const ENTRIES_MOST: u64 = 4096;
/// How often the page is read before giving up if it changes each time.
const TRIES: u32 = 5;
const OPERATION: &str = "read the discovery log page";

/// Reads the discovery log page at `address`, a name or address with a port; 4096 entries at most.
///
/// # Errors
/// When it cannot be reached, or does not answer as a discovery controller.
pub fn discover(address: &str, config: &HostConfig) -> Result<DiscoveryPage, HostError> {
    let subsystem = Nqn::new(Nqn::DISCOVERY).expect("it is a name");
    let uri = NvmeUri { address: address.to_owned(), subsystem, namespace: None };
    let mut wire = Wire::connect(&Machine, address, ADMIN_ENTRIES, config.digests)?;
    connect_queue(&mut wire, &uri, config, 0xffff, [0, ADMIN_ENTRIES])?;
    set_property(&mut wire, "enable the discovery controller", Properties::ENABLED)?;
    let page = whole_page(&mut wire)?;
    let _gone = set_property(&mut wire, "shut down", Properties::LEAVING);
    Ok(page)
}

// Reads the whole page, again if it changes meanwhile.
fn whole_page(wire: &mut Wire) -> Result<DiscoveryPage, HostError> {
    for _ in 0..TRIES {
        let head = page(part(wire, 0, 1024)?)?;
        let count = head.record_count.min(ENTRIES_MOST);
        let bytes = (count + 1) * ENTRY_BYTES;
        let mut whole = Vec::new();
        let mut at = 0;
        while at < bytes {
            let length = u32::try_from(bytes - at).unwrap_or(u32::MAX).min(PART_BYTES);
            whole.extend(part(wire, at, length)?);
            at += u64::from(length);
        }
        // Base 5.1.12.3.1: it is one page only if it has not changed meanwhile.
        if page(part(wire, 0, 1024)?)?.generation == head.generation {
            return page(whole);
        }
    }
    let reason = format!("it has changed {TRIES} times while it was read");
    Err(HostError::Protocol { operation: OPERATION, reason })
}

// Reads a part of the page.
fn part(wire: &mut Wire, offset: u64, length: u32) -> Result<Vec<u8>, HostError> {
    let get = Admin::GetLogPage {
        page: 0x70,
        specific: 0,
        retains_event: false,
        length: u64::from(length),
        offset,
        is_index: false,
    };
    let asked = submission(Command::Admin(get), 0, Data::Transport { length });
    let (_, data) = wire.ask(OPERATION, &asked, &[], Transfer::Receive(length))?;
    if data.len() == length as usize {
        return Ok(data);
    }
    let reason = format!("{} bytes came for {length}", data.len());
    Err(HostError::Protocol { operation: OPERATION, reason })
}

// Decodes the page.
fn page(bytes: Vec<u8>) -> Result<DiscoveryPage, HostError> {
    read_discovery(&bytes).ok_or_else(|| HostError::Protocol {
        operation: OPERATION,
        reason: "it is shorter than its header".to_owned(),
    })
}
