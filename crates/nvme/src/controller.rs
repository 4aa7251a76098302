//! A controller: its properties and admin commands (Base 3.1, 5).
//!
//! It reads data of namespaces and the rest of the subsystem from a [`View`], and returns what it
//! cannot do by itself as a [`Reply`].

mod features;
mod pages;

use std::collections::VecDeque;

use super::command::{Admin, Command, Data, Fabrics, Submission};
use super::connect::Nqn;
use super::identify::{
    ControllerData, ControllerKind, IDENTIFY_BYTES, NamespaceData, write_namespace_list,
    write_nvm_controller,
};
use super::instance::{Instance, Instances};
use super::layout::entry::event;
use super::layout::identify::controller::{OAES_ANA, OAES_DISCOVERY, OAES_NAMESPACE};
use super::log::{self, AnaGroup, DiscoveryEntry, Health};
use super::property::{Change, Properties};
use super::queue::Slot;
use super::status::Status;

/// A controller's view of its subsystem.
pub trait View {
    /// Identifiers of the namespaces that its host may use, in order.
    fn namespaces(&self) -> Vec<u32>;
    /// A namespace; `None` if its host may not use it.
    fn namespace(&self, nsid: u32) -> Option<NamespaceData>;
    /// Statistics and health.
    fn health(&self) -> Health;
    /// ANA groups, and the count of changes of all their states.
    fn ana_groups(&self) -> (Vec<AnaGroup>, u64);
    /// Whether reservations of a namespace persist through power loss; `None` if there is no such
    /// namespace.
    fn persists(&self, nsid: u32) -> Option<bool>;
    /// Sets whether reservations of a namespace persist through power loss.
    ///
    /// # Errors
    /// The status with which the command ends.
    fn persist(&self, nsid: u32, persists: bool) -> Result<(), Status>;
    /// The discovery log for its host, and its generation.
    fn discovery(&self) -> (Vec<DiscoveryEntry>, u64);
}

/// The configuration of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Its kind.
    pub kind: ControllerKind,
    /// CNTLID; not FFF0h or above.
    pub id: u16,
    /// A random number for this controller, from which the CIRNs of its instances are derived.
    pub seed: u64,
    /// Its subsystem.
    pub subsystem: Nqn,
    /// HOSTID of its host.
    pub host_id: [u8; 16],
    /// SN.
    pub serial: String,
    /// MN.
    pub model: String,
    /// FR.
    pub firmware: String,
    /// MDTS, as [`ControllerData::transfer_shift`].
    pub transfer_shift: u8,
    /// Entries of an I/O queue at most.
    pub queue_entries: u16,
    /// I/O queues at most, at least 1.
    pub io_queues: u16,
    /// The highest namespace identifier.
    pub namespaces_max: u32,
    /// Bytes of data in a command capsule of an I/O queue; a multiple of 16.
    pub capsule_data_bytes: u32,
    /// Whether reservations are supported.
    pub has_reservations: bool,
    /// Number of ANA groups; 0 without ANA.
    pub ana_groups: u32,
    /// CQT, as [`ControllerData::quiesce_ms`].
    pub quiesce_ms: u16,
    /// CCRL, as [`ControllerData::resets_max`].
    pub resets_max: u8,
}

/// An event for hosts (Base 5.1.2, notices).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A namespace was added, removed or resized.
    Namespace(u32),
    /// The state of an ANA group has changed.
    AnaChange,
    /// The discovery log has changed.
    Discovery,
}

/// What the caller has to do with a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// Complete it with this status and result.
    Done(Status, u64),
    /// Send this data, and complete it with success.
    Data(Vec<u8>),
    /// Do not answer it now: an event request waits for an event.
    Held,
    /// Act on this change of the controller, and complete it with success.
    Changed(Change),
    /// The controller was reset: complete it with success. These outstanding commands of the admin
    /// queue are not answered.
    Reset(Vec<Slot>),
    /// Try to abort a command; the result is 0 if it was aborted and 1 if not.
    Abort {
        /// Queue of the command.
        queue: u16,
        /// The command.
        cid: u16,
    },
    /// Reset this controller, if it belongs to the same host; the result is 1 once none of its
    /// commands is under way.
    ResetOther(Instance),
}

