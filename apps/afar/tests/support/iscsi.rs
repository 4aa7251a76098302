//! A target of iSCSI to test initiators against: tgt's, with a control socket and a port of its
//! own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Launch, Running, installed, open_scratch, skip};

pub(crate) const IQN: &str = "iqn.2026-11.example:disk";
/// A user and what proves it, and the same of the target.
pub(crate) const USER: [&str; 2] = ["me", "a long enough secret"];
pub(crate) const TARGET_USER: [&str; 2] = ["it", "another long secret"];

/// See the module's description. Gone when dropped, with its disk.
pub(crate) struct Portal {
    image: PathBuf,
    port: u16,
    control: String,
    has_digests: bool,
    wants_proof: bool,
    running: Option<Running>,
}

impl Portal {
    /// With one disk of 64 MiB, in which blocks can be given back; none, loudly, where there is no
    /// target.
    pub(crate) fn start(test: &str, [has_digests, wants_proof]: [bool; 2]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip(test, "only root can start tgtd");
            return None;
        }
        if !installed(&["tgtd", "tgtadm"], test) {
            return None;
        }
        let image = open_scratch(&format!("iscsi-{test}-{}", std::process::id()));
        let file = fs::File::create(&image).expect("there is room for temporary files");
        file.set_len(64 << 20).expect("it can be made");
        let port = test_support::free_port();
        // Numbers of control sockets have 15 bits, as free ports have.
        let control = port.to_string();
        let mut portal = Self { image, port, control, has_digests, wants_proof, running: None };
        portal.restart();
        Some(portal)
    }

    /// Begins to serve, on the same port as before.
    pub(crate) fn restart(&mut self) {
        let portal = format!("portal={}", self.address());
        let words = ["tgtd", "-f", "-C", &self.control, "--iscsi", &portal];
        self.running = Some(Launch::new(words).start());
        let start = Instant::now();
        while !self.tell("--mode sys --op show") {
            assert!(start.elapsed() < Duration::from_secs(20), "tgtd does not answer");
            sleep(Duration::from_millis(20));
        }
        let image = self.image.display();
        let mut all = vec![
            format!("--mode target --op new --tid 1 -T {IQN}"),
            format!("--mode logicalunit --op new --tid 1 --lun 1 -b {image}"),
            "--mode logicalunit --op update --tid 1 --lun 1 --params thin_provisioning=1".into(),
        ];
        for digest in ["HeaderDigest", "DataDigest"].iter().filter(|_| self.has_digests) {
            all.push(format!("--mode target --op update --tid 1 -n {digest} -v CRC32C"));
        }
        if self.wants_proof {
            for ([name, _], way) in [(USER, ""), (TARGET_USER, " --outgoing")] {
                all.push(format!("--mode account --op bind --tid 1 --user {name}{way}"));
            }
            // Words of its own, for there are spaces in secrets.
            for [name, secret] in [USER, TARGET_USER] {
                let words = ["--mode", "account", "--op", "new", "--user", name, "--password"];
                assert!(self.tell_words(words.iter().copied().chain([secret])), "{name}");
            }
        }
        all.push("--mode target --op bind --tid 1 -I ALL".to_owned());
        for words in all {
            assert!(self.tell(&words), "tgtadm {words}");
        }
    }

    /// Ends at once.
    pub(crate) fn kill(&mut self) {
        let running = self.running.take().expect("it runs");
        running.signal("KILL");
        running.wait().leaves_nothing("a killed target");
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its disk.
    pub(crate) fn uri(&self) -> String {
        format!("iscsi://{}/{IQN}/1", self.address())
    }

    fn tell(&self, words: &str) -> bool {
        self.tell_words(words.split(' '))
    }

    fn tell_words<'a>(&self, words: impl Iterator<Item = &'a str>) -> bool {
        let mut command = Command::new("tgtadm");
        command.args(["-C", &self.control, "--lld", "iscsi"]).args(words);
        command.output().expect("it is installed with tgtd").status.success()
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
        let _absent = fs::remove_file(&self.image);
        for name in [format!("socket.{}", self.control), format!("socket.{}.lock", self.control)] {
            let _absent = fs::remove_file(PathBuf::from("/var/run/tgtd").join(name));
        }
    }
}
