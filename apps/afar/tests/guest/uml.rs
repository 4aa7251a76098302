//! A User-Mode Linux on a network of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Launch, Running, full, installed, open_scratch, skip};

pub(crate) const AFAR: &str = env!("CARGO_BIN_EXE_afar");
/// This end of the network, by two addresses, and the guest's.
pub(crate) const HERE: &str = "10.0.3.2";
pub(crate) const HERE_TOO: &str = "10.0.3.3";
const THERE: &str = "10.0.3.15";
/// Longer than any script takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);
/// Longer than a script takes that has everything in it.
const FULL_LIMIT: Duration = Duration::from_secs(1_800);

fn limit() -> Duration {
    if full() { FULL_LIMIT } else { LIMIT }
}

/// A network namespace with a tap device, gone when dropped.
pub(crate) struct Network {
    name: String,
    guests: PathBuf,
}

/// A file that is served, gone when dropped.
pub(crate) struct Disk(PathBuf);

/// A guest that runs a script.
pub(crate) struct Guest {
    running: Running,
    directory: PathBuf,
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
}

impl Network {
    /// None, and said so, if there is no guest or no way to make a network.
    pub(crate) fn new(test: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(guests) = std::env::var_os("AFAR_GUEST_DIR").map(PathBuf::from) else {
            skip(test, "AFAR_GUEST_DIR does not name a directory with a guest");
            return None;
        };
        for file in ["linux-uml", "root.ext4"] {
            if !guests.join(file).exists() {
                skip(test, &format!("{} has no {file}", guests.display()));
                return None;
            }
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let network = Self { name: format!("afar-guest-{}-{number}", std::process::id()), guests };
        let name = network.name.as_str();
        let made = ip(&["netns", "add", name])
            && ip(&["-n", name, "link", "set", "lo", "up"])
            && ip(&["-n", name, "tuntap", "add", "dev", "tap0", "mode", "tap"])
            && ip(&["-n", name, "link", "set", "tap0", "up"])
            && network.join(HERE)
            && network.join(HERE_TOO)
            && ip(&["-n", name, "route", "add", THERE, "dev", "tap0"]);
        if !made {
            skip(test, "a network namespace with a tap device cannot be made here");
            return None;
        }
        Some(network)
    }

    /// Lets this end have this address, alone: without it the other stays.
    pub(crate) fn join(&self, address: &str) -> bool {
        ip(&["-n", &self.name, "addr", "add", &format!("{address}/32"), "dev", "tap0"])
    }

    /// What is sent to this address is lost from now on, in silence.
    pub(crate) fn cut(&self, address: &str) {
        let words = ["-n", &self.name, "addr", "del", &format!("{address}/32"), "dev", "tap0"];
        assert!(ip(&words), "{address} is cut");
    }

    // Words that begin a command inside it.
    fn inside(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    pub(crate) fn disk(&self, name: &str, bytes: u64) -> Disk {
        let path = open_scratch(&format!("guest-{name}"));
        let _old = fs::remove_file(&path);
        let file = fs::File::create(&path).expect("the scratch directory can be written to");
        file.set_len(bytes).expect("it takes no room yet");
        Disk(path)
    }

    /// A file that is not there yet.
    pub(crate) fn file(&self, name: &str) -> Disk {
        Disk(open_scratch(&format!("{}-{name}", self.name)))
    }

    pub(crate) fn serve(&self, disk: &Disk) -> Running {
        // QEMU reaches it from within, by loopback.
        self.serve_as(
            &format!("nqn.2026-11.local.afar:disk=file:{}", disk.0.display()),
            &["--nvme", "0.0.0.0:4420"],
        )
    }

    /// Serves what these words name.
    pub(crate) fn serve_as(&self, disk: &str, flags: &[&str]) -> Running {
        let words = [&[AFAR, "serve", disk], flags].concat();
        let (target, _ready) =
            Launch::new(self.inside().iter().chain(&words)).limit(limit()).serve();
        target
    }

    /// Whether another host than the guest can read, or write, what is served.
    pub(crate) fn bench(&self, rw: &str) -> bool {
        let uri = format!("nvme+tcp://{HERE}:4420/{}", crate::NQN);
        let way = format!("--rw={rw}");
        let words = [AFAR, "bench", &uri, &way, "--bs=4k", "--requests=16", "--quiet"];
        let bench = Launch::new(self.inside().iter().chain(&words)).limit(limit()).start();
        bench.wait().status == 0
    }

    /// Whether a machine can be emulated; says so if not.
    pub(crate) fn emulates(&self, test: &str) -> bool {
        let has_kernel =
            ["vmlinuz", "initrd.cpio"].iter().all(|file| self.guests.join(file).exists());
        if !has_kernel {
            skip(test, &format!("{} has no kernel for QEMU", self.guests.display()));
        }
        has_kernel && installed(&["qemu-system-x86_64"], test)
    }

    pub(crate) fn stop(&self, target: Running) {
        target.signal("INT");
        target.wait().expect(0, "afar serve").leaves_nothing("afar serve");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _reported = ip(&["netns", "del", &self.name]);
    }
}

impl Disk {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _absent = fs::remove_file(&self.0);
    }
}

// A directory that the guest sees, with its script.
fn prepare(network: &Network, script: &str) -> PathBuf {
    let directory = open_scratch(&format!("{}-run", network.name));
    let _old = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("the scratch directory can be written to");
    fs::write(directory.join("cmd.sh"), script).expect("it can be written to");
    fs::write(directory.join("out"), "").expect("it can be written to");
    directory
}

impl Guest {
    /// Begins to run a script as root in a guest of its own.
    pub(crate) fn boot(network: &Network, script: &str) -> Self {
        Self::boot_with(network, script, "", |_| ())
    }

