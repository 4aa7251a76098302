//! What every backend does, whatever is behind it.

use std::sync::Arc;

use backend::{
    Backend, BackendUri, Claim, Failure, FileBackend, MemoryBackend, NullBackend, Opening,
    Operation, Request,
};
use backend::{Ended, Job, Jobs};
use sys::block::Block;
use sys::clock::monotonic_ns;
use sys::ring::Ring;
use test_support::skip;

use crate::Scratch;

/// Does one request after another.
struct Doer {
    backend: Arc<dyn Backend>,
    ring: Ring,
    jobs: Jobs<u32>,
}

impl Doer {
    fn new(backend: Arc<dyn Backend>) -> Self {
        let ring = Ring::new(16).expect("there is io_uring");
        Self { backend, ring, jobs: Jobs::new(0) }
    }

    fn start(&mut self, request: Request, data: Option<&[u8]>, tag: u32) -> Option<Ended<u32>> {
        let block = data.map(|data| {
            let mut block = Block::new(data.len());
            block[..data.len()].copy_from_slice(data);
            block
        });
        let job = Job { backend: Arc::clone(&self.backend), request, block, tag };
        self.jobs.start(&mut self.ring, job, monotonic_ns())
    }

    fn next(&mut self) -> Ended<u32> {
        loop {
            let now_ns = monotonic_ns();
            if let Some(ended) = self.jobs.next_due(now_ns) {
                return ended;
            }
            while let Some(completed) = self.ring.take_ended() {
                if let Some(ended) = self.jobs.complete(&mut self.ring, completed, now_ns) {
                    return ended;
                }
            }
            self.ring.wait_until(self.jobs.deadline_ns()).expect("it waits");
        }
    }

    fn run(&mut self, request: Request, data: Option<&[u8]>) -> Ended<u32> {
        self.start(request, data, 7).unwrap_or_else(|| self.next())
    }

    fn write(&mut self, offset: u64, data: &[u8], forced: bool) {
        let operation = Operation::Write { forced };
        let request = Request { operation, offset, length: data.len() as u64 };
        self.run(request, Some(data)).result.expect("it is written");
    }

    fn read(&mut self, offset: u64, bytes: usize) -> Vec<u8> {
        // What was in the memory before is not taken for an answer.
        let old = vec![0xee; bytes];
        let request = Request { operation: Operation::Read, offset, length: bytes as u64 };
        let ended = self.run(request, Some(&old));
        ended.result.expect("it is read");
        ended.block.expect("it comes back")[..bytes].to_vec()
    }

    fn no_data(&mut self, operation: Operation, offset: u64, length: u64) {
        let ended = self.run(Request { operation, offset, length }, None);
        assert_eq!((ended.result, ended.tag), (Ok(()), 7), "{operation:?}");
    }
}

fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let byte = |at: u64| (at * 31 + seed).to_le_bytes()[0] ^ (at >> 9).to_le_bytes()[0];
    (0..bytes as u64).map(byte).collect()
}

/// Everything that any backend must do; `keeps` says whether what is written can be read.
fn conforms(backend: Arc<dyn Backend>, keeps: bool) {
    let geometry = backend.geometry();
    let block = geometry.block_bytes() as usize;
    assert!(geometry.bytes() >= 4 << 20, "room for the cases");
    assert_eq!(geometry.optimal_bytes as usize % block, 0);
    assert_eq!(geometry.atomic_bytes as usize % block, 0);
    let mut doer = Doer::new(backend);
    assert_eq!(doer.read(0, block), vec![0; block], "a new device is zeros");
    // One block, a piece that begins in the middle of a page, and a large one, to the very end.
    let end = usize::try_from(geometry.bytes()).expect("it fits");
    for (at, bytes) in
        [(0, block), (3 * block, 17 * block), (1 << 20, 1 << 20), (end - block, block)]
    {
        let data = pattern(bytes, at as u64);
        doer.write(at as u64, &data, at == 0);
        let read = doer.read(at as u64, bytes);
        assert_eq!(read, if keeps { data } else { vec![0; bytes] }, "{bytes} at {at}");
    }
    doer.no_data(Operation::Flush, 0, 0);
    // Zeros in the middle leave both sides.
    let data = pattern(1 << 20, 5);
    let forced = |deallocates| Operation::Zero { deallocates, forced: true };
    let cases = [forced(false), forced(true), Operation::Discard];
    for operation in cases {
        doer.write(2 << 20, &data, false);
        let (from, bytes) = (block, (1 << 20) - 3 * block);
        doer.no_data(operation, ((2 << 20) + from) as u64, bytes as u64);
        let read = doer.read(2 << 20, 1 << 20);
        let mut expected = if keeps { data.clone() } else { vec![0; 1 << 20] };
        expected[from..from + bytes].fill(0);
        assert!(read == expected, "{operation:?}");
    }
    many_at_once(&mut doer, block, keeps);
}

