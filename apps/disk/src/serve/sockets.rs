//! Sockets that listen, opened before the right to do so is given up.

use std::net::{SocketAddr, TcpListener};

use sys::world::listen;

use super::ServeError;
use super::plan::Fixed;

/// See the module's description.
pub(super) struct Sockets {
    /// Where hosts connect, and initiators.
    pub(super) nvme: Vec<SocketAddr>,
    pub(super) iscsi: Vec<SocketAddr>,
    /// One for each of these.
    pub(super) listening: Vec<TcpListener>,
    /// Where metrics are read.
    pub(super) metrics: Option<(TcpListener, SocketAddr)>,
}

impl Sockets {
    /// Listens wherever a plan says, for what is not among those that listen already.
    ///
    /// # Errors
    /// When an address is in use or not ours.
    pub(super) fn open(fixed: &Fixed, mut inherited: Vec<TcpListener>) -> Result<Self, ServeError> {
        let mut listening = Vec::new();
        let mut open = |addresses: &[SocketAddr], purpose| {
            let mut local = Vec::new();
            for address in addresses {
                let is_it = |one: &TcpListener| one.local_addr().is_ok_and(|own| own == *address);
                let opened = match inherited.iter().position(is_it) {
                    Some(place) => Ok((inherited.swap_remove(place), *address)),
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
            let socket = TcpListener::bind(address);
            let opened = socket.and_then(|socket| socket.local_addr().map(|own| (socket, own)));
            opened.map_err(|source| ServeError::Metrics { address, source })
        });
        Ok(Self { nvme, iscsi, listening, metrics: metrics.transpose()? })
    }
}