    /// As [`Guest::boot`], with parameters of the kernel, and with what `lay` puts into the
    /// directory that the guest sees at /run-guest/io.
    pub(crate) fn boot_with(
        network: &Network,
        script: &str,
        kernel: &str,
        lay: impl FnOnce(&Path),
    ) -> Self {
        let directory = prepare(network, script);
        lay(&directory);
        let (run, guests) = (directory.display(), network.guests.display());
        let words = format!(
            "{guests}/linux-uml mem=1024M ubd0={run}/cow,{guests}/root.ext4 root=/dev/ubda rw \
             rootfstype=ext4 init=/run-guest/init con=null con0=null,fd:1 console=tty0 loglevel=4 \
             quiet random.trust_cpu=on rundir={run} umid=guest uml_dir={run} \
             vec0:transport=tap,ifname=tap0,depth=128,gro=1,mtu=1500 addr={THERE} gw={HERE} \
             {kernel}"
        );
        Self::start(network, words.split_whitespace().map(str::to_owned).collect(), directory)
    }

    /// As [`Guest::boot`], on an emulated machine with so many processors, which takes longer.
    pub(crate) fn emulate(
        network: &Network,
        script: &str,
        processors: u32,
        lay: impl FnOnce(&Path),
    ) -> Self {
        // The console is the machine's, not a file.
        let script = format!("exec > /run-guest/io/out 2>&1\n{script}");
        let directory = prepare(network, &script);
        lay(&directory);
        let (run, guests) = (directory.display(), network.guests.display());
        let words = format!(
            "qemu-system-x86_64 -M q35,usb=off -accel tcg,thread=multi -cpu max -m 1024 \
             -smp {processors} -nodefaults -no-user-config -display none -no-reboot \
             -kernel {guests}/vmlinuz -initrd {guests}/initrd.cpio \
             -drive file={guests}/root.ext4,format=raw,file.locking=off,if=virtio,\
             snapshot=on,cache=unsafe \
             -netdev user,id=n0 -device virtio-net-pci,netdev=n0,romfile= \
             -fsdev local,id=run,path={run},security_model=none \
             -device virtio-9p-pci,fsdev=run,mount_tag=run -device virtio-rng-pci -append"
        );
        let kernel = "quiet loglevel=4 panic=-1 mitigations=off nowatchdog random.trust_cpu=on";
        let words = words.split_whitespace().chain([kernel]).map(str::to_owned).collect();
        Self::start(network, words, directory)
    }

    fn start(network: &Network, words: Vec<String>, directory: PathBuf) -> Self {
        let inside = network.inside().map(str::to_owned);
        let launch = Launch::new(inside.into_iter().chain(words));
        let running = launch.env("TMPDIR", &directory).limit(limit()).start();
        Self { running, directory }
    }

    fn output(&self) -> String {
        fs::read_to_string(self.directory.join("out")).unwrap_or_default()
    }

    /// Waits until the script has printed `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_for_count(text, 1);
    }

    /// Waits until the script has printed `text` so many times.
    pub(crate) fn wait_for_count(&mut self, text: &str, count: u32) {
        let began = Instant::now();
        while self.output().matches(text).count() < count as usize {
            assert!(self.running.is_running(), "ended before {text:?}:\n{}", self.output());
            assert!(began.elapsed() < limit(), "no {text:?}:\n{}", self.output());
            sleep(Duration::from_millis(20));
        }
    }

    /// Makes an empty file in the directory that the guest sees.
    pub(crate) fn tell(&self, file: &str) {
        fs::write(self.directory.join(file), "").expect("it can be written to");
    }

    /// Waits for the end of the script; what it printed.
    pub(crate) fn wait(self) -> String {
        let ended = self.running.wait();
        let read = |file: &str| fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        let (output, status) = (read("out"), read("status"));
        let _reported = fs::remove_dir_all(&self.directory);
        assert_eq!(status.trim(), "0", "status of the script:\n{output}\n{}", ended.stderr);
        output
    }
}
