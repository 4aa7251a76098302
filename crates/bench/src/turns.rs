//! Programs that run at the same time and take turns of a few milliseconds.
//!
//! The time of a page fault changes within a minute by more than afar adds to it, so programs that
//! run one after the other see different conditions. Consecutive turns see the same.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::context::Context;
use crate::failure::Failure;
use crate::far::{Outcome, Place, Placed};
use crate::process::{LONG, SHORT};

/// The program's end: waits for its turns on standard input, a socket, and ends them there.
#[derive(Debug)]
pub(crate) struct Baton {
    /// `None` for a program that runs alone.
    parent: Option<UnixStream>,
    is_held: bool,
}

impl Baton {
    /// A baton; without `takes_turns` it never waits.
    ///
    /// # Errors
    /// When there is no standard input.
    pub(crate) fn new(takes_turns: bool) -> Result<Self, Failure> {
        let stdin = || std::io::stdin().as_fd().try_clone_to_owned();
        let parent = takes_turns.then(stdin).transpose();
        let parent = parent.map_err(Failure::file("use", "standard input"))?;
        Ok(Self { parent: parent.map(UnixStream::from), is_held: false })
    }

    /// Ends the current turn, if there is one, and waits for the next.
    pub(crate) fn next(&mut self) {
        self.hand_back();
        if let Some(parent) = &mut self.parent {
            // If the parent has gone, the program just goes on.
            self.is_held = parent.read_exact(&mut [0]).is_ok();
        }
    }

    /// Tells the parent that the turn is over, if there is one.
    fn hand_back(&mut self) {
        if let Some(parent) = &mut self.parent
            && std::mem::take(&mut self.is_held)
        {
            let _gone = parent.write_all(&[0]);
        }
    }
}

impl Drop for Baton {
    fn drop(&mut self) {
        self.hand_back();
    }
}

/// Programs that take turns: one runs at a time.
pub(crate) struct Turns {
    programs: Vec<(Placed, UnixStream)>,
}

impl Turns {
    /// Starts programs that wait for their turns with a [`Baton`].
    ///
    /// # Errors
    /// When one cannot be started.
    pub(crate) fn start(
        context: &Context,
        programs: &[(Place, Vec<OsString>)],
    ) -> Result<Self, Failure> {
        let start = |(place, program): &(Place, Vec<OsString>)| {
            let (ours, theirs) =
                UnixStream::pair().map_err(Failure::file("create", "a pair of sockets"))?;
            ours.set_read_timeout(Some(SHORT)).map_err(Failure::file("use", "a socket"))?;
            let stdin = Stdio::from(std::os::fd::OwnedFd::from(theirs));
            Ok((place.start_from(context, program, stdin)?, ours))
        };
        Ok(Self { programs: programs.iter().map(start).collect::<Result<_, Failure>>()? })
    }

    /// Gives each program one turn, in their order or in the opposite one.
    ///
    /// # Errors
    /// When one fails, or does not end its turn in time.
    pub(crate) fn round(&mut self, backwards: bool) -> Result<(), Failure> {
        let count = self.programs.len();
        for step in 0..count {
            let index = if backwards { count - 1 - step } else { step };
            let (placed, line) = &mut self.programs[index];
            if line.write_all(&[0]).is_err() || line.read_exact(&mut [0]).is_err() {
                placed.job.check()?;
                return Err(placed.job.too_slow("take its turn", SHORT));
            }
        }
        Ok(())
    }

    /// Waits until all programs have ended. Returns their results in the order of the start.
    ///
    /// # Errors
    /// When one fails, or its run is invalid.
    pub(crate) fn finish(self) -> Result<Vec<Outcome>, Failure> {
        self.programs.into_iter().map(|(placed, _line)| placed.finish(LONG)).collect()
    }
}
