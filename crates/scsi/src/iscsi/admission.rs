//! How a login ends, and what it takes.

use super::chap::Chap;

/// How a login ends (11.13.5): class and detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum LoginStatus {
    /// It was done.
    Success = 0x0000,
    /// What the initiator says cannot be.
    InitiatorError = 0x0200,
    /// It has not proved who it is.
    AuthenticationFailure = 0x0201,
    /// It may not.
    AuthorizationFailure = 0x0202,
    /// There is no such target.
    NotFound = 0x0203,
    /// No version in common.
    UnsupportedVersion = 0x0205,
    /// More connections than agreed.
    TooManyConnections = 0x0206,
    /// It has not said who it is, or what it wants.
    MissingParameter = 0x0207,
    /// The session is another's.
    CannotInclude = 0x0208,
    /// There is no such type of session.
    SessionTypeUnsupported = 0x0209,
    /// There is no such session.
    SessionDoesNotExist = 0x020a,
    /// A request that may not come now.
    InvalidRequest = 0x020b,
    /// Something inside failed.
    TargetError = 0x0300,
    /// Not now.
    ServiceUnavailable = 0x0301,
    /// There is no room.
    OutOfResources = 0x0302,
}

/// What an initiator has to prove, and what it is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// What both ends prove; nothing if there is none.
    pub chap: Option<Chap>,
    /// TargetPortalGroupTag.
    pub group: u16,
    /// TargetAlias, if there is one.
    pub alias: Option<String>,
}
