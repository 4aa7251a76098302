//! Targets that state where they serve.

use std::ffi::OsString;

use launch::Ready;

use super::{Launch, Running};

impl Launch {
    /// Starts `afar serve` and waits until it serves.
    pub(crate) fn serve(mut self) -> (Running, Ready) {
        let shell = ["sh", "-c", "exec \"$@\" 3>&1", "sh"].iter().map(OsString::from);
        let flag = ["--ready-fd", "3"].iter().map(OsString::from);
        self.words = shell.chain(std::mem::take(&mut self.words)).chain(flag).collect();
        let mut running = self.start();
        running.wait_for(Ready::SCHEMA);
        running.wait_for("}\n");
        let output = running.output();
        let ready = output.lines().find_map(Ready::parse).expect("it states where it serves");
        (running, ready)
    }
}