/// Event requests that may be outstanding at a time.
const EVENT_REQUESTS: u8 = 4;

/// See the module's description.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    instances: Instances,
    properties: Properties,
    /// Notices that the host has enabled (feature 0Bh).
    wanted: u32,
    /// KATO in milliseconds; 0 for no limit.
    keep_alive_ms: u32,
    heard_ms: u64,
    requests: VecDeque<Slot>,
    /// Notices that wait for an event request, and those reported; each kind is in one of them at
    /// most until its log page is read.
    waiting: VecDeque<Notice>,
    told: Vec<Notice>,
    changed: Vec<u32>,
}

impl Controller {
    /// A controller that is not enabled, whose host has connected at `now_ms` by the caller's
    /// clock.
    #[must_use]
    pub fn new(config: ControllerConfig, keep_alive_ms: u32, now_ms: u64) -> Self {
        let properties = Properties::new(u32::from(config.queue_entries));
        Self {
            instances: Instances::new(config.id, config.seed),
            config,
            properties,
            wanted: 0,
            keep_alive_ms,
            heard_ms: now_ms,
            requests: VecDeque::new(),
            waiting: VecDeque::new(),
            told: Vec::new(),
            changed: Vec::new(),
        }
    }

    /// The current instance of the controller.
    #[must_use]
    pub fn instance(&self) -> Instance {
        self.instances.now()
    }

