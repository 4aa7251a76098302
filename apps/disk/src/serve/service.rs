//! Talks to a service manager (systemd: sd_listen_fds(3), sd_notify(3)).

use std::net::TcpListener;

use listenfd::ListenFd;
use sd_notify::NotifyState;

use super::ServeError;

/// Listening sockets inherited from the service manager: those of the .socket unit.
///
/// # Errors
/// When one of them is no listening TCP socket.
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

/// Tells the service manager that the target finishes outstanding commands and then exits.
pub(super) fn is_stopping() {
    tell(NotifyState::Stopping);
}

// Notifies the service manager, if there is one.
fn tell(state: NotifyState<'_>) {
    let _unheard = sd_notify::notify(false, &[state]);
}
