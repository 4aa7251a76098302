//! Addresses where hosts connect, each with an ANA state (Base 8.1.1).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use nvme::Status;
use nvme::log::AnaState;

/// An address at which the target listens.
#[derive(Debug)]
pub(crate) struct Portal {
    /// The portal's number, from 1.
    pub(crate) number: u16,
    address: SocketAddr,
    /// The ANA state, as on the wire.
    state: AtomicU8,
    changes: AtomicU64,
}

/// How a connection came in.
#[derive(Debug, Clone)]
pub(crate) struct Entrance {
    /// The address that its host used.
    pub(crate) local: SocketAddr,
    pub(crate) portal: Arc<Portal>,
}

impl Portal {
    pub(crate) const fn new(number: u16, address: SocketAddr) -> Self {
        let state = AtomicU8::new(AnaState::Optimized as u8);
        Self { number, address, state, changes: AtomicU64::new(1) }
    }

    /// The current ANA state, and its change count, from 1.
    pub(crate) fn state(&self) -> (AnaState, u64) {
        let state = match self.state.load(Ordering::Relaxed) {
            2 => AnaState::NonOptimized,
            3 => AnaState::Inaccessible,
            4 => AnaState::PersistentLoss,
            15 => AnaState::Change,
            _ => AnaState::Optimized,
        };
        (state, self.changes.load(Ordering::Relaxed))
    }

    /// Sets the ANA state. Returns whether it was another before.
    pub(crate) fn set(&self, state: AnaState) -> bool {
        let is_other = self.state.swap(state as u8, Ordering::Relaxed) != state as u8;
        if is_other {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        is_other
    }

    /// Fails with the status of I/O commands that the ANA state bars (Base 8.1.1.5 to 8.1.1.7);
    /// another portal may execute them.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match self.state().0 {
            AnaState::Optimized | AnaState::NonOptimized => Ok(()),
            AnaState::Inaccessible => Err(Status::ANA_INACCESSIBLE),
            AnaState::PersistentLoss => Err(Status::ANA_PERSISTENT_LOSS),
            AnaState::Change => Err(Status::ANA_TRANSITION),
        }
    }

    /// The address of this portal for a host that is connected to the local address `local`; `None`
    /// if that is unknown.
    pub(crate) fn reached(&self, local: SocketAddr) -> Option<SocketAddr> {
        let own = self.address;
        if own.ip().is_unspecified() {
            return (own.is_ipv4() == local.is_ipv4())
                .then(|| SocketAddr::new(local.ip(), own.port()));
        }
        // A loopback address leads hosts on other machines to themselves.
        (!own.ip().is_loopback() || local.ip().is_loopback()).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("it is one")
    }

    #[test]
    fn a_state_says_what_becomes_of_commands() {
        let portal = Portal::new(1, address("127.0.0.1:4420"));
        assert_eq!((portal.state(), portal.check()), ((AnaState::Optimized, 1), Ok(())));
        assert!(!portal.set(AnaState::Optimized));
        for (changes, (state, result)) in (2..).zip([
            (AnaState::NonOptimized, Ok(())),
            (AnaState::Inaccessible, Err(Status::ANA_INACCESSIBLE)),
            (AnaState::PersistentLoss, Err(Status::ANA_PERSISTENT_LOSS)),
            (AnaState::Change, Err(Status::ANA_TRANSITION)),
            (AnaState::Optimized, Ok(())),
        ]) {
            assert!(portal.set(state));
            assert_eq!((portal.state(), portal.check()), ((state, changes), result));
        }
    }

    #[test]
    fn a_host_hears_of_addresses_that_it_can_use() {
        let reached = |own: &str, local: &str| {
            let portal = Portal::new(1, address(own));
            portal.reached(address(local)).map(|address| address.to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(reached("0.0.0.0:4421", "10.0.0.1:4420"), some("10.0.0.1:4421"));
        assert_eq!(reached("0.0.0.0:4421", "[::1]:4420"), None);
        assert_eq!(reached("10.0.1.1:4420", "10.0.0.1:4420"), some("10.0.1.1:4420"));
        assert_eq!(reached("127.0.0.1:4421", "10.0.0.1:4420"), None);
        assert_eq!(reached("127.0.0.1:4421", "127.0.0.1:4420"), some("127.0.0.1:4421"));
    }
}
