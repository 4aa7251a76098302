//! A process that ends with its owner.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdout, Command, ExitStatus};
use std::time::Instant;

use sys::event::{SIGTERM, wait_for};

const SIGKILL: i32 = 9;

/// A process and its group. Dropping it kills both.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// Whether it was waited for: then another process may have its number.
    is_reaped: bool,
}

/// Why a wait is over.
#[derive(Debug)]
pub enum Waited {
    /// The child has ended.
    Ended(ExitStatus),
    /// The other descriptor became readable.
    Woken,
    /// The deadline passed.
    Late,
}

impl Child {
    /// Starts `command` in a process group of its own, so that Ctrl-C reaches this process only.
    /// The kernel kills the child when the calling thread ends.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        sys::process::die_with_caller(&mut command);
        command.spawn().map(|process| Self { process, is_reaped: false })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Takes the read end of the standard output; `None` if that is no pipe, or was taken.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    /// Reads the standard error to the end; empty if that is no pipe.
    pub fn errors(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.process.stderr {
            let _partly = stderr.read_to_string(&mut text);
        }
        text.trim().to_owned()
    }

    /// Sends SIGTERM to the child.
    pub fn terminate(&self) {
        let _ended_already = sys::process::kill(self.id(), SIGTERM);
    }

    /// Waits until the child ends, `wake` is readable, or `deadline` has passed.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn wait(&mut self, wake: BorrowedFd<'_>, deadline: Option<Instant>) -> sys::Result<Waited> {
        let ended = sys::process::watch(self.id())?;
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let [has_ended, is_woken] = wait_for([ended.as_fd(), wake], left)?;
            if has_ended {
                return self.reap().map(Waited::Ended);
            }
            if is_woken {
                return Ok(Waited::Woken);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Waited::Late);
            }
        }
    }

    /// Waits until the child ends.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn finish(&mut self) -> sys::Result<ExitStatus> {
        let ended = sys::process::watch(self.id())?;
        while wait_for([ended.as_fd()], None)? == [false] {}
        self.reap()
    }

    // Kills the rest of its process group, and waits for its exit status.
    fn reap(&mut self) -> sys::Result<ExitStatus> {
        let _none_left = sys::process::kill_group(self.id(), SIGKILL);
        self.is_reaped = true;
        self.process.wait().map_err(|error| sys::Error::new("wait for a child", error))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            // The group first: it may not exist yet, or have no other process left.
            let _none_left = sys::process::kill_group(self.id(), SIGKILL);
            let _ended_already = self.process.kill();
            let _reaped = self.process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;
    use std::time::Duration;

    use sys::event::Waker;

    use super::*;

    fn start(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        Child::start(command).expect("there is a shell")
    }

    fn is_running(pid: u32) -> bool {
        sys::process::kill(pid, 0).is_ok()
    }

    #[test]
    fn child_dropped_is_gone() {
        let child = start("sleep 600");
        let pid = child.id();
        assert!(is_running(pid));
        drop(child);
        assert!(!is_running(pid));
    }

    #[test]
    fn child_that_ended_leaves_no_group() {
        let mut child = start("sleep 600 & echo $!");
        let mut line = String::new();
        let output = child.output().expect("it has a pipe");
        BufReader::new(output).read_line(&mut line).expect("it prints a number");
        let pid: u32 = line.trim().parse().expect("a number");
        assert!(child.finish().expect("it ends").success());
        // Its new parent takes a moment to reap it.
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        let until = Instant::now() + Duration::from_secs(10);
        while !gone() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(gone(), "{pid} still runs");
    }

    #[test]
    fn wait_says_what_came_first() {
        let waker = Waker::new().expect("there are descriptors");
        let soon = Some(Instant::now() + Duration::from_millis(20));
        let wait = |child: &mut Child, deadline| {
            child.wait(waker.descriptor().as_fd(), deadline).expect("it can wait")
        };
        let mut child = start("sleep 600");
        assert!(matches!(wait(&mut child, soon), Waited::Late));
        let mut ended = start("exit 3");
        let Waited::Ended(status) = wait(&mut ended, None) else { panic!("it has ended") };
        assert_eq!(status.code(), Some(3));
        waker.wake();
        assert!(matches!(wait(&mut child, None), Waited::Woken));
    }
}
