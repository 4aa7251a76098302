//! The status of a login, and its conditions.

use super::chap::Chap;

/// The status of a login (11.13.5): class and detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum LoginStatus {
    /// The login succeeded.
    Success = 0x0000,
    /// The initiator's requests are invalid.
    InitiatorError = 0x0200,
    /// The initiator's authentication failed.
    AuthenticationFailure = 0x0201,
    /// The initiator is not allowed to log in.
    AuthorizationFailure = 0x0202,
    /// There is no such target.
    NotFound = 0x0203,
    /// No version in common.
    UnsupportedVersion = 0x0205,
    /// More connections than agreed.
    TooManyConnections = 0x0206,
    /// A required parameter is missing.
    MissingParameter = 0x0207,
    /// The session does not allow this connection, for example through another portal group.
    CannotInclude = 0x0208,
    /// There is no such type of session.
    SessionTypeUnsupported = 0x0209,
    /// There is no such session.
    SessionDoesNotExist = 0x020a,
    /// The request is invalid in this stage.
    InvalidRequest = 0x020b,
    /// The target has failed internally.
    TargetError = 0x0300,
    /// The service is temporarily unavailable.
    ServiceUnavailable = 0x0301,
    /// The target has no resources for another session.
    OutOfResources = 0x0302,
}

/// The conditions of an admitted login, and data to declare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// CHAP secrets of both ends; `None` for no authentication.
    pub chap: Option<Chap>,
    /// TargetPortalGroupTag.
    pub group: u16,
    /// TargetAlias, if there is one.
    pub alias: Option<String>,
}
