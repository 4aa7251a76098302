//! Output and exit status of commands: the only crate that prints.
//!
//! ```text
//! result ─► layout ─► Output ─► file or terminal::answer      message ─► terminal::say, Line
//! error with a class ─► Failure ─► exit status                clap's error ─► usage::sentence
//! ```
//!
//! * A command returns its exit status or a [`Failure`]; `main` prints the failure and exits.
//! * An error implements [`Classed`] beside its definition, so this crate names no command.
//! * Results go to standard output and files, everything else to standard error.
//! * How much is printed is the user's choice for the whole process ([`SpeechFlags`]): applications
//!   pass all messages, and this crate leaves out those that the user does not want.

pub mod layout;
pub mod machine;
pub mod terminal;
pub mod usage;

mod directory;
mod failure;
mod grid;
mod line;
mod output;
mod progress;
mod screen;
mod signals;
mod speech;

pub use directory::Directory;
pub use failure::{Class, Classed, Failure};
pub use grid::csv_of;
pub use line::Line;
pub use output::{Form, Lines, Output, OutputError, answer, answer_bytes};
pub use progress::{Progress, clock};
pub use screen::Screen;
pub use signals::{interrupts, interrupts_and_hangups};
pub use speech::{SpeechFlags, Stream, Tone, When, has_color, is_quiet, is_verbose, tinted};
