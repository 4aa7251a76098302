//! A subsystem as an iSCSI target: its name, and who may log in.

use std::collections::{BTreeMap, BTreeSet};

use scsi::iscsi::Chap;

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IscsiAccess {
    /// What initiators log in to: a name that begins with `iqn.`, `eui.` or `naa.`.
    pub name: String,
    /// Names of initiators that may log in; `None` admits all.
    pub initiators: Option<BTreeSet<String>>,
    /// CHAP secrets of both ends; `None` if no authentication is needed.
    pub chap: Option<Chap>,
    /// CHAP secrets of each initiator in place of `chap`; if there are any, no others may log in.
    pub chap_of: BTreeMap<String, Chap>,
}

impl IscsiAccess {
    /// Whether an initiator of this name may log in.
    #[must_use]
    pub fn admits(&self, initiator: &str) -> bool {
        let is_named = self.initiators.as_ref().is_none_or(|names| names.contains(initiator));
        is_named && self.chap_for(initiator).is_some()
    }

    /// The CHAP secrets for an initiator, `Some(None)` if it needs none; `None` if it may not log
    /// in.
    #[must_use]
    pub fn chap_for(&self, initiator: &str) -> Option<Option<Chap>> {
        if self.chap_of.is_empty() {
            return Some(self.chap.clone());
        }
        self.chap_of.get(initiator).cloned().map(Some)
    }
}
