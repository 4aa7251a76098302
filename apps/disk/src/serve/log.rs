//! The log of events on standard error: for a terminal, a file, or the journal.
//!
//! Invariants:
//! - At most [`LINES_MAX`] lines of a kind in [`PERIOD_NS`]; how many more there were is logged
//!   when the period ends.
//! - The only bytes of a line that a peer chooses are the printable ones of its name.

use console::terminal;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::ValueEnum;
use target::{Event, Happening};

/// Most lines of a kind in a period.
const LINES_MAX: u64 = 10;
const PERIOD_NS: u64 = 10_000_000_000;

/// Which events are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// Devices that have lost data, nothing of what hosts do
    Error,
    /// Refusals, broken rules, deadlines and limits
    Warning,
    /// Also who comes and goes
    Info,
}

/// The format of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As afar's other messages on a terminal.
    Terminal,
    /// With the time, for a file or a pipe.
    File,
    /// With a priority; the journal knows the time (sd-daemon(3)).
    Journal,
}

/// Lines of one kind in the current period; `untold` were not logged.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    since_ns: u64,
    lines: u64,
    untold: u64,
}

/// Formats events as lines, at a limited rate.
#[derive(Debug)]
pub(crate) struct Log {
    level: Level,
    style: Style,
    windows: [Window; Happening::ALL.len()],
}

impl Log {
    /// A log to standard error.
    pub(crate) fn new(level: Level) -> Self {
        Self { level, style: style(), windows: <_>::default() }
    }

    /// Lines for `events`, and for periods that have ended. `untold` counts further events, which
    /// the witness had no room for.
    pub(crate) fn lines(
        &mut self,
        events: &[Event],
        untold: &[(Happening, u64)],
        now_ns: u64,
    ) -> String {
        let mut text = self.end_periods(now_ns);
        for event in events {
            let is_told = level(event.what) <= self.level && {
                let window = &mut self.windows[event.what as usize];
                if window.lines == 0 {
                    window.since_ns = now_ns;
                }
                window.lines += 1;
                window.untold += u64::from(window.lines > LINES_MAX);
                window.lines <= LINES_MAX
            };
            if is_told {
                self.line(&mut text, level(event.what), &described(event));
            }
        }
        for (what, count) in untold.iter().filter(|(what, _)| level(*what) <= self.level) {
            self.windows[*what as usize].untold += count;
        }
        text
    }

    /// Lines for periods that have ended with events that were not logged.
    pub(crate) fn end_periods(&mut self, now_ns: u64) -> String {
        let mut text = String::new();
        for what in Happening::ALL {
            let window = self.windows[what as usize];
            if window.since_ns + PERIOD_NS <= now_ns {
                if window.untold > 0 {
                    let count = window.untold;
                    let more = format!("{}: {count} more in the last 10 s", what.name());
                    self.line(&mut text, level(what), &more);
                }
                self.windows[what as usize] = Window::default();
            }
        }
        text
    }

    /// When the next period ends in which events were not logged; `None` if there is none.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let open = self.windows.iter().filter(|window| window.untold > 0);
        open.map(|window| window.since_ns + PERIOD_NS).min()
    }

    // Appends a line in the log's style.
    fn line(&self, text: &mut String, level: Level, what: &str) {
        let _infallible = match self.style {
            Style::Terminal => writeln!(text, "afar: {what}"),
            Style::File => {
                let now = DateTime::<Utc>::from(SystemTime::now());
                writeln!(text, "{} afar: {what}", now.to_rfc3339_opts(SecondsFormat::Millis, true))
            }
            // LOG_ERR, LOG_WARNING and LOG_INFO of syslog(3).
            Style::Journal if level == Level::Error => writeln!(text, "<3>{what}"),
            Style::Journal if level == Level::Warning => writeln!(text, "<4>{what}"),
            Style::Journal => writeln!(text, "<6>{what}"),
        };
    }
}

// The level of an event.
const fn level(what: Happening) -> Level {
    match what {
        Happening::LoggedIn | Happening::Left => Level::Info,
        Happening::Lost => Level::Error,
        _ => Level::Warning,
    }
}

