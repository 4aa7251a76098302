//! Which targets there are at an address (RFC 7143 4.3, Appendix C).

use scsi::iscsi::TargetRecord;

use crate::HostError;

use super::IscsiUri;
use super::config::InitiatorConfig;
use super::session::Session;

/// Asks a portal, in a session for that alone, which targets it lets this initiator see.
///
/// # Errors
/// When there is no way to it, or it does not answer as one.
pub fn discover(
    portal: &IscsiUri,
    config: &InitiatorConfig,
) -> Result<Vec<TargetRecord>, HostError> {
    let mut session = Session::discover(portal, config)?;
    let targets = session.targets()?;
    session.log_out();
    Ok(targets)
}
