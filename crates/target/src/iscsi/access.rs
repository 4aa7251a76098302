//! A subsystem as iSCSI initiators find it: its name, and who may log in.

use std::collections::{BTreeMap, BTreeSet};

use scsi::iscsi::Chap;

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IscsiAccess {
    /// What initiators log in to: a name that begins with `iqn.`, `eui.` or `naa.`.
    pub name: String,
    /// Which may; all if `None`.
    pub initiators: Option<BTreeSet<String>>,
    /// What both ends have to prove, if anything.
    pub chap: Option<Chap>,
    /// What each initiator has to prove in place of that; if there are any, no others may log in.
    pub chap_of: BTreeMap<String, Chap>,
}

impl IscsiAccess {
    /// Whether an initiator may log in, as far as its name goes.
    #[must_use]
    pub fn admits(&self, initiator: &str) -> bool {
        let is_named = self.initiators.as_ref().is_none_or(|names| names.contains(initiator));
        is_named && self.chap_for(initiator).is_some()
    }

    /// What an initiator has to prove, if anything; `None` if it cannot prove who it is.
    #[must_use]
    pub fn chap_for(&self, initiator: &str) -> Option<Option<Chap>> {
        if self.chap_of.is_empty() {
            return Some(self.chap.clone());
        }
        self.chap_of.get(initiator).cloned().map(Some)
    }
}
