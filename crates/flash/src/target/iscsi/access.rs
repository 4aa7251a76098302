//! A subsystem as iSCSI initiators find it: its name, and who may log in.

use std::collections::BTreeSet;

use proto::iscsi::Chap;

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IscsiAccess {
    /// What initiators log in to: a name that begins with `iqn.`, `eui.` or `naa.`.
    pub name: String,
    /// Which may; all if `None`.
    pub initiators: Option<BTreeSet<String>>,
    /// What both ends have to prove, if anything.
    pub chap: Option<Chap>,
}

impl IscsiAccess {
    /// Whether an initiator may log in, as far as its name goes.
    #[must_use]
    pub fn admits(&self, initiator: &str) -> bool {
        self.initiators.as_ref().is_none_or(|names| names.contains(initiator))
    }
}