// The text of an event: what happened, the host, its address, and why.
fn described(event: &Event) -> String {
    let mut text = event.what.name().to_owned();
    if let Some(host) = &event.host {
        text += &format!(": {host}");
    }
    if let Some(peer) = event.peer {
        text += &format!("{} {peer}", if event.host.is_some() { " at" } else { ":" });
    }
    let why = match event.what {
        Happening::WrongSecret => "it has not proved who it is".to_owned(),
        Happening::LateData => "data it was asked for has not come in time".to_owned(),
        Happening::Unread => "it does not read what it is sent".to_owned(),
        Happening::Silent => "it has not said what it is for".to_owned(),
        Happening::Expired => "no keep-alive has come in time".to_owned(),
        Happening::Evicted => "it made room for others".to_owned(),
        Happening::Fenced => {
            "its host lost its way to it, and had another controller end it".to_owned()
        }
        Happening::Full => "there are as many connections as --limit connections allows".to_owned(),
        Happening::Lost => format!(
            "the device of {} has failed to keep what was written; flushes and forced writes fail \
             from now on: check the device, and serve it anew",
            event.why
        ),
        _ => event.why.to_string(),
    };
    if !why.is_empty() {
        text += &format!(": {why}");
    }
    text
}

// The style for standard error. It is the journal's if JOURNAL_STREAM names its device and inode
// (systemd.exec(5)).
fn style() -> Style {
    let stream = std::env::var("JOURNAL_STREAM").ok();
    let own = std::fs::metadata("/proc/self/fd/2").ok();
    let own = own.map(|file| format!("{}:{}", file.dev(), file.ino()));
    if stream.is_some() && stream == own {
        Style::Journal
    } else if terminal::is_terminal() {
        Style::Terminal
    } else {
        Style::File
    }
}

#[cfg(test)]
mod tests {
    use target::Why;

    use super::*;

    fn event(what: Happening, host: Option<&str>) -> Event {
        let peer = Some("10.0.0.1:5000".parse().expect("an address"));
        Event { what, why: Why::Plain, peer, host: host.map(Into::into) }
    }

    fn log(level: Level) -> Log {
        Log { style: Style::Terminal, ..Log::new(level) }
    }

    #[test]
    fn a_flood_is_ten_lines_and_a_number() {
        let mut log = log(Level::Warning);
        let flood = vec![event(Happening::Violation, None); 500];
        let text = log.lines(&flood, &[(Happening::Violation, 1000)], 5);
        assert_eq!(text.lines().count(), 10, "{text}");
        assert_eq!(log.next_ns(), Some(5 + PERIOD_NS));
        let text = log.lines(&[event(Happening::Violation, None)], &[], 5 + PERIOD_NS);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "afar: violation: 1490 more in the last 10 s");
        assert_eq!((lines.len(), log.next_ns()), (2, None));
    }

    #[test]
    fn levels_say_what_is_told() {
        let events = [
            event(Happening::LoggedIn, Some("nqn.a")),
            event(Happening::WrongSecret, Some("iqn.b")),
        ];
        let told = |level| log(level).lines(&events, &[], 0);
        assert_eq!(told(Level::Error), "");
        let lost = Event { why: Why::Namespace(3), ..event(Happening::Lost, None) };
        let text = log(Level::Error).lines(&[lost], &[], 0);
        let told_of = "afar: lost: 10.0.0.1:5000: the device of namespace 3 has failed to keep";
        assert!(text.starts_with(told_of), "{text}");
        let warning = "afar: wrong-secret: iqn.b at 10.0.0.1:5000: it has not proved who it is\n";
        assert_eq!(told(Level::Warning), warning);
        let info = format!("afar: login: nqn.a at 10.0.0.1:5000\n{warning}");
        assert_eq!(told(Level::Info), info);
    }

    #[test]
    fn the_journal_hears_priorities_and_files_the_time() {
        let events = [event(Happening::LoggedIn, None), event(Happening::Full, None)];
        let text = Log { style: Style::Journal, ..log(Level::Info) }.lines(&events, &[], 0);
        assert!(text.starts_with("<6>login: 10.0.0.1:5000\n<4>full: 10.0.0.1:5000: "), "{text}");
        let text = Log { style: Style::File, ..log(Level::Info) }.lines(&events, &[], 0);
        assert!(text.starts_with("20") && text.contains("Z afar: login"), "{text}");
    }
}