    /// Whether the controller is ready for commands of I/O queues.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.properties.is_ready()
    }

    /// Fails the shutdown: see [`Properties::fail_shutdown`].
    pub const fn fail_shutdown(&mut self) {
        self.properties.fail_shutdown();
    }

    /// KATO in milliseconds; 0 for no limit.
    #[must_use]
    pub const fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms
    }

    /// When the keep-alive timer expires (Base 3.9); `None` without one.
    #[must_use]
    pub fn expires_ms(&self) -> Option<u64> {
        (self.keep_alive_ms > 0).then(|| self.heard_ms + u64::from(self.keep_alive_ms))
    }

    /// Executes a command of the admin queue, as far as it can.
    pub fn handle(
        &mut self,
        slot: Slot,
        submission: &Submission,
        view: &impl View,
        now_ms: u64,
    ) -> Reply {
        match submission.command {
            Command::Fabrics(command) => self.fabrics(command, now_ms),
            // Base 3.5: admin commands need an enabled controller.
            Command::Admin(_) if !self.is_ready() => failed(Status::SEQUENCE_ERROR),
            Command::Admin(command) => self.admin(slot, command, submission, view, now_ms),
            Command::Io(_) => failed(Status::INVALID_OPCODE),
        }
    }

    /// Records a notice. Returns the event request to complete with it, and the result; `None` if
    /// none is to be completed now.
    pub fn notify(&mut self, notice: Notice) -> Option<(Slot, u64)> {
        if let Notice::Namespace(nsid) = notice
            && let Err(place) = self.changed.binary_search(&nsid)
        {
            self.changed.insert(place, nsid);
        }
        let known = self.waiting.iter().chain(&self.told).any(|other| is_like(*other, notice));
        if self.wanted & bit(notice) == 0 || known {
            return None;
        }
        self.waiting.push_back(notice);
        self.tell()
    }

    // Pairs the first waiting notice with the first event request.
    fn tell(&mut self) -> Option<(Slot, u64)> {
        if self.waiting.is_empty() {
            return None;
        }
        let slot = self.requests.pop_front()?;
        let notice = self.waiting.pop_front()?;
        self.told.push(notice);
        let [information, page] = match notice {
            Notice::Namespace(_) => [0x00, 0x04],
            Notice::AnaChange => [0x03, 0x0c],
            Notice::Discovery => [0xf0, 0x70],
        };
        let what = event::AET.of(event::NOTICE) | event::AEI.of(information);
        Some((slot, what | event::LID.of(page)))
    }

    // Executes a Fabrics command of the admin queue.
    fn fabrics(&mut self, command: Fabrics, now_ms: u64) -> Reply {
        match command {
            Fabrics::PropertyGet(property) => match self.properties.get(property) {
                Ok(value) => Reply::Done(Status::SUCCESS, value),
                Err(status) => Reply::Done(status, 0),
            },
            Fabrics::PropertySet { property, value } => {
                match self.properties.set(property, value) {
                    Ok(Change::Reset) => Reply::Reset(self.reset()),
                    Ok(change) => {
                        if change == Change::Enabled {
                            self.heard_ms = now_ms;
                            self.instances.begin();
                        }
                        Reply::Changed(change)
                    }
                    Err(status) => Reply::Done(status, 0),
                }
            }
            // The admin queue ends with its connection (Base 6.5).
            Fabrics::Disconnect => failed(Status::INVALID_QUEUE_TYPE),
            Fabrics::Connect { .. } => failed(Status::SEQUENCE_ERROR),
            Fabrics::Authentication { .. } => failed(Status::INVALID_OPCODE),
        }
    }

    // Resets the state of events. Returns the outstanding event requests, which are not answered.
    fn reset(&mut self) -> Vec<Slot> {
        self.wanted = 0;
        self.waiting.clear();
        self.told.clear();
        self.requests.drain(..).collect()
    }

    /// Removes an outstanding event request, which the host aborts (Base 5.1.1). Returns whether
    /// `slot` was one.
    pub fn abort(&mut self, slot: Slot) -> bool {
        let place = self.requests.iter().position(|request| *request == slot);
        place.is_some_and(|place| self.requests.remove(place).is_some())
    }

    // Executes an admin command.
    fn admin(
        &mut self,
        slot: Slot,
        command: Admin,
        submission: &Submission,
        view: &impl View,
        now_ms: u64,
    ) -> Reply {
        match command {
            Admin::Identify { structure, command_set, .. } => {
                self.identify(structure, command_set, submission, view)
            }
            Admin::GetLogPage { page, specific, retains_event, length, offset, is_index } => {
                // The requested length and the host's buffer must be equal (Base 5.1.12).
                if is_index || u64::from(room(submission)) != length {
                    return failed(Status::INVALID_FIELD);
                }
                let Some(whole) = self.page(page, specific, view) else {
                    return failed(Status::INVALID_LOG_PAGE);
                };
                if !retains_event {
                    self.has_read(page);
                }
                let part = log::part(&whole, offset, room(submission) as usize);
                part.map_or_else(|| failed(Status::INVALID_FIELD), Reply::Data)
            }
            Admin::Abort { queue, cid } => Reply::Abort { queue, cid },
            Admin::SetFeatures { saves: true, .. } => failed(Status::FEATURE_NOT_SAVEABLE),
            Admin::SetFeatures { feature, value, .. } => {
                self.set_feature(feature, value, submission, view, now_ms)
            }
            Admin::GetFeatures { feature, select, value } => {
                self.feature(feature, select, value, submission, view)
            }
            Admin::AsyncEventRequest => {
                if self.requests.len() == usize::from(EVENT_REQUESTS) {
                    return failed(Status::ASYNC_EVENT_LIMIT);
                }
                self.requests.push_back(slot);
                match self.tell() {
                    // Earlier requests were completed by earlier notices: this is the request.
                    Some((_, result)) => Reply::Done(Status::SUCCESS, result),
                    None => Reply::Held,
                }
            }
            Admin::KeepAlive => {
                self.heard_ms = now_ms;
                Reply::Done(Status::SUCCESS, 0)
            }
            Admin::CrossControllerReset(_) if self.config.resets_max == 0 => {
                failed(Status::INVALID_OPCODE)
            }
            // Base 2.3 5.4.3: a controller cannot reset itself by this command.
            Admin::CrossControllerReset(of) if of.controller == self.config.id => {
                failed(Status::INVALID_FIELD)
            }
            Admin::CrossControllerReset(of) => Reply::ResetOther(of),
        }
    }

    // Executes Identify, by CNS (Base 5.1.13.1).
    fn identify(
        &self,
        structure: u8,
        command_set: u8,
        submission: &Submission,
        view: &impl View,
    ) -> Reply {
        if room(submission) as usize != IDENTIFY_BYTES {
            return failed(Status::SGL_LENGTH_INVALID);
        }
        let nsid = submission.nsid;
        let is_nvm = command_set == 0;
        let data = match structure {
            // An inactive namespace is all zeros.
            0x00 if (1..=self.config.namespaces_max).contains(&nsid) => {
                view.namespace(nsid).map_or([0; IDENTIFY_BYTES], |data| data.write())
            }
            0x00 => return failed(Status::INVALID_NAMESPACE),
            0x01 => self.data().write(),
            0x02 if nsid >= u32::MAX - 1 => return failed(Status::INVALID_NAMESPACE),
            0x02 => write_namespace_list(view.namespaces(), nsid),
            0x03 => match view.namespace(nsid) {
                Some(data) => data.write_descriptors(),
                None => return failed(Status::INVALID_NAMESPACE),
            },
            // For the NVM command set; the first has no fields beyond zeros.
            0x05 if is_nvm && view.namespace(nsid).is_some() => [0; IDENTIFY_BYTES],
            0x06 if is_nvm => write_nvm_controller(),
            0x07 if is_nvm && nsid >= u32::MAX - 1 => return failed(Status::INVALID_NAMESPACE),
            0x07 if is_nvm => write_namespace_list(view.namespaces(), nsid),
            0x08 => match view.namespace(nsid) {
                Some(data) => data.write_independent(),
                None => return failed(Status::INVALID_NAMESPACE),
            },
            _ => return failed(Status::INVALID_FIELD),
        };
        Reply::Data(data.to_vec())
    }

    // The controller's own Identify data.
    fn data(&self) -> ControllerData<'_> {
        let config = &self.config;
        ControllerData {
            kind: config.kind,
            instance: self.instance(),
            subsystem: &config.subsystem,
            serial: &config.serial,
            model: &config.model,
            firmware: &config.firmware,
            transfer_shift: config.transfer_shift,
            commands_max: config.queue_entries,
            namespaces_max: config.namespaces_max,
            capsule_data_bytes: config.capsule_data_bytes,
            has_volatile_cache: true,
            has_reservations: config.has_reservations,
            event_requests: EVENT_REQUESTS - 1,
            ana_groups: config.ana_groups,
            quiesce_ms: config.quiesce_ms,
            resets_max: config.resets_max,
        }
    }
}

