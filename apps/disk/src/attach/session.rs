//! What is between a mount and the end of its requests.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use host::Disk;
use sys::event::Waker;
use sys::fuse::{FuseDevice, Taken};

use super::AttachError;
use super::files::{End, Files, Taker};
use super::protocol::{
    Asked, MAJOR, MESSAGE_BYTES, MINOR_LEAST, Message, Version, decode, head, started,
};

/// Requests of the kernel that are being served.
pub(super) struct Served {
    failed: Receiver<sys::Error>,
    waker: Waker,
}

impl Served {
    /// Agrees with the kernel on how to talk, and has each lane of the disk take requests.
    ///
    /// # Errors
    /// When the kernel talks otherwise, or has no more descriptors.
    pub(super) fn begin(device: &FuseDevice, disk: &Arc<Disk>) -> Result<Self, AttachError> {
        agree(device)?;
        let more = (1..disk.lane_count()).map(|_| device.another());
        let devices =
            [Ok(device.clone())].into_iter().chain(more).collect::<Result<Vec<_>, _>>()?;
        let waker = Waker::new()?;
        let (sender, failed) = channel();
        let files = Arc::new(Files::new(disk));
        for device in &devices {
            device.set_nonblocking()?;
        }
        for (lane, device) in devices.into_iter().enumerate() {
            let end = End { failed: sender.clone(), waker: waker.clone() };
            disk.host(lane, Box::new(Taker::new(device, Arc::clone(&files), end)));
        }
        Ok(Self { failed, waker })
    }

    /// Is used when there are no more requests.
    pub(super) const fn ended(&self) -> &Waker {
        &self.waker
    }

    /// Whether they have ended because nothing is mounted any more.
    ///
    /// # Errors
    /// Why else.
    pub(super) fn result(&self) -> Result<(), AttachError> {
        self.failed.try_recv().map_or(Ok(()), |error| Err(error.into()))
    }
}

// The first request of all, and again if the kernel is newer than what it is answered.
fn agree(device: &FuseDevice) -> Result<(), AttachError> {
    let mut room = vec![0; MESSAGE_BYTES];
    loop {
        let Taken::Message(count) = device.take(&mut room)? else {
            return Err(AttachError::Unmounted);
        };
        let Ok(Message { unique, asked: Asked::Start(version), .. }) = decode(&room[..count])
        else {
            return Err(AttachError::Unmounted);
        };
        let Version { major, minor, .. } = version;
        if major < MAJOR || major == MAJOR && minor < MINOR_LEAST {
            let error = rustix::io::Errno::PROTO.raw_os_error();
            device.answer(&head(unique, error, 0), &[])?;
            return Err(AttachError::Version { major, minor });
        }
        let answer = started(&version);
        device.answer(&head(unique, 0, answer.len()), &answer)?;
        if major == MAJOR {
            return Ok(());
        }
    }
}
