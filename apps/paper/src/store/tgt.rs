//! Debian's tgt as the control: a target that is known to be slow.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Child;

use super::place::{Place, start};
use crate::{ReproduceError, programs};

/// A running tgtd; dropping it ends it.
pub(super) struct Tgt {
    pub(super) child: Child,
    port: u16,
    control: String,
}

const NAME: &str = "iqn.2026-11.local.afar:control";
/// How many numbers tgtd can have; its control socket has the number in its name.
const CONTROLS: u16 = 32_768;
const BEGUN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// Whether tgt is installed.
pub(super) fn is_installed() -> bool {
    programs::check(&[("tgtd", "tgt"), ("tgtadm", "tgt")]).is_ok()
}

impl Tgt {
    /// Starts tgtd and has it serve a file.
    ///
    /// # Errors
    /// When tgtd cannot be started, or tgtadm fails.
    pub(super) fn start(place: &Place, file: &Path) -> Result<Self, ReproduceError> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|one| one.local_addr());
        let failed = |source| ReproduceError::Start { program: "tgtd".to_owned(), source };
        let port = free.map_err(failed)?.port();
        let control = (port % CONTROLS).to_string();
        let portal = format!("portal=127.0.0.1:{port}");
        let mut command = place.command(Path::new("tgtd"));
        command.args(["-f", "-C", &control, "--iscsi", &portal]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let tgt = Self { child: start(command)?, port, control };
        let file = file.display().to_string();
        let create = ["--op", "new", "--mode", "target", "--tid", "1", "-T", NAME];
        let deadline = Instant::now() + BEGUN;
        while let Err(error) = tgt.tell(place, &create) {
            if Instant::now() > deadline {
                return Err(error);
            }
            sleep(LOOK);
        }
        let unit =
            ["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", &file];
        tgt.tell(place, &unit)?;
        tgt.tell(place, &["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"])?;
        Ok(tgt)
    }

    /// Runs tgtadm.
    fn tell(&self, place: &Place, words: &[&str]) -> Result<(), ReproduceError> {
        let beginning = ["tgtadm", "-C", &self.control, "--lld", "iscsi"];
        place.run(&[&beginning[..], words].concat()).map(drop)
    }

    /// The URI of its logical unit.
    pub(super) fn uri(&self) -> String {
        format!("iscsi://127.0.0.1:{}/{NAME}/1", self.port)
    }
}

impl Drop for Tgt {
    fn drop(&mut self) {
        let socket = format!("/var/run/tgtd/socket.{}", self.control);
        for path in [socket.clone(), socket + ".lock"] {
            let _absent = fs::remove_file(path);
        }
    }
}
