//! The parts from which a shard is made.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use sys::stream::Listener;
use sys::world::World;

use super::config::TargetConfig;
use super::control::Control;
use super::counters::Counters;
use super::iscsi::Gate;
use super::keeper::Keeper;
use super::loads::Loads;
use super::mail::{Message, Peer};
use super::portal::Portal;
use super::witness::Witness;

/// See the module's description.
pub(crate) struct Seed {
    pub(crate) index: u16,
    pub(crate) config: TargetConfig,
    pub(crate) mail: Receiver<Message>,
    pub(crate) peers: Arc<[Peer]>,
    pub(crate) counters: Arc<Counters>,
    /// Set for the control thread.
    pub(crate) control: Option<Control>,
    /// Set for the control thread.
    pub(crate) gate: Option<Gate>,
    /// The loads of all shards; only the control thread's copy is used.
    pub(crate) loads: Loads,
    /// Those for NVMe/TCP first, in the order of the portals, then those for iSCSI.
    pub(crate) listeners: Vec<Listener>,
    pub(crate) portals: Arc<[Arc<Portal>]>,
    /// Those for iSCSI.
    pub(crate) iscsi_portals: Arc<[Arc<Portal>]>,
    pub(crate) keeper: Keeper,
    pub(crate) witness: Witness,
    pub(crate) world: Arc<dyn World>,
}
