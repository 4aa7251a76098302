//! The log pages of a controller (Base 5.1.12).

use super::super::identify::ControllerKind;
use super::super::log;
use super::{Controller, Notice, View};

/// The Cross-Controller Reset log page (Base 2.3), with resets that continue after their command
/// has ended.
const RESETS: u8 = 0x1e;

impl Controller {
    /// The supported log pages (Base 5.1.12).
    pub(super) fn pages(&self) -> Vec<u8> {
        let mut pages = vec![0x00, 0x01, 0x12];
        if self.config.kind == ControllerKind::Discovery {
            pages.push(0x70);
            return pages;
        }
        pages.extend([0x02, 0x03, 0x04, 0x05, 0x13]);
        if self.config.ana_groups > 0 {
            pages.push(0x0c);
        }
        if self.config.resets_max > 0 {
            pages.push(RESETS);
        }
        if self.config.has_reservations {
            pages.push(0x80);
        }
        pages
    }

    /// The content of a log page; `None` if it is not supported.
    pub(super) fn page(&self, page: u8, specific: u8, view: &impl View) -> Option<Vec<u8>> {
        if !self.pages().contains(&page) {
            return None;
        }
        Some(match page {
            0x00 => log::write_supported(&self.pages()),
            0x01 => log::write_errors(),
            0x02 => log::write_health(&view.health()),
            0x03 => log::write_firmware(&self.config.firmware),
            0x04 => log::write_changed_namespaces(&self.changed),
            0x05 => {
                let mut admin = vec![0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18];
                if self.config.resets_max > 0 {
                    admin.push(0x38);
                }
                let reservations = [0x0d, 0x0e, 0x11, 0x15];
                let mut io = vec![0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0c];
                if self.config.has_reservations {
                    io.extend(reservations);
                }
                log::write_effects(&admin, &io, &[0x01, 0x08, 0x09])
            }
            0x0c => {
                let (groups, count) = view.ana_groups();
                log::write_ana(&groups, count, specific & 1 != 0)
            }
            0x12 => log::write_features(self.feature_scopes()),
            // No command of a management interface, and no reset that continues after its command.
            0x13 | RESETS => vec![0; 4096],
            0x70 => {
                let (entries, generation) = view.discovery();
                log::write_discovery(generation, &entries)
            }
            // 80h: no reservation notifications (Base 5.1.12.1.32).
            _ => vec![0; 64],
        })
    }

    /// Re-enables notices of a page that was read.
    pub(super) fn has_read(&mut self, page: u8) {
        let of = |notice: &Notice| match notice {
            Notice::Namespace(_) => 0x04,
            Notice::AnaChange => 0x0c,
            Notice::Discovery => 0x70,
        };
        self.told.retain(|notice| of(notice) != page);
        if page == 0x04 {
            self.changed.clear();
        }
    }
}
