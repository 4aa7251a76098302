//! A blade that is a namespace of an NVMe/TCP target.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::{Failure, Operation, Request};
use blades::{Answer, Blade, Kept, PAGE_BYTES, Together, Token, Wanted};
use host::{Disk, DiskConfig, DiskEvent, DiskPath, DrivenDisk, HostConfig, NvmeUri, Reservation};
use measure::Duration;
use nvme::Status;

use super::error::FarError;
use super::hold;

const PAGE: u64 = PAGE_BYTES as u64;
const IO_TIMEOUT: Duration = Duration::from_ms(10_000);
const RECONNECT_DELAY: Duration = Duration::from_ms(1_000);

/// A namespace whose blocks hold pages.
pub(super) struct DiskBlade {
    disk: DrivenDisk,
    uri: String,
    pages: u32,
    /// One more than the last place that was ever written: copies lie beyond the places in use.
    extent: u32,
    told: Arc<Told>,
    kept: Kept,
    host: HostConfig,
    /// Released when all requests have ended.
    reservation: Option<Reservation>,
}

/// Answers that have come from the disk and were not taken yet.
#[derive(Default)]
struct Told(Mutex<VecDeque<Answer>>);

impl Told {
    // Locks the queue.
    fn answers(&self) -> MutexGuard<'_, VecDeque<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskBlade {
    /// Connects to a namespace over these paths, of which at least one must work. The calling
    /// thread is the one that uses the blade.
    pub(super) fn attach(paths: &[(&NvmeUri, &str)], timeout: Duration) -> Result<Self, FarError> {
        let uri = paths.iter().map(|path| path.1).collect::<Vec<_>>().join(",");
        let host = hold::host();
        let path = |&(target, _): &(&NvmeUri, &str)| DiskPath::Nvme(target.clone(), host.clone());
        let config = DiskConfig {
            paths: paths.iter().map(path).collect(),
            queues: 1,
            depth: 256,
            reconnect_delay: RECONNECT_DELAY,
            loss_timeout: timeout,
            io_timeout: IO_TIMEOUT,
            trusts_identity: false,
        };
        let disk = DrivenDisk::attach(config, Box::new(|_event: DiskEvent<'_>| {}))
            .map_err(|source| FarError::Connect { uri: uri.clone(), source })?;
        let geometry = disk.disk().geometry();
        let block = 1 << geometry.block_shift;
        if block > PAGE {
            return Err(FarError::Blocks { uri, bytes: block });
        }
        let pages = u32::try_from(geometry.bytes() / PAGE).unwrap_or(u32::MAX);
        let (told, kept) = (Arc::default(), Kept::default());
        Ok(Self { disk, uri, pages, extent: 0, told, kept, host, reservation: None })
    }

    /// Reserves the namespace; with `takes`, also from a run that holds it. Returns a warning if it
    /// cannot be reserved.
    pub(super) fn hold(
        &mut self,
        paths: &[(&NvmeUri, &str)],
        takes: bool,
    ) -> Result<Option<String>, FarError> {
        let (reservation, warning) = hold::hold(paths, &self.host, &self.uri, takes)?;
        self.reservation = reservation;
        Ok(warning)
    }

    /// The URIs of all paths.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    pub(super) const fn disk(&self) -> &Arc<Disk> {
        self.disk.disk()
    }

    // Begins a transfer of consecutive pages of the disk: a read if there is no data.
    fn ask(&mut self, first: u32, tokens: Vec<Token>, data: &[u8]) {
        let (told, uri) = (Arc::clone(&self.told), self.uri.clone());
        let is_read = data.is_empty();
        let operation = if is_read { Operation::Read } else { Operation::Write { forced: false } };
        let length = tokens.len() as u64 * PAGE;
        let request = Request { operation, offset: u64::from(first) * PAGE, length };
        let done = move |result: Result<&[u8], Failure>| {
            let fail = |why: String| Err(format!("--far {uri}: {why}"));
            let mut answers = told.answers();
            for (number, token) in tokens.into_iter().enumerate() {
                let at = number * PAGE_BYTES;
                let result = match &result {
                    Ok(_) if !is_read => Ok(None),
                    Ok(bytes) => match bytes.get(at..).and_then(<[u8]>::first_chunk) {
                        Some(page) => Ok(Some(Arc::new(*page))),
                        None => fail(format!("it answered with {} bytes", bytes.len())),
                    },
                    Err(failure) => fail(why(*failure)),
                };
                answers.push_back(Answer { token, result });
            }
        };
        self.disk.submit(request, data, Box::new(done));
    }
}

// The message for a failed transfer, with a remedy.
fn why(failure: Failure) -> String {
    match failure {
        Failure::NoSpace => "the blade is full: this run and others have all of its memory; give \
                             it more, have fewer runs, or give more --local"
            .to_owned(),
        Failure::Refused(bits) if Status::from_bits(bits).is(Status::RESERVATION_CONFLICT) => {
            "another run or host has taken it".to_owned()
        }
        failure => failure.to_string(),
    }
}

impl Blade for DiskBlade {
    fn pages(&self) -> u32 {
        self.pages
    }

    fn write(&mut self, token: Token, place: u32, bytes: &[u8; PAGE_BYTES]) {
        self.extent = self.extent.max(place.saturating_add(1));
        self.kept.write(token, place, bytes);
    }

    fn read(&mut self, token: Token, place: u32, wanted: Wanted) {
        match wanted {
            Wanted::Now => self.ask(place, vec![token], &[]),
            Wanted::Ahead => self.kept.read(token, place),
        }
    }

    fn flush(&mut self) {
        for Together { first, tokens, data } in self.kept.take() {
            self.ask(first, tokens, &data);
        }
        self.disk.turn();
    }

    fn release(&mut self, places: u32) {
        let places = places.max(self.extent);
        // A blade that does not support this has the pages until they are written again.
        let _kept = self.disk.discard(0, u64::from(places) * PAGE);
    }

    fn next(&mut self) -> Option<Answer> {
        let told = self.told.answers().pop_front();
        told.or_else(|| {
            self.disk.turn();
            self.told.answers().pop_front()
        })
    }

    fn bells(&self) -> Vec<BorrowedFd<'_>> {
        self.disk.bell().into_iter().collect()
    }

    fn acknowledge(&self) {
        self.disk.acknowledge();
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.disk.deadline_ns()
    }
}
