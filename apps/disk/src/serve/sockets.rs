//! Opens listening sockets, before rights are dropped.

use std::net::{SocketAddr, TcpListener};

use sys::world::listen;

use super::ServeError;
use super::plan::Fixed;

/// The listening sockets of a target.
pub(super) struct Sockets {
    /// Addresses of NVMe/TCP hosts, and of iSCSI initiators.
    pub(super) nvme: Vec<SocketAddr>,
    pub(super) iscsi: Vec<SocketAddr>,
    /// The sockets: one for each address of `nvme`, then of `iscsi`.
    pub(super) listening: Vec<TcpListener>,
    /// The socket for metrics, and its address.
    pub(super) metrics: Option<(TcpListener, SocketAddr)>,
}

impl Sockets {
    /// Listens at the plan's addresses, with sockets of `inherited` where there are.
    ///
    /// # Errors
    /// When an address is in use, or not this machine's.
    pub(super) fn open(fixed: &Fixed, mut inherited: Vec<TcpListener>) -> Result<Self, ServeError> {
        let mut listening = Vec::new();
        let mut taken = |address: SocketAddr| {
            let is_it = |one: &TcpListener| one.local_addr().is_ok_and(|own| own == address);
            inherited.iter().position(is_it).map(|place| inherited.swap_remove(place))
        };
        let mut open = |addresses: &[SocketAddr], purpose| {
            let mut local = Vec::new();
            for address in addresses {
                let opened = match taken(*address) {
                    Some(socket) => Ok((socket, *address)),
                    None => listen(*address),
                };
                let (socket, address) = opened.map_err(|error| ServeError::Listen {
                    addresses: address.to_string(),
                    source: sys::Error::new(purpose, error),
                })?;
                listening.push(socket);
                local.push(address);
            }
            Ok::<_, ServeError>(local)
        };
        let nvme = open(&fixed.nvme, "listen for NVMe/TCP hosts")?;
        let iscsi = open(&fixed.iscsi, "listen for iSCSI initiators")?;
        let metrics = fixed.metrics.map(|address| {
            let socket = taken(address).map_or_else(|| TcpListener::bind(address), Ok);
            let opened = socket.and_then(|socket| socket.local_addr().map(|own| (socket, own)));
            opened.map_err(|source| ServeError::Metrics { address, source })
        });
        Ok(Self { nvme, iscsi, listening, metrics: metrics.transpose()? })
    }
}
