//! The host's end of a controller's admin queue: admin commands, keep-alive and asynchronous
//! events.

use std::time::Duration;

use nvme::log::AnaState;
use nvme::{
    ANA_GROUP_BYTES, ANA_HEADER_BYTES, Admin, AnaPage, Command, Data, FoundController,
    FoundNamespace, IDENTIFY_BYTES, Instance, NamespaceIds, Properties, Status, Transfer,
    event_page, read_ana, read_namespace_list,
};
use sys::event::Waker;
use sys::stream::Stream;
use sys::world::World;

use backend::Geometry;

use super::fabrics::{
    ADMIN_ENTRIES, HostConfig, Namespace, connect_queue, set_property, submission,
};
use super::fence::Fenced;
use super::wire::Wire;
use super::{HostError, NvmeUri};

/// See the module's description.
pub(super) struct AdminQueue {
    wire: Wire,
    waker: Waker,
    /// Time between two keep-alives, `None` without keep-alive; and when the next is due.
    period: Option<Duration>,
    due_ns: u64,
}

/// Why [`AdminQueue::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// The controller reports an event (Base 5.1.2); a log page describes it.
    Event {
        /// LID of the log page.
        page: u8,
    },
    /// Another thread has used the waker.
    Called,
    /// The time limit of the wait has passed.
    Time,
}

/// ANA groups that are read at most.
const GROUPS_MOST: u32 = 4096;
/// Feature 0Bh: events of namespaces and ANA states (Base 5.1.25.1.5; OAES has the same bits).
const EVENTS: u32 = 1 << 8 | 1 << 11;
/// LIDs of Changed Namespace List and Asymmetric Namespace Access (Base 5.1.12).
const CHANGED_NAMESPACES: u8 = 0x04;
const ACCESS_STATES: u8 = 0x0c;

impl AdminQueue {
    /// Connects to a new controller of a subsystem and enables it. Returns its CNTLID, too.
    pub(super) fn connect(
        world: &dyn World,
        uri: &NvmeUri,
        config: &HostConfig,
    ) -> Result<(u16, Self), HostError> {
        let mut wire = Wire::connect(world, &uri.address, ADMIN_ENTRIES, config.digests)?;
        let id = connect_queue(&mut wire, uri, config, 0xffff, [0, ADMIN_ENTRIES])?;
        set_property(&mut wire, "enable the controller", Properties::ENABLED)?;
        let waker = Waker::new().map_err(system)?;
        let ms = u64::from(config.keep_alive_ms);
        let period = (ms > 0).then(|| Duration::from_millis((ms / 2).max(1)));
        let mut admin = Self { wire, waker, period, due_ns: 0 };
        admin.was_heard();
        if ms > 0 {
            // A controller that is silent for KATO may have ended the association.
            admin.wire.be_patient(Some(Duration::from_millis(ms)))?;
        }
        Ok((id, admin))
    }

    /// The waker that ends [`AdminQueue::wait`] from another thread.
    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Replaces the waker that ends [`AdminQueue::wait`].
    pub(super) fn be_called_by(&mut self, waker: &Waker) {
        self.waker = waker.clone();
    }

    /// The connection of the queue.
    pub(super) const fn socket(&self) -> &Stream {
        &self.wire.stream
    }

