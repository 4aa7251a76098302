//! Stands between a host and a target, and may hold back what either says.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Connections that were made before the last hold are held until they are released.
#[derive(Default)]
struct Gate {
    /// How many holds there were, and how many have been released.
    holds: Mutex<[u64; 2]>,
    changed: Condvar,
    passed: AtomicU64,
}

impl Gate {
    // Until nothing is held of what was connected after so many holds.
    fn wait(&self, number: u64) {
        let holds = self.holds.lock().expect("nobody panics");
        let is_held = |holds: &mut [u64; 2]| holds[0] > number && holds[1] <= number;
        let _free = self.changed.wait_while(holds, is_held).expect("nobody panics");
    }
}

/// See the module's description. Connections that are made later are not held.
pub(crate) struct Proxy {
    address: SocketAddr,
    gate: Arc<Gate>,
}

impl Proxy {
    pub(crate) fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one");
        let gate = Arc::new(Gate::default());
        let of = Arc::clone(&gate);
        std::thread::spawn(move || {
            for host in listener.incoming() {
                let (Ok(host), Ok(target)) = (host, TcpStream::connect(target)) else { continue };
                let number = of.holds.lock().expect("nobody panics")[0];
                for (from, to) in [(&host, &target), (&target, &host)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let (Ok(from), Ok(to)) = (from, to) else { continue };
                    let gate = Arc::clone(&of);
                    std::thread::spawn(move || pass(from, to, number, &gate));
                }
            }
        });
        Self { address, gate }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Nothing passes over connections that there are, until they are released.
    pub(crate) fn hold(&self) {
        self.gate.holds.lock().expect("nobody panics")[0] += 1;
    }

    /// Everything passes that was held.
    pub(crate) fn release(&self) {
        let mut holds = self.gate.holds.lock().expect("nobody panics");
        holds[1] = holds[0];
        self.gate.changed.notify_all();
    }

    /// Bytes that have passed, either way.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.gate.passed.load(Ordering::Relaxed)
    }
}

// Until one of them ends. What one has sent before it ended passes, and so does its end.
fn pass(mut from: TcpStream, mut to: TcpStream, number: u64, gate: &Gate) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        gate.wait(number);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
        gate.passed.fetch_add(count as u64, Ordering::Relaxed);
    }
    gate.wait(number);
    let _gone = to.shutdown(Shutdown::Both);
}
