//! A guest of a disk: what it asks is done by the lane that serves it, but for changes of blocks
//! that are another lane's.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{ThreadId, current};

use backend::{Failure, MemoryBackend, Operation, Request};
use host::{Desk, Disk, DiskConfig, DiskPath, Guest, LocalDevice};
use measure::Duration;
use sys::event::Waker;

const STRIPE_BYTES: u64 = 4 << 20;

/// Which thread has served a guest, asked for what, and had which answer.
type Told = (ThreadId, ThreadId, Request, Result<usize, Failure>);

struct Asker {
    waker: Waker,
    asked: Vec<Request>,
    told: Sender<Told>,
}

impl Guest for Asker {
    fn descriptor(&self) -> &Arc<OwnedFd> {
        self.waker.descriptor()
    }

    fn serve(&mut self, desk: &mut dyn Desk) -> bool {
        for request in self.asked.drain(..) {
            let (told, served) = (self.told.clone(), current().id());
            let writes = matches!(request.operation, Operation::Write { .. });
            let data = vec![7; if writes { 512 } else { 0 }];
            let done = move |result: Result<&[u8], Failure>| {
                let _gone = told.send((served, current().id(), request, result.map(<[u8]>::len)));
            };
            desk.submit(request, &data, Box::new(done));
        }
        false
    }
}

#[test]
fn what_only_reads_is_done_by_the_lane_that_is_asked() {
    let backend = MemoryBackend::new(8 * STRIPE_BYTES, 9).expect("there is memory");
    let device = LocalDevice { name: "memory".to_owned(), backend: Arc::new(backend) };
    let config = DiskConfig {
        paths: vec![DiskPath::Local(device)],
        queues: 2,
        depth: 8,
        reconnect_delay: Duration::from_ms(1000),
        loss_timeout: Duration::from_ms(1000),
        io_timeout: Duration::from_ms(1000),
        trusts_identity: false,
    };
    let disk = Disk::attach(config, Box::new(|_| {})).expect("it is there");
    assert_eq!(disk.lane_count(), 2);
    let write = Operation::Write { forced: false };
    let asked: Vec<Request> = (0..8)
        .flat_map(|stripe| {
            let offset = stripe * STRIPE_BYTES;
            [Operation::Read, write].map(|operation| Request { operation, offset, length: 512 })
        })
        .chain([Request { operation: Operation::Flush, offset: 0, length: 0 }])
        .chain([Request { operation: Operation::Read, offset: u64::MAX, length: 512 }])
        .collect();
    let (sender, told) = channel();
    for lane in 0..2 {
        let waker = Waker::new().expect("there is a descriptor");
        waker.wake();
        disk.host(lane, Box::new(Asker { waker, asked: asked.clone(), told: sender.clone() }));
    }
    drop(sender);
    let told: Vec<Told> = told.iter().collect();
    assert_eq!(told.len(), 2 * asked.len());
    let mut elsewhere = 0;
    for (served, done, Request { operation, offset, length }, result) in told {
        let wanted = match operation {
            Operation::Read if offset == u64::MAX => Err(Failure::OutOfRange),
            Operation::Read => Ok(512),
            _ => Ok(0),
        };
        assert_eq!(result, wanted, "{operation:?} of {length} at {offset}");
        if operation == write {
            elsewhere += usize::from(served != done);
        } else {
            assert_eq!(served, done, "{operation:?} at {offset}");
        }
    }
    assert_eq!(elsewhere, 8, "of 16 writes, half are the other lane's");
}
