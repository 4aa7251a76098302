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

/// Time limit of short programs.
pub(crate) const SHORT: Duration = Duration::from_secs(30);
/// Time limit of measured programs.
pub(crate) const LONG: Duration = Duration::from_secs(300);
/// How many characters of a failed program's output an error shows.
const TAIL_CHARS: usize = 400;

/// A running child process. Dropping the job kills it, and so does the kernel when this process
/// ends.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    program: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Job {
    /// Starts `command` with its output in files. Call it from the main thread only: the kernel
    /// kills the child when the thread that started it ends.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(context: &Context, command: &[OsString]) -> Result<Self, Failure> {
        Self::spawn(context, command, None, Stdio::null())
    }

    /// As [`Job::start`], with `stdin` as the child's standard input.
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

    /// Starts `command` by `setpriv`, which has the kernel kill it when this process ends.
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

    /// Kills the child.
    pub(crate) fn kill(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }

    /// Fails if the child has ended, for callers that wait until it is ready.
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

    /// Waits for the child's end. Returns its standard output.
    ///
    /// # Errors
    /// When it fails, or takes longer than `limit` and is killed.
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

    /// The failure that the child did not `what` within `limit`.
    pub(crate) fn too_slow(&self, what: &'static str, limit: Duration) -> Failure {
        Failure::TooSlow {
            program: self.program.clone(),
            what,
            limit_s: limit.as_secs(),
            said: self.said(),
        }
    }

    /// The failure that the child ended with `status`.
    fn ended(&self, status: ExitStatus) -> Failure {
        Failure::Ended { program: self.program.clone(), status, said: self.said() }
    }

    // The end of the child's output, on one line.
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

/// The path of `program`, searched on PATH.
///
/// # Errors
/// When it is not on PATH; the error names the Debian `package`.
pub(crate) fn find(program: &'static str, package: &'static str) -> Result<OsString, Failure> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .map(PathBuf::into_os_string)
        .ok_or(Failure::Missing { program, package })
}

/// The file name in a path.
fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
