//! The descriptions of a controller and of the namespaces that its host may use.

use nvme::log::AnaState;
use nvme::{FoundController, FoundNamespace};
use sys::world::Machine;

use super::admin::AdminQueue;
use super::fabrics::HostConfig;
use super::{HostError, NvmeUri};

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// The connected controller.
    pub controller: FoundController,
    /// Namespaces, in order: the one that the URI names, or all of them.
    pub namespaces: Vec<IdentifiedNamespace>,
}

/// A namespace, as a controller describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentifiedNamespace {
    /// NSID.
    pub id: u32,
    /// Its Identify data.
    pub found: FoundNamespace,
    /// Its ANA state; `None` if the controller reports none.
    pub state: Option<AnaState>,
}

/// Namespaces that are identified, at most.
const NAMESPACES_MOST: usize = 4096;

/// Connects to a new controller of a subsystem, identifies it and its namespaces, and shuts it
/// down.
///
/// # Errors
/// When it cannot be reached, does not exist, or does not answer as an NVMe controller.
pub fn identify(uri: &NvmeUri, config: &HostConfig) -> Result<Identified, HostError> {
    let (_, mut admin) = AdminQueue::connect(&Machine, uri, config)?;
    let controller = admin.controller()?;
    let ids = match uri.namespace {
        Some(id) => vec![id],
        None => all_namespaces(&mut admin)?,
    };
    let page = admin.access_states(&controller)?;
    let mut namespaces = Vec::new();
    for id in ids {
        let found = admin.found_namespace(id)?;
        if found.block_count == 0 && found.block_shift == 0 {
            let reason = format!("namespace {id} is not there");
            return Err(HostError::Protocol { operation: "look at a namespace", reason });
        }
        let state = page.as_ref().map(|page| {
            let group = page.groups.iter().find(|group| group.id == found.ana_group);
            group.map_or(AnaState::Inaccessible, |group| group.state)
        });
        namespaces.push(IdentifiedNamespace { id, found, state });
    }
    admin.shut_down();
    Ok(Identified { controller, namespaces })
}

// All active namespace identifiers, in order.
fn all_namespaces(admin: &mut AdminQueue) -> Result<Vec<u32>, HostError> {
    let mut all = Vec::new();
    while all.len() < NAMESPACES_MOST {
        let after = all.last().copied().unwrap_or(0);
        let page = admin.namespaces(after)?;
        // Only identifiers in order, or the loop would never end.
        let next: Vec<u32> = page.into_iter().filter(|&id| id > after).collect();
        if next.is_empty() {
            break;
        }
        all.extend(next);
    }
    all.truncate(NAMESPACES_MOST);
    Ok(all)
}
