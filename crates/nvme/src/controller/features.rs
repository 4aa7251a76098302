//! Features of a controller (Base 5.1.11, 5.1.25): each is a row of a table.

use super::super::command::Submission;
use super::super::identify::ControllerKind;
use super::super::log::Scope;
use super::super::status::Status;
use super::{Controller, Notice, Reply, View, bit, failed, room};

/// A supported feature.
struct Feature {
    id: u8,
    scope: Scope,
    /// Whether a host may change its value.
    is_changeable: bool,
    /// Whether discovery controllers have it, too.
    is_everywhere: bool,
    default: u32,
}

const AGGREGATION: u8 = 0x01;
const POWER: u8 = 0x02;
const TEMPERATURE: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const WRITE_CACHE: u8 = 0x06;
const QUEUES: u8 = 0x07;
const WRITE_ATOMICITY: u8 = 0x0a;
const EVENTS: u8 = 0x0b;
const KEEP_ALIVE: u8 = 0x0f;
const HOST_ID: u8 = 0x81;
const RESERVATION_MASK: u8 = 0x82;
const RESERVATION_PERSISTENCE: u8 = 0x83;

/// Feature 82h with all notifications masked: registration preempted, reservation released and
/// preempted.
const UNTOLD: u32 = 7 << 1;
/// Feature 01h: no limit to the arbitration burst.
const NO_LIMIT: u32 = 7;
/// Feature 04h: the highest threshold, since no temperature is known.
const HOTTEST: u32 = 0xffff;

// A feature of I/O controllers.
const fn row(id: u8, scope: Scope, is_changeable: bool, default: u32) -> Feature {
    Feature { id, scope, is_changeable, is_everywhere: false, default }
}

// A feature of all controllers.
const fn everywhere(id: u8, is_changeable: bool) -> Feature {
    let scope = Scope::Controller;
    Feature { id, scope, is_changeable, is_everywhere: true, default: 0 }
}

const FEATURES: [Feature; 12] = [
    row(AGGREGATION, Scope::Controller, false, NO_LIMIT),
    row(POWER, Scope::Controller, false, 0),
    row(TEMPERATURE, Scope::Controller, false, HOTTEST),
    row(ERROR_RECOVERY, Scope::Namespace, false, 0),
    row(WRITE_CACHE, Scope::Controller, false, 1),
    row(QUEUES, Scope::Controller, false, 0),
    row(WRITE_ATOMICITY, Scope::Controller, false, 0),
    everywhere(EVENTS, true),
    everywhere(KEEP_ALIVE, true),
    everywhere(HOST_ID, false),
    row(RESERVATION_MASK, Scope::Namespace, false, UNTOLD),
    row(RESERVATION_PERSISTENCE, Scope::Namespace, true, 0),
];