// Each ends once, with its own bytes.
fn many_at_once(doer: &mut Doer, block: usize, keeps: bool) {
    let data: Vec<Vec<u8>> = (0..64).map(|tag| pattern(block, 1000 + tag)).collect();
    let mut ended = Vec::new();
    for pass in [Operation::Write { forced: false }, Operation::Read] {
        ended.clear();
        for (tag, data) in (0..).zip(&data) {
            let offset = u64::from(tag) * block as u64;
            let request = Request { operation: pass, offset, length: block as u64 };
            ended.extend(doer.start(request, Some(data), tag));
        }
        while ended.len() < data.len() {
            ended.push(doer.next());
        }
        assert!(doer.jobs.is_empty());
    }
    ended.sort_by_key(|ended| ended.tag);
    let zeros = vec![0; block];
    for (ended, data) in ended.iter().zip(&data) {
        ended.result.expect("it is read");
        let read = &ended.block.as_ref().expect("it comes back")[..block];
        assert!(read == if keeps { &data[..] } else { &zeros[..] }, "{}", ended.tag);
    }
}

#[test]
fn null_conforms() {
    conforms(Arc::new(NullBackend::new(1 << 40, 9)), false);
    conforms(Arc::new(NullBackend::new(8 << 20, 12)), false);
}

#[test]
fn memory_conforms() {
    for shift in [9, 12] {
        let backend = MemoryBackend::new(8 << 20, shift).expect("there is memory");
        conforms(Arc::new(backend), true);
    }
}

#[test]
fn a_file_conforms_and_keeps_what_was_written() {
    let directory = std::env::temp_dir();
    for directory in [directory.to_str().expect("paths here are text"), "/dev/shm"] {
        let scratch = Scratch::new(directory);
        sys::disk::Disk::create(scratch.path(), 8 << 20).expect("it can be made");
        let open = || {
            FileBackend::open(scratch.path(), None, Opening::default()).expect("it can be opened")
        };
        conforms(Arc::new(open()), true);
        let mut doer = Doer::new(Arc::new(open()));
        let block = doer.backend.geometry().block_bytes() as usize;
        assert_eq!(doer.read(63 * block as u64, block), pattern(block, 1063), "{directory}");
    }
}

#[test]
fn a_file_that_has_grown_or_shrunk_is_as_it_is() {
    let scratch = Scratch::new("/dev/shm");
    sys::disk::Disk::create(scratch.path(), 8 << 20).expect("it can be made");
    let backend = Arc::new(
        FileBackend::open(scratch.path(), None, Opening::default()).expect("it can be opened"),
    );
    let file = std::fs::File::options().write(true).open(scratch.path()).expect("it is there");
    file.set_len(16 << 20).expect("it can grow");
    assert_eq!(backend.geometry().bytes(), 8 << 20, "nobody has looked");
    backend.refresh();
    assert_eq!(backend.geometry().bytes(), 16 << 20);
    file.set_len(4096).expect("it can shrink");
    let mut doer = Doer::new(backend);
    let request = Request { operation: Operation::Read, offset: 1 << 20, length: 4096 };
    let ended = doer.run(request, Some(&[0; 4096]));
    assert_eq!(ended.result, Err(Failure::Medium), "the file ends before");
}

#[test]
fn a_full_disk_says_so() {
    // A file system of its own, too small for its file.
    let mount = Scratch::new("/tmp");
    std::fs::create_dir(mount.path()).expect("a directory");
    let path = mount.path().to_str().expect("paths here are text").to_owned();
    let run = |program: &str, arguments: &[&str]| {
        let done = std::process::Command::new(program).args(arguments).status();
        done.is_ok_and(|status| status.success())
    };
    if !run("mount", &["-t", "tmpfs", "-o", "size=1m", "none", &path]) {
        skip("a_full_disk_says_so", "mounting needs root");
        std::fs::remove_dir(&path).expect("it was made");
        return;
    }
    let disk = mount.path().join("disk");
    sys::disk::Disk::create(&disk, 8 << 20).expect("it takes no room yet");
    let uri: BackendUri = format!("file:{}", disk.display()).parse().expect("it is one");
    let mut doer = Doer::new(uri.open(Claim::Alone).expect("it can be opened"));
    let operation = Operation::Write { forced: false };
    let request = Request { operation, offset: 0, length: 4 << 20 };
    let result = doer.run(request, Some(&vec![1; 4 << 20])).result;
    drop(doer);
    assert!(run("umount", &[&path]), "it was mounted");
    std::fs::remove_dir(&path).expect("it was made");
    assert_eq!(result, Err(Failure::NoSpace));
}