/// The LID in the result of an event request.
#[must_use]
pub fn event_page(result: u64) -> u8 {
    u8::try_from(event::LID.get(result)).unwrap_or(0)
}

// A failing completion that is not to be retried.
const fn failed(status: Status) -> Reply {
    Reply::Done(status.do_not_retry(), 0)
}

/// Bytes of the host's buffer.
const fn room(submission: &Submission) -> u32 {
    match submission.data {
        Data::Transport { length } => length,
        Data::None | Data::InCapsule { .. } => 0,
    }
}

/// The bit that enables a kind of notices (feature 0Bh; OAES has the same bits).
const fn bit(notice: Notice) -> u32 {
    match notice {
        Notice::Namespace(_) => OAES_NAMESPACE,
        Notice::AnaChange => OAES_ANA,
        Notice::Discovery => OAES_DISCOVERY,
    }
}

// Whether two notices are of one kind.
fn is_like(one: Notice, other: Notice) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

#[cfg(test)]
mod tests {
    use super::super::command::{Direction, Fused, Property};
    use super::*;

    #[derive(Default)]
    struct Disks {
        persists: std::cell::Cell<bool>,
    }

    const SIZES: [(u32, u64); 2] = [(1, 1000), (7, 2000)];

    impl View for Disks {
        fn namespaces(&self) -> Vec<u32> {
            SIZES.map(|(nsid, _)| nsid).to_vec()
        }

        fn namespace(&self, nsid: u32) -> Option<NamespaceData> {
            let (_, block_count) = SIZES.into_iter().find(|(other, _)| *other == nsid)?;
            Some(NamespaceData {
                block_count,
                used_blocks: None,
                block_shift: 9,
                nguid: [1; 16],
                uuid: [2; 16],
                atomic_blocks: 0,
                optimal_write_blocks: 0,
                discards_to_zero: true,
                reservation_kinds: 0,
                ana_group: 0,
                is_shared: true,
                is_read_only: false,
                opening: [0; 16],
            })
        }

        fn health(&self) -> Health {
            Health::default()
        }