    // Sets when the next keep-alive is due.
    fn was_heard(&mut self) {
        let period = self
            .period
            .map_or(u64::MAX, |period| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        self.due_ns = self.wire.stream.now_ns().saturating_add(period);
    }

    // Executes an admin command that reads `length` bytes. Returns its result and data.
    fn ask(
        &mut self,
        operation: &'static str,
        command: Admin,
        nsid: u32,
        length: u32,
    ) -> Result<(u64, Vec<u8>), HostError> {
        let (data, transfer) = match length {
            0 => (Data::None, Transfer::None),
            _ => (Data::Transport { length }, Transfer::Receive(length)),
        };
        let asked = submission(Command::Admin(command), nsid, data);
        let (result, data) = self.wire.ask(operation, &asked, &[], transfer)?;
        if data.len() == length as usize {
            return Ok((result, data));
        }
        let reason = format!("{} bytes came for {length}", data.len());
        Err(HostError::Protocol { operation, reason })
    }

    // The data of an Identify command with this CNS.
    fn identify(
        &mut self,
        structure: u8,
        nsid: u32,
    ) -> Result<Box<[u8; IDENTIFY_BYTES]>, HostError> {
        let length = u32::try_from(IDENTIFY_BYTES).unwrap_or(u32::MAX);
        let identify = Admin::Identify { structure, controller_id: 0, command_set: 0 };
        let (_, data) = self.ask("identify", identify, nsid, length)?;
        Ok(data.into_boxed_slice().try_into().expect("as much has come as was asked for"))
    }

    /// Identify Controller.
    pub(super) fn controller(&mut self) -> Result<FoundController, HostError> {
        self.identify(0x01, 0).map(|data| FoundController::read(&data))
    }

    /// Requests `count` I/O queues. Returns how many the controller grants.
    pub(super) fn ask_for_queues(&mut self, count: u16) -> Result<u16, HostError> {
        let value = u32::from(count - 1);
        let queues = Admin::SetFeatures { feature: 7, saves: false, value: value | value << 16 };
        let (granted, _) = self.ask("ask for queues", queues, 0, 0)?;
        Ok(u16::try_from(granted & 0xffff).unwrap_or(0).saturating_add(1))
    }

    /// A page of the active namespace list: identifiers above `after`, in order.
    pub(super) fn namespaces(&mut self, after: u32) -> Result<Vec<u32>, HostError> {
        self.identify(0x02, after).map(|data| read_namespace_list(&data))
    }

    /// The lowest active namespace identifier.
    pub(super) fn first_namespace(&mut self) -> Result<u32, HostError> {
        self.namespaces(0)?.first().copied().ok_or_else(|| {
            let reason = "the subsystem has none".to_owned();
            HostError::Protocol { operation: "look for a namespace", reason }
        })
    }

    /// Identify Namespace, with the identification descriptors.
    pub(super) fn found_namespace(&mut self, nsid: u32) -> Result<FoundNamespace, HostError> {
        let mut found = FoundNamespace::read(&*self.identify(0x00, nsid)?);
        if found.block_count > 0 {
            // Optional before NVMe 1.3.
            found.ids = match self.identify(0x03, nsid) {
                Ok(data) => found.ids.with_descriptors(&data),
                Err(HostError::Refused { .. }) => found.ids,
                Err(error) => return Err(error),
            };
        }
        Ok(found)
    }

    /// A namespace, if its format is supported: no metadata, blocks of 2^9 to 2^16 bytes.
    pub(super) fn namespace(&mut self, nsid: u32) -> Result<Namespace, HostError> {
        let found = self.found_namespace(nsid)?;
        let wrong = match found {
            // An inaccessible namespace may have a block size but no blocks.
            FoundNamespace { block_count: 0, block_shift: 0, .. } => Some("is not there"),
            FoundNamespace { metadata_bytes: 1.., .. } => Some("has metadata in its blocks"),
            FoundNamespace { block_shift: 9..=16, .. } => None,
            _ => Some("has blocks of a size that is not supported"),
        };
        if let Some(wrong) = wrong {
            let reason = format!("namespace {nsid} {wrong}");
            return Err(HostError::Protocol { operation: "look at a namespace", reason });
        }
        let block_bytes = 1 << found.block_shift;
        let geometry = Geometry {
            block_shift: found.block_shift,
            block_count: found.block_count,
            optimal_bytes: block_bytes,
            atomic_bytes: block_bytes,
            is_read_only: false,
        };
        let (reads_zeros, zeroes_deallocate) = (found.reads_zeros(), found.zeroes_deallocate());
        let FoundNamespace { ids, opening, ana_group, .. } = found;
        let id = nsid;
        Ok(Namespace { id, geometry, ids, opening, reads_zeros, zeroes_deallocate, ana_group })
    }

    // A log page, or its first part (Base 5.1.12).
    fn page(&mut self, page: u8, specific: u8, length: u32) -> Result<Vec<u8>, HostError> {
        let get = Admin::GetLogPage {
            page,
            specific,
            retains_event: false,
            length: u64::from(length),
            offset: 0,
            is_index: false,
        };
        self.ask("read a log page", get, u32::MAX, length).map(|(_, data)| data)
    }

    /// ANA states of all groups; `None` if the controller reports none.
    pub(super) fn access_states(
        &mut self,
        controller: &FoundController,
    ) -> Result<Option<AnaPage>, HostError> {
        let Some(ana) = controller.ana else { return Ok(None) };
        let header = u32::try_from(ANA_HEADER_BYTES).unwrap_or(0);
        let group = u32::try_from(ANA_GROUP_BYTES).unwrap_or(0);
        let length = header + ana.group_count.min(GROUPS_MOST) * group;
        // RGO: groups without their namespaces.
        Ok(read_ana(&self.page(ACCESS_STATES, 1, length)?))
    }

    /// The ANA state of a namespace; optimized if the controller reports none.
    pub(super) fn access_state(
        &mut self,
        controller: &FoundController,
        namespace: &Namespace,
    ) -> Result<AnaState, HostError> {
        let Some(page) = self.access_states(controller)? else { return Ok(AnaState::Optimized) };
        let group = page.groups.iter().find(|group| group.id == namespace.ana_group);
        Ok(group.map_or(AnaState::Inaccessible, |group| group.state))
    }

    /// Has the controller report events of namespaces and ANA states, if it can.
    pub(super) fn watch(&mut self, controller: &FoundController) -> Result<(), HostError> {
        let value = controller.events & EVENTS;
        if value == 0 {
            return Ok(());
        }
        let wanted = Admin::SetFeatures { feature: 0x0b, saves: false, value };
        match self.ask("ask for events", wanted, 0, 0) {
            Ok(_) => self.wait_for_event(),
            Err(HostError::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    // Sends an Asynchronous Event Request, without waiting for its answer.
    fn wait_for_event(&mut self) -> Result<(), HostError> {
        let request = submission(Command::Admin(Admin::AsyncEventRequest), 0, Data::None);
        self.wire.request_event(&request)
    }

    /// Has the controller reset another one of this host (TP8028).
    pub(super) fn reset_other(&mut self, of: Instance) -> Result<Fenced, HostError> {
        let reset = Admin::CrossControllerReset(of);
        match self.ask("reset a lost controller", reset, 0, 0) {
            // Bit 0: the reset is complete. Otherwise the caller repeats the command.
            Ok((result, _)) if result & 1 == 1 => Ok(Fenced::AtRest),
            Ok(_) => Ok(Fenced::NotYet),
            Err(HostError::Refused { status, .. }) => Ok(match status.cause() {
                Status::RESET_IN_PROGRESS | Status::RESET_LIMIT => Fenced::NotYet,
                _ => Fenced::Never,
            }),
            Err(error) => Err(error),
        }
    }

    /// Reads the log page of an event, which re-enables events of its type (Base 5.1.2).
    pub(super) fn take_event(&mut self, page: u8) -> Result<(), HostError> {
        let length = if page == CHANGED_NAMESPACES { 4096 } else { 64 };
        match self.page(page, 0, length) {
            // The controller may not have the page after all.
            Ok(_) | Err(HostError::Refused { .. }) => self.wait_for_event(),
            Err(error) => Err(error),
        }
    }

    /// Keeps the controller alive until something happens, or until a time of the monotonic clock.
    pub(super) fn wait(&mut self, until_ns: Option<u64>) -> Result<Heard, HostError> {
        let mut is_readable = false;
        loop {
            self.wire.listen(std::mem::take(&mut is_readable))?;
            if let Some(result) = self.wire.event() {
                return Ok(Heard::Event { page: event_page(result) });
            }
            let now_ns = self.wire.stream.now_ns();
            if now_ns >= self.due_ns {
                self.was_heard();
                self.ask("keep alive", Admin::KeepAlive, 0, 0)?;
                continue;
            }
            if until_ns.is_some_and(|at| at <= now_ns) {
                return Ok(Heard::Time);
            }
            let at_ns = until_ns.unwrap_or(u64::MAX).min(self.due_ns);
            let timeout = (at_ns < u64::MAX).then(|| Duration::from_nanos(at_ns - now_ns));
            let waited = self.wire.stream.wait(&self.waker, timeout);
            let [is_told, is_called] = waited.map_err(system)?;
            if is_called {
                self.waker.acknowledge();
                return Ok(Heard::Called);
            }
            is_readable = is_told;
        }
    }

    /// Shuts the controller down; written data is on the medium afterwards (Base 3.6.1).
    pub(super) fn shut_down(mut self) {
        let _gone = set_property(&mut self.wire, "shut down", Properties::LEAVING);
    }
}

// The error for a failed system call.
fn system(error: sys::Error) -> HostError {
    let sys::Error { operation, source } = error;
    HostError::Network { operation, source }
}

/// Whether two namespaces are one: at least one identifier that both have is equal, and none
/// differs.
pub(super) fn are_one(one: &NamespaceIds, other: &NamespaceIds) -> bool {
    fn compare<const N: usize>(one: &[u8; N], other: &[u8; N]) -> Option<bool> {
        (*one != [0; N] && *other != [0; N]).then(|| one == other)
    }
    let compared = [
        compare(&one.nguid, &other.nguid),
        compare(&one.eui64, &other.eui64),
        compare(&one.uuid, &other.uuid),
    ];
    compared.contains(&Some(true)) && !compared.contains(&Some(false))
}
