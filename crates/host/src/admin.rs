//! The admin queue of a controller, as its host has it: what is asked on it, keep-alive, and what
//! the controller says unasked.

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
    /// Time between two keep-alives; `None` for none, and when the next is due.
    period: Option<Duration>,
    due_ns: u64,
}

/// What [`AdminQueue::wait`] has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// The controller says that something has happened (Base 5.1.2); a page says what.
    Event {
        /// LID of that page.
        page: u8,
    },
    /// Somebody has used the waker.
    Called,
    /// The time has come.
    Time,
}

/// Groups of an access state page at most.
const GROUPS_MOST: u32 = 4096;
/// Feature 0Bh: namespaces and access states (Base 5.1.25.1.5; OAES has the same bits).
const EVENTS: u32 = 1 << 8 | 1 << 11;
/// 04h, 0Ch (Base 5.1.12).
const CHANGED_NAMESPACES: u8 = 0x04;
const ACCESS_STATES: u8 = 0x0c;

impl AdminQueue {
    /// Connects to any controller of a subsystem and enables it; also its number.
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
            // A controller that is silent for so long may have given its host up.
            admin.wire.be_patient(Some(Duration::from_millis(ms)))?;
        }
        Ok((id, admin))
    }

    /// What ends [`AdminQueue::wait`] from another thread.
    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Takes another waker for that.
    pub(super) fn be_called_by(&mut self, waker: &Waker) {
        self.waker = waker.clone();
    }

    /// Its connection.
    pub(super) const fn socket(&self) -> &Stream {
        &self.wire.stream
    }

    fn was_heard(&mut self) {
        let period = self
            .period
            .map_or(u64::MAX, |period| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        self.due_ns = self.wire.stream.now_ns().saturating_add(period);
    }

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

    /// What the controller says of itself.
    pub(super) fn controller(&mut self) -> Result<FoundController, HostError> {
        self.identify(0x01, 0).map(|data| FoundController::read(&data))
    }

    /// Asks for I/O queues; how many are granted.
    pub(super) fn ask_for_queues(&mut self, count: u16) -> Result<u16, HostError> {
        let value = u32::from(count - 1);
        let queues = Admin::SetFeatures { feature: 7, saves: false, value: value | value << 16 };
        let (granted, _) = self.ask("ask for queues", queues, 0, 0)?;
        Ok(u16::try_from(granted & 0xffff).unwrap_or(0).saturating_add(1))
    }

    /// Identifiers of namespaces above `after`, in order; a page of them.
    pub(super) fn namespaces(&mut self, after: u32) -> Result<Vec<u32>, HostError> {
        self.identify(0x02, after).map(|data| read_namespace_list(&data))
    }

    pub(super) fn first_namespace(&mut self) -> Result<u32, HostError> {
        self.namespaces(0)?.first().copied().ok_or_else(|| {
            let reason = "the subsystem has none".to_owned();
            HostError::Protocol { operation: "look for a namespace", reason }
        })
    }

    /// What a namespace says of itself, with all that tells it from others.
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

    /// A namespace that can be read and written here.
    pub(super) fn namespace(&mut self, nsid: u32) -> Result<Namespace, HostError> {
        let found = self.found_namespace(nsid)?;
        let wrong = match found {
            // One that is there but cannot be reached may have no size now.
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

    /// Access states of all groups; `None` if the controller reports none.
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

    /// The access state of a namespace; one of a controller that reports none can be used.
    pub(super) fn access_state(
        &mut self,
        controller: &FoundController,
        namespace: &Namespace,
    ) -> Result<AnaState, HostError> {
        let Some(page) = self.access_states(controller)? else { return Ok(AnaState::Optimized) };
        let group = page.groups.iter().find(|group| group.id == namespace.ana_group);
        Ok(group.map_or(AnaState::Inaccessible, |group| group.state))
    }

    /// Lets the controller say what has happened to namespaces and access states, if it can.
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

    // Asks the controller to tell what happens next (Asynchronous Event Request); does not wait.
    fn wait_for_event(&mut self) -> Result<(), HostError> {
        let request = submission(Command::Admin(Admin::AsyncEventRequest), 0, Data::None);
        self.wire.request_event(&request)
    }

    /// Has the controller end another one of this host (TP8028).
    pub(super) fn reset_other(&mut self, of: Instance) -> Result<Fenced, HostError> {
        let reset = Admin::CrossControllerReset(of);
        match self.ask("reset a lost controller", reset, 0, 0) {
            // Bit 0: the reset is complete. One that goes on is asked for again.
            Ok((result, _)) if result & 1 == 1 => Ok(Fenced::AtRest),
            Ok(_) => Ok(Fenced::NotYet),
            Err(HostError::Refused { status, .. }) => Ok(match status.cause() {
                Status::RESET_IN_PROGRESS | Status::RESET_LIMIT => Fenced::NotYet,
                _ => Fenced::Never,
            }),
            Err(error) => Err(error),
        }
    }

    /// Reads the page that an event names, so that there can be another (Base 5.1.2).
    pub(super) fn take_event(&mut self, page: u8) -> Result<(), HostError> {
        let length = if page == CHANGED_NAMESPACES { 4096 } else { 64 };
        match self.page(page, 0, length) {
            // A page that this controller does not have after all.
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

    /// Says good-bye: what was written is on the medium then (Base 3.6.1).
    pub(super) fn shut_down(mut self) {
        let _gone = set_property(&mut self.wire, "shut down", Properties::LEAVING);
    }
}

fn system(error: sys::Error) -> HostError {
    let sys::Error { operation, source } = error;
    HostError::Network { operation, source }
}

/// Whether two namespaces are one: nothing that both have of what tells them apart differs, and
/// there is something.
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