        fn ana_groups(&self) -> (Vec<AnaGroup>, u64) {
            (Vec::new(), 0)
        }

        fn persists(&self, nsid: u32) -> Option<bool> {
            SIZES.iter().any(|(other, _)| *other == nsid).then(|| self.persists.get())
        }

        fn persist(&self, nsid: u32, persists: bool) -> Result<(), Status> {
            self.persists(nsid).ok_or(Status::INVALID_NAMESPACE.do_not_retry())?;
            self.persists.set(persists);
            Ok(())
        }

        fn discovery(&self) -> (Vec<DiscoveryEntry>, u64) {
            (Vec::new(), 1)
        }
    }

    fn controller(kind: ControllerKind) -> Controller {
        let config = ControllerConfig {
            kind,
            id: 3,
            seed: 11,
            subsystem: Nqn::new("nqn.2026-11.example:disk").expect("it can be one"),
            host_id: [6; 16],
            serial: "AFAR1".to_owned(),
            model: "afar".to_owned(),
            firmware: "0.1".to_owned(),
            transfer_shift: 8,
            queue_entries: 128,
            io_queues: 4,
            namespaces_max: 32,
            capsule_data_bytes: 8192,
            has_reservations: true,
            ana_groups: 0,
            quiesce_ms: 2000,
            resets_max: 4,
        };
        Controller::new(config, 5000, 100)
    }

    fn ask_for(controller: &mut Controller, command: Command, nsid: u32, length: u32) -> Reply {
        ask_of(controller, &Disks::default(), command, nsid, length)
    }

    fn ask_of(
        controller: &mut Controller,
        disks: &Disks,
        command: Command,
        nsid: u32,
        length: u32,
    ) -> Reply {
        let (data, direction) = match length {
            0 => (Data::None, Direction::None),
            _ => (Data::Transport { length }, Direction::ToHost),
        };
        let submission = Submission { cid: 9, fused: Fused::No, nsid, data, direction, command };
        controller.handle(Slot(5), &submission, disks, 1000)
    }

    pub(super) fn ask(
        controller: &mut Controller,
        command: Admin,
        nsid: u32,
        length: u32,
    ) -> Reply {
        ask_for(controller, Command::Admin(command), nsid, length)
    }

    pub(super) fn enabled(kind: ControllerKind) -> Controller {
        let mut controller = controller(kind);
        let property = Property { offset: 0x14, is_wide: false };
        let enable = Fabrics::PropertySet { property, value: 0x46_0001 };
        let reply = ask_for(&mut controller, Command::Fabrics(enable), 0, 0);
        assert_eq!(reply, Reply::Changed(Change::Enabled));
        controller
    }

    const fn identify(structure: u8) -> Admin {
        Admin::Identify { structure, controller_id: 0, command_set: 0 }
    }

    pub(super) const fn page(page: u8, length: u32) -> Admin {
        let length = length as u64;
        Admin::GetLogPage {
            page,
            specific: 0,
            retains_event: false,
            length,
            offset: 0,
            is_index: false,
        }
    }

    pub(super) fn data(reply: Reply) -> Vec<u8> {
        match reply {
            Reply::Data(data) => data,
            other => panic!("{other:?} is no data"),
        }
    }