impl Controller {
    // The features of this controller.
    fn features(&self) -> impl Iterator<Item = &'static Feature> {
        let is_io = self.config.kind == ControllerKind::Io;
        let has_reservations = self.config.has_reservations;
        FEATURES.iter().filter(move |feature| match feature.id {
            RESERVATION_MASK | RESERVATION_PERSISTENCE => is_io && has_reservations,
            _ => is_io || feature.is_everywhere,
        })
    }

    /// Features and their scopes, for page 12h.
    pub(super) fn feature_scopes(&self) -> impl Iterator<Item = (u8, Scope)> {
        self.features().map(|feature| (feature.id, feature.scope))
    }

    // Executes Set Features (Base 5.1.25).
    pub(super) fn set_feature(
        &mut self,
        feature: u8,
        value: u32,
        submission: &Submission,
        view: &impl View,
        now_ms: u64,
    ) -> Reply {
        let Some(row) = self.features().find(|row| row.id == feature) else {
            return failed(Status::INVALID_FIELD);
        };
        match feature {
            // Numbers of queues of both kinds, less one; FFFFh is invalid.
            QUEUES if value & 0xffff == 0xffff || value >> 16 == 0xffff => {
                failed(Status::INVALID_FIELD)
            }
            QUEUES => Reply::Done(Status::SUCCESS, self.queues()),
            EVENTS => {
                self.wanted = value & self.notices();
                Reply::Done(Status::SUCCESS, 0)
            }
            KEEP_ALIVE => {
                // The timer restarts (Base 3.9): without one the host may have been silent.
                self.keep_alive_ms = value;
                self.heard_ms = now_ms;
                Reply::Done(Status::SUCCESS, 0)
            }
            // Connect has already set it (Base 5.1.25.1.28).
            HOST_ID => failed(Status::SEQUENCE_ERROR),
            // No reservation notifications are sent: all stay masked.
            RESERVATION_MASK if value & UNTOLD == UNTOLD => Reply::Done(Status::SUCCESS, 0),
            RESERVATION_MASK => failed(Status::INVALID_FIELD),
            RESERVATION_PERSISTENCE => match view.persist(submission.nsid, value & 1 != 0) {
                Ok(()) => Reply::Done(Status::SUCCESS, 0),
                Err(status) => Reply::Done(status, 0),
            },
            _ if value == row.default => Reply::Done(Status::SUCCESS, 0),
            _ => failed(Status::FEATURE_NOT_CHANGEABLE),
        }
    }

    // Executes Get Features (Base 5.1.11): the current value, the default, or capabilities.
    pub(super) fn feature(
        &self,
        feature: u8,
        select: u8,
        value: u32,
        submission: &Submission,
        view: &impl View,
    ) -> Reply {
        let Some(row) = self.features().find(|row| row.id == feature) else {
            return failed(Status::INVALID_FIELD);
        };
        let (current, default) = match feature {
            HOST_ID => return self.host_id(select, value & 1 != 0, room(submission)),
            QUEUES => (self.queues(), self.queues()),
            EVENTS => (u64::from(self.wanted), 0),
            KEEP_ALIVE => (u64::from(self.keep_alive_ms), 0),
            RESERVATION_PERSISTENCE => match view.persists(submission.nsid) {
                Some(persists) => (u64::from(persists), 0),
                None => return failed(Status::INVALID_NAMESPACE),
            },
            _ => (u64::from(row.default), u64::from(row.default)),
        };
        match select {
            0 => Reply::Done(Status::SUCCESS, current),
            1 | 2 => Reply::Done(Status::SUCCESS, default),
            // Namespace specific (bit 1); changeable (bit 2); not saveable.
            3 => {
                let is_of_namespace = row.scope == Scope::Namespace;
                let bits = u64::from(is_of_namespace) << 1 | u64::from(row.is_changeable) << 2;
                Reply::Done(Status::SUCCESS, bits)
            }
            _ => failed(Status::INVALID_FIELD),
        }
    }

    // Gets the host identifier: 128 bits over fabrics (Base 5.1.25.1.28).
    fn host_id(&self, select: u8, is_extended: bool, room: u32) -> Reply {
        match select {
            0..=2 if !is_extended => failed(Status::INVALID_FIELD),
            0..=2 if room < 16 => failed(Status::SGL_LENGTH_INVALID),
            0..=2 => Reply::Data(self.config.host_id.to_vec()),
            3 => Reply::Done(Status::SUCCESS, 0),
            _ => failed(Status::INVALID_FIELD),
        }
    }

    // The numbers of both kinds of I/O queues, less one, as feature 07h encodes them.
    fn queues(&self) -> u64 {
        let queues = u64::from(self.config.io_queues.max(1) - 1);
        queues | queues << 16
    }

    // The notices that this kind of controller sends.
    const fn notices(&self) -> u32 {
        match self.config.kind {
            ControllerKind::Io => {
                bit(Notice::Namespace(0))
                    | if self.config.ana_groups > 0 { bit(Notice::AnaChange) } else { 0 }
            }
            ControllerKind::Discovery => bit(Notice::Discovery),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::Admin;
    use super::super::tests::{ask, data, enabled, page};
    use super::*;

    const fn get(feature: u8, select: u8) -> Admin {
        Admin::GetFeatures { feature, select, value: 0 }
    }

    const fn set(feature: u8, value: u32) -> Admin {
        Admin::SetFeatures { feature, saves: false, value }
    }

    // Base 3.1.3.6: what an I/O controller of version 2.1 must have, and what is true of this one.
    #[test]
    fn features_that_must_be_there_are() {
        let mut controller = enabled(ControllerKind::Io);
        let mut is = |feature: u8, value: u64, bits: u64| {
            for (select, wanted) in [(0, value), (1, value), (3, bits)] {
                let told = ask(&mut controller, get(feature, select), 7, 0);
                assert_eq!(told, Reply::Done(Status::SUCCESS, wanted), "{feature:#x} {select}");
            }
        };
        is(0x01, 7, 0);
        is(0x02, 0, 0);
        is(0x04, 0xffff, 0);
        is(0x05, 0, 2);
        is(0x06, 1, 0);
        is(0x0a, 0, 0);
        is(0x82, 0xe, 2);
        is(0x83, 0, 6);
        let same = ask(&mut controller, set(0x02, 0), 0, 0);
        assert_eq!(same, Reply::Done(Status::SUCCESS, 0), "it has that value");
        let other = failed(Status::FEATURE_NOT_CHANGEABLE);
        for feature in [0x01, 0x02, 0x04, 0x05, 0x06, 0x0a] {
            assert_eq!(ask(&mut controller, set(feature, 3), 0, 0), other, "{feature:#x}");
        }
        let invalid = failed(Status::INVALID_FIELD);
        for feature in [0x00, 0x03, 0x08, 0x09, 0x0c, 0x80, 0xff] {
            assert_eq!(ask(&mut controller, set(feature, 0), 0, 0), invalid, "{feature:#x}");
            assert_eq!(ask(&mut controller, get(feature, 0), 0, 0), invalid, "{feature:#x}");
        }
    }

    // What page 12h lists can be got, and nothing else.
    #[test]
    fn features_that_are_listed_are_those_there_are() {
        for kind in [ControllerKind::Io, ControllerKind::Discovery] {
            let mut controller = enabled(kind);
            let listed = data(ask(&mut controller, page(0x12, 1024), 0, 1024));
            for feature in 0..=255_u8 {
                let word = &listed[usize::from(feature) * 4..][..4];
                let told = ask(&mut controller, get(feature, 3), 7, 0);
                assert_eq!(word[0] == 1, matches!(told, Reply::Done(Status::SUCCESS, _)));
                if let Reply::Done(Status::SUCCESS, bits) = told {
                    let scope = if bits & 2 != 0 { 0x10 } else { 0x20 };
                    assert_eq!(word[2], scope, "{feature:#x}");
                }
            }
        }
    }

    // A host that has asked for no timer has not had to say anything until then.
    #[test]
    fn a_new_timer_begins_when_it_is_set() {
        let mut controller = enabled(ControllerKind::Io);
        assert_eq!(ask(&mut controller, set(0x0f, 0), 0, 0), Reply::Done(Status::SUCCESS, 0));
        assert_eq!(controller.expires_ms(), None);
        ask(&mut controller, set(0x0f, 2000), 0, 0);
        assert_eq!(controller.expires_ms(), Some(3000), "it was set at 1,000");
    }
}
