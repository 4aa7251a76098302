//! Discovery of the targets at an address (RFC 7143 4.3, Appendix C).

use scsi::iscsi::TargetRecord;

use crate::HostError;

use super::IscsiUri;
use super::config::InitiatorConfig;
use super::session::Session;

/// Requests from a portal, in a discovery session, the targets that this initiator may see.
///
/// # Errors
/// When it cannot be reached, or does not answer as an iSCSI portal.
pub fn discover(
    portal: &IscsiUri,
    config: &InitiatorConfig,
) -> Result<Vec<TargetRecord>, HostError> {
    let mut session = Session::discover(portal, config)?;
    let targets = session.targets()?;
    session.log_out();
    Ok(targets)
}
