//! Serves a mount: agrees with the kernel on FUSE, then takes requests until the mount ends.

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

/// A mount whose requests the lanes of the disk serve.
pub(super) struct Served {
    failed: Receiver<sys::Error>,
    waker: Waker,
}

impl Served {
    /// Answers INIT, and has each lane of the disk take requests.
    ///
    /// # Errors
    /// When the kernel's FUSE is too old, the mount is gone, or descriptors run out.
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

    /// The waker that fires when a lane takes no more requests.
    pub(super) const fn ended(&self) -> &Waker {
        &self.waker
    }

    /// Why requests have ended: `Ok` if the mount has.
    ///
    /// # Errors
    /// When taking a request failed.
    pub(super) fn result(&self) -> Result<(), AttachError> {
        self.failed.try_recv().map_or(Ok(()), |error| Err(error.into()))
    }
}

// Answers INIT; a kernel of a newer major version sends it again with ours.
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
