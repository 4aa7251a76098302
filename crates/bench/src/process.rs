//! Child processes that cannot outlive this one.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sys::event::Poll;
use sys::group::Group;

use crate::context::Context;
use crate::failure::Failure;

/// For what takes a moment.
pub(crate) const SHORT: Duration = Duration::from_secs(30);
/// For what is measured.
pub(crate) const LONG: Duration = Duration::from_secs(300);
/// How much of a failed program's output is shown.
const TAIL_CHARS: usize = 400;

/// A running child. It is killed when this is dropped, and by the kernel when this process ends in
/// any way.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    program: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Job {
    /// Starts `command`, its output going to files. Call from the main thread only: the kernel
    /// kills the child when the thread that started it ends.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(context: &Context, command: &[OsString]) -> Result<Self, Failure> {
        Self::spawn(context, command, None, Stdio::null())
    }

    /// As [`Job::start`], with this as its standard input.
    ///
    /// # Errors
    /// As [`Job::start`].
    pub(crate) fn start_from(
        context: &Context,
        command: &[OsString],
        stdin: Stdio,
    ) -> Result<Self, Failure> {
        Self::spawn(context, command, None, stdin)
    }

    /// As [`Job::start`], in a memory control group.
    ///
    /// # Errors
    /// As [`Job::start`], or when the group is gone.
    pub(crate) fn start_in(
        context: &Context,
        command: &[OsString],
        group: Option<&Group>,
    ) -> Result<Self, Failure> {
        Self::spawn(context, command, group, Stdio::null())
    }

    fn spawn(
        context: &Context,
        command: &[OsString],
        group: Option<&Group>,
        stdin: Stdio,
    ) -> Result<Self, Failure> {
        let program = command
            .iter()
            .map(|word| word.to_string_lossy())
            .next()
            .map_or_else(String::new, |path| name_of(&path));
        let (stdout, stderr) = (context.fresh("out"), context.fresh("err"));
        let create = |path: &Path| File::create(path).map_err(Failure::file("create", path));
        let mut starting = Command::new("setpriv");
        if let Some(group) = group {
            group.hold(&mut starting)?;
        }
        let child = starting
            .args(["--pdeathsig", "KILL", "--"])
            .args(command)
            .current_dir(context.directory())
            .stdin(stdin)
            .stdout(create(&stdout)?)
            .stderr(create(&stderr)?)
            .spawn()
            .map_err(|source| Failure::NotStarted {
                program: format!("setpriv (of util-linux) for {program}"),
                source,
            })?;
        Ok(Self { child, program, stdout, stderr })
    }

    /// Process id of the child.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the child at once.
    pub(crate) fn kill(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }

    /// Fails if the child has ended, for those who wait for it to become ready.
    ///
    /// # Errors
    /// With its status and output when it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(source) => Err(Failure::NotStarted { program: self.program.clone(), source }),
        }
    }

    /// Waits for the end; the answer is what it printed on standard output.
    ///
    /// # Errors
    /// When it fails or takes longer than `limit`; it is dead then.
    pub(crate) fn finish(mut self, limit: Duration) -> Result<String, Failure> {
        let deadline = Instant::now() + limit;
        let ended = sys::process::watch(self.child.id())?;
        let mut poll = Poll::new()?;
        poll.add(&ended, 0)?;
        let mut ready = Vec::new();
        while ready.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.too_slow("end", limit));
            }
            poll.wait(Some(left), &mut ready)?;
        }
        let status = self
            .child
            .wait()
            .map_err(|source| Failure::NotStarted { program: self.program.clone(), source })?;
        if !status.success() {
            return Err(self.ended(status));
        }
        std::fs::read_to_string(&self.stdout).map_err(Failure::file("read", &self.stdout))
    }

    /// The failure to be `what` in time.
    pub(crate) fn too_slow(&self, what: &'static str, limit: Duration) -> Failure {
        Failure::TooSlow {
            program: self.program.clone(),
            what,
            limit_s: limit.as_secs(),
            said: self.said(),
        }
    }

    fn ended(&self, status: ExitStatus) -> Failure {
        Failure::Ended { program: self.program.clone(), status, said: self.said() }
    }

    // The end of its output, on one line.
    fn said(&self) -> String {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let all = read(&self.stderr) + &read(&self.stdout);
        let words: Vec<&str> = all.split_whitespace().collect();
        let text = words.join(" ");
        let skipped = text.chars().count().saturating_sub(TAIL_CHARS);
        match text.chars().skip(skipped).collect::<String>() {
            nothing if nothing.is_empty() => "(nothing)".to_owned(),
            some => some,
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The path of a program on PATH.
///
/// # Errors
/// When there is none; the remedy names the Debian package.
pub(crate) fn find(program: &'static str, package: &'static str) -> Result<OsString, Failure> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .map(PathBuf::into_os_string)
        .ok_or(Failure::Missing { program, package })
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