    // In the order of Linux 6.12.
    #[test]
    fn a_linux_host_gets_what_it_asks_for() {
        let mut controller = enabled(ControllerKind::Io);
        let mut get = |structure, nsid| data(ask(&mut controller, identify(structure), nsid, 4096));
        assert_eq!(get(1, 0)[78], 3);
        assert_eq!(get(6, 0)[..2], [11, 0], "8 MiB are verified at once");
        assert_eq!((get(1, 0)[96], get(1, 0)[260], get(1, 0)[261]), (1, 3, 0x26));
        assert_eq!(get(7, 1)[..8], get(2, 1)[..8]);
        assert_eq!(get(8, 7)[..15], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "it is ready");
        assert_eq!(get(2, 0)[..12], [1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(get(2, 1)[..8], [7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(get(3, 7)[..2], [2, 16]);
        assert_eq!(get(0, 7)[..2], 2000_u16.to_le_bytes());
        assert_eq!(get(0, 2), [0; 4096], "it is not there");
        let queues = Admin::SetFeatures { feature: 7, saves: false, value: 0x1f_001f };
        let granted = ask(&mut controller, queues, 0, 0);
        assert_eq!(granted, Reply::Done(Status::SUCCESS, 0x3_0003), "four of each");
        assert_eq!(data(ask(&mut controller, page(5, 4096), 0, 4096))[0x18], 1);
        assert_eq!(data(ask(&mut controller, page(2, 512), 0, 512)).len(), 512);
        assert_eq!(controller.expires_ms(), Some(6000), "it was enabled at 1,000");
        let (data, direction) = (Data::None, Direction::None);
        let command = Command::Admin(Admin::KeepAlive);
        let alive = Submission { cid: 9, fused: Fused::No, nsid: 0, data, direction, command };
        let reply = controller.handle(Slot(5), &alive, &Disks::default(), 2000);
        assert_eq!(reply, Reply::Done(Status::SUCCESS, 0));
        assert_eq!(controller.expires_ms(), Some(7000));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut early = controller(ControllerKind::Io);
        let sequence = failed(Status::SEQUENCE_ERROR);
        assert_eq!(ask(&mut early, identify(1), 0, 4096), sequence, "it is not enabled");
        let mut controller = enabled(ControllerKind::Io);
        let length = failed(Status::SGL_LENGTH_INVALID);
        assert_eq!(ask(&mut controller, identify(1), 0, 4095), length);
        let nobody = failed(Status::INVALID_NAMESPACE);
        for (structure, nsid) in
            [(0, 0), (0, 33), (0, u32::MAX), (2, u32::MAX), (3, 2), (7, u32::MAX), (8, 2)]
        {
            assert_eq!(ask(&mut controller, identify(structure), nsid, 4096), nobody, "{nsid}");
        }
        let invalid = failed(Status::INVALID_FIELD);
        for structure in 9..=255 {
            assert_eq!(ask(&mut controller, identify(structure), 1, 4096), invalid);
        }
        assert_eq!(ask(&mut controller, page(2, 512), 0, 508), invalid, "room for less");
        let unknown = failed(Status::INVALID_LOG_PAGE);
        for number in [0x06, 0x0c, 0x70, 0x81, 0xff] {
            assert_eq!(ask(&mut controller, page(number, 512), 0, 512), unknown, "{number:#x}");
        }
        let none = Admin::SetFeatures { feature: 7, saves: false, value: 0xffff };
        assert_eq!(ask(&mut controller, none, 0, 0), invalid);
        let saved = Admin::SetFeatures { feature: 0x0b, saves: true, value: 0 };
        assert_eq!(ask(&mut controller, saved, 0, 0), failed(Status::FEATURE_NOT_SAVEABLE));
    }

    #[test]
    fn a_host_says_whether_reservations_persist() {
        let mut controller = enabled(ControllerKind::Io);
        let disks = Disks::default();
        let mut ask =
            |command, nsid| ask_of(&mut controller, &disks, Command::Admin(command), nsid, 0);
        let set = |value| Admin::SetFeatures { feature: 0x83, saves: false, value };
        let get = |select| Admin::GetFeatures { feature: 0x83, select, value: 0 };
        let is = |value| Reply::Done(Status::SUCCESS, value);
        assert_eq!(ask(get(0), 7), is(0));
        assert_eq!(ask(set(1), 7), is(0));
        assert_eq!(ask(get(0), 7), is(1));
        assert_eq!((ask(get(1), 7), ask(get(3), 7)), (is(0), is(6)));
        assert_eq!(ask(get(0), 2), failed(Status::INVALID_NAMESPACE));
        assert_eq!(ask(set(1), 2), failed(Status::INVALID_NAMESPACE));
        // What happens to reservations is not told.
        let mask = |value| Admin::SetFeatures { feature: 0x82, saves: false, value };
        assert_eq!(ask(mask(0xe), 7), is(0));
        assert_eq!(ask(mask(0), 7), failed(Status::INVALID_FIELD));
        let host_id = |value| Admin::GetFeatures { feature: 0x81, select: 0, value };
        assert_eq!(ask(host_id(1), 0), failed(Status::SGL_LENGTH_INVALID));
        let long = Command::Admin(host_id(1));
        assert_eq!(ask_for(&mut controller, long, 0, 16), Reply::Data(vec![6; 16]));
        let short = Command::Admin(host_id(0));
        assert_eq!(ask_for(&mut controller, short, 0, 8), failed(Status::INVALID_FIELD));
    }

    #[test]
    fn events_are_told_once_until_their_page_is_read() {
        let mut controller = enabled(ControllerKind::Io);
        assert_eq!(controller.notify(Notice::Namespace(7)), None, "nobody wants to know");
        let want = Admin::SetFeatures { feature: 0x0b, saves: false, value: u32::MAX };
        ask(&mut controller, want, 0, 0);
        assert_eq!(ask(&mut controller, Admin::AsyncEventRequest, 0, 0), Reply::Held);
        assert_eq!(controller.notify(Notice::Namespace(1)), Some((Slot(5), 0x04_00_02)));
        assert_eq!(ask(&mut controller, Admin::AsyncEventRequest, 0, 0), Reply::Held);
        assert_eq!(controller.notify(Notice::Namespace(1)), None, "it is known");
        assert_eq!(controller.notify(Notice::Discovery), None, "not of this kind");
        let changed = data(ask(&mut controller, page(4, 4096), 0, 4096));
        assert_eq!(changed[..12], [1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert!(controller.notify(Notice::Namespace(1)).is_some(), "it is news again");
        // With no request it waits for one.
        data(ask(&mut controller, page(4, 4096), 0, 4096));
        assert_eq!(controller.notify(Notice::Namespace(7)), None);
        let reply = ask(&mut controller, Admin::AsyncEventRequest, 0, 0);
        assert_eq!(reply, Reply::Done(Status::SUCCESS, 0x04_00_02));
    }

    #[test]
    fn four_requests_may_wait() {
        let mut controller = enabled(ControllerKind::Discovery);
        let request = Admin::AsyncEventRequest;
        for _ in 0..4 {
            assert_eq!(ask(&mut controller, request, 0, 0), Reply::Held);
        }
        let refused = failed(Status::ASYNC_EVENT_LIMIT);
        assert_eq!(ask(&mut controller, request, 0, 0), refused);
        let want = Admin::SetFeatures { feature: 0x0b, saves: false, value: 1 << 31 };
        ask(&mut controller, want, 0, 0);
        assert_eq!(controller.notify(Notice::Discovery), Some((Slot(5), 0x70_f0_02)));
        assert_eq!(data(ask(&mut controller, page(0x70, 1024), 0, 1024))[0], 1);
        let property = Property { offset: 0x14, is_wide: false };
        let disable = Fabrics::PropertySet { property, value: 0 };
        let reply = ask_for(&mut controller, Command::Fabrics(disable), 0, 0);
        assert_eq!(reply, Reply::Reset(vec![Slot(5); 3]), "they have no answer any more");
        assert_eq!(controller.notify(Notice::Discovery), None, "what was asked is forgotten");
    }

    #[test]
    fn an_event_request_can_be_aborted() {
        let mut controller = enabled(ControllerKind::Io);
        assert_eq!(ask(&mut controller, Admin::AsyncEventRequest, 0, 0), Reply::Held);
        assert!(!controller.abort(Slot(4)));
        assert!(controller.abort(Slot(5)));
        assert!(!controller.abort(Slot(5)), "it is not there any more");
        let want = Admin::SetFeatures { feature: 0x0b, saves: false, value: u32::MAX };
        ask(&mut controller, want, 0, 0);
        assert_eq!(controller.notify(Notice::Namespace(1)), None, "nobody has asked");
    }

    // Every page that page 00h lists can be had, and no other.
    #[test]
    fn pages_that_are_listed_are_those_there_are() {
        for kind in [ControllerKind::Io, ControllerKind::Discovery] {
            let mut controller = enabled(kind);
            let listed = data(ask(&mut controller, page(0, 1024), 0, 1024));
            for number in 0..=255_u8 {
                let is_there = ask(&mut controller, page(number, 64), 0, 64);
                let is_listed = listed[usize::from(number) * 4] & 1 == 1;
                assert_eq!(is_listed, matches!(is_there, Reply::Data(_)), "{number:#x}");
            }
        }
    }
}
