//! What a service manager does for a target (systemd: sd_listen_fds(3), sd_notify(3)).

use std::net::TcpListener;

use listenfd::ListenFd;
use sd_notify::NotifyState;

use super::ServeError;

/// Sockets that listen already: those of the .socket unit.
///
/// # Errors
/// When one is no TCP socket that listens.
pub(super) fn listening() -> Result<Vec<TcpListener>, ServeError> {
    let mut all = ListenFd::from_env();
    let count = all.len();
    let sockets = (0..count).filter_map(|place| all.take_tcp_listener(place).transpose());
    sockets.collect::<Result<_, _>>().map_err(ServeError::Inherited)
}

/// Tells the service manager that hosts can connect.
pub(super) fn is_ready() {
    tell(NotifyState::Ready);
}

/// Tells the service manager that the target ends what is under way, and then itself.
pub(super) fn is_stopping() {
    tell(NotifyState::Stopping);
}

// Without a manager there is nobody to tell.
fn tell(state: NotifyState<'_>) {
    let _unheard = sd_notify::notify(false, &[state]);
}
