//! Progress of long work, and an estimate of the time left.
//!
//! On a terminal one line shows it and is erased afterwards ([`Line`]). Elsewhere each part that
//! has ended gets a line, so that a log shows the course. Many short parts share one line a second.
//! Work of one part gets none, as its answer says everything.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::{Line, speech, terminal};

/// Time between updates of the line.
const TICK: Duration = Duration::from_millis(500);
/// Least time between two lines of a log, where there are more parts than `FEW`.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// As many parts get a line each, however short they are.
const FEW: usize = 20;

/// Work of many parts: runs, points, cells.
#[derive(Debug)]
pub struct Progress {
    place: Place,
    /// Name of a part: `run`.
    part: &'static str,
    /// How many parts there are; `None` if that is not known.
    all: Option<usize>,
    /// How many parts have ended, and how many of these before this process started.
    ended: usize,
    before: usize,
    began: Instant,
    /// When the current part began.
    part_began: Instant,
    /// How long a part takes, if that is known beforehand.
    each: Option<Duration>,
    /// When the last line of a log was printed.
    last_line: Option<Instant>,
}

#[derive(Debug)]
enum Place {
    Live(Line),
    /// Standard error, which is no terminal.
    Lines,
    Nowhere,
}

impl Progress {
    /// Work of `all` parts that begins now.
    #[must_use]
    pub fn new(part: &'static str, all: usize) -> Self {
        let place = match Line::if_watched() {
            Some(line) => Place::Live(line),
            None if speech::shows_progress() && !terminal::is_terminal() => Place::Lines,
            None => Place::Nowhere,
        };
        let (all, began) = (Some(all), Instant::now());
        Self {
            place,
            part,
            all,
            ended: 0,
            before: 0,
            began,
            part_began: began,
            each: None,
            last_line: None,
        }
    }

    /// Work whose number of parts is not known.
    #[must_use]
    pub fn without_end(part: &'static str) -> Self {
        Self { all: None, ..Self::new(part, 0) }
    }

    /// Work whose progress is not shown.
    #[must_use]
    pub fn unseen(part: &'static str) -> Self {
        Self { place: Place::Nowhere, ..Self::without_end(part) }
    }

    /// The same work, of which `ended` parts had ended before.
    #[must_use]
    pub const fn after(mut self, ended: usize) -> Self {
        (self.ended, self.before) = (ended, ended);
        self
    }

    /// Sets the expected time of a part, in seconds.
    pub fn expect(&mut self, each_s: Option<f64>) {
        self.each = each_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    }

    /// Starts the next part, whose expected time is `part_s` seconds, if it is known.
    pub fn begin(&mut self, part_s: Option<f64>) {
        self.part_began = Instant::now();
        self.expect(part_s);
    }

    /// Starts other work: the name of its parts, how many there are, and how many had ended before.
    pub fn restart(&mut self, part: &'static str, all: usize, ended: usize) {
        (self.part, self.all, self.each) = (part, Some(all), None);
        (self.ended, self.before) = (ended, ended);
        (self.began, self.part_began) = (Instant::now(), Instant::now());
        self.last_line = None;
    }

    /// Draws `text` alone, on a live line.
    pub fn draw(&mut self, text: &str) {
        if let Place::Live(line) = &mut self.place {
            line.draw(&format!("afar  {text}"));
        }
    }

    /// Updates the live line with `what` while this thread does `work`.
    pub fn during<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let receiver = receiver;
                // `work` has ended when the sender is dropped.
                while receiver.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    self.show(what);
                }
            });
            let done = work();
            drop(sender);
            done
        })
    }

    /// Draws the current part with `what`, on a live line.
    pub fn show(&mut self, what: &str) {
        let number = self.ended + 1;
        let number = self.all.map_or(number, |all| number.min(all.max(1)));
        self.draw(&self.told(number, ["  ", "  "], what, self.left()));
    }

    /// Ends a part: `what` it was, and its result.
    pub fn end(&mut self, what: &str) {
        self.ended += 1;
        self.all = self.all.map(|all| all.max(self.ended));
        self.part_began = Instant::now();
        let now = Instant::now();
        if matches!(self.place, Place::Lines) && self.all != Some(1) && self.is_due(now) {
            self.last_line = Some(now);
            let text = self.told(self.ended, [": ", ", "], what, self.left());
            terminal::say(&format!("{text}\n"));
        }
    }

    /// Whether the part that has ended gets a line of the log.
    fn is_due(&self, now: Instant) -> bool {
        let is_last = self.all == Some(self.ended);
        let is_rare = self.last_line.is_none_or(|last| now - last >= LINE_EVERY);
        is_rare || is_last || self.all.is_some_and(|all| all <= FEW)
    }

    /// Erases the live line, so that other text can be printed.
    pub fn clear(&mut self) {
        if let Place::Live(line) = &mut self.place {
            line.clear();
        }
    }

    /// How many parts have ended.
    #[must_use]
    pub const fn ended(&self) -> usize {
        self.ended
    }

    /// Stops showing progress.
    pub fn close(&mut self) {
        self.place = Place::Nowhere;
    }

    /// The estimated time of the parts that are left; `None` if it is unknown or no part is left.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.left_at(Instant::now())
    }

    /// As `left`, at `now`.
    fn left_at(&self, now: Instant) -> Option<Duration> {
        let left = self.all?.saturating_sub(self.ended);
        let own = u32::try_from(self.ended - self.before).ok().filter(|own| *own > 0);
        let spent = now.saturating_duration_since(self.part_began);
        let whole = self.part_began.saturating_duration_since(self.began);
        let each = own.map(|own| whole / own).or(self.each)?;
        let left = u32::try_from(left).ok().filter(|left| *left > 0)?;
        // Part of the current part's time is spent; what is left of it is never negative.
        Some(each.saturating_mul(left - 1) + each.saturating_sub(spent))
    }

    /// The text about part `number`.
    fn told(
        &self,
        number: usize,
        [after, before]: [&str; 2],
        what: &str,
        left: Option<Duration>,
    ) -> String {
        let parts = match self.all {
            Some(1) => String::new(),
            Some(all) => format!("{} {number} of {all}", self.part),
            None => format!("{} {number}", self.part),
        };
        let after = if parts.is_empty() || what.is_empty() { "" } else { after };
        let left = left.map_or_else(String::new, |left| format!("{before}{} left", clock(left)));
        format!("{parts}{after}{what}{left}")
    }
}

/// A time for people: `1 min 05 s`.
#[must_use]
pub fn clock(time: Duration) -> String {
    let whole = time.as_secs();
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn clock_is_as_fine_as_it_needs_to_be() {
        let told = [5, 65, 3700].map(|time| clock(seconds(time)));
        assert_eq!(told, ["5 s", "1 min 05 s", "1 h 01 min"]);
    }

    /// Of four parts, of which the last to end did so ten seconds after the beginning.
    fn of_four(ended: usize, before: usize) -> Progress {
        let mut progress = Progress { all: Some(4), ..Progress::unseen("run") }.after(before);
        (progress.ended, progress.part_began) = (ended, progress.began + seconds(10));
        progress
    }

    #[test]
    fn what_is_left_takes_as_long_as_what_has_ended() {
        let left = |ended, before, after_s| {
            let progress = of_four(ended, before);
            progress.left_at(progress.part_began + seconds(after_s)).map(|left| left.as_secs())
        };
        assert_eq!(left(0, 0, 0), None, "nothing is known yet");
        assert_eq!(left(1, 0, 0), Some(30), "10 s for each of three");
        assert_eq!(left(2, 0, 3), Some(7), "3 s of the third are over");
        assert_eq!(left(3, 2, 0), Some(10), "two of an earlier process tell nothing of the pace");
        assert_eq!(left(3, 0, 99), Some(0), "one takes longer than those before");
        assert_eq!(left(4, 0, 0), None, "nothing is left");
        let mut known = of_four(0, 0);
        known.expect(Some(2.0));
        assert_eq!(known.left_at(known.part_began), Some(seconds(8)));
    }

    #[test]
    fn a_line_says_which_part_and_what_is_left() {
        let told = |number, left| of_four(0, 0).told(number, [": ", ", "], "rtt=20us 1.32 s", left);
        assert_eq!(told(3, Some(seconds(65))), "run 3 of 4: rtt=20us 1.32 s, 1 min 05 s left");
        assert_eq!(told(4, None), "run 4 of 4: rtt=20us 1.32 s");
        let one = Progress { all: Some(1), ..of_four(0, 0) };
        assert_eq!(one.told(1, ["  ", "  "], "reads", Some(seconds(2))), "reads  2 s left");
    }

    #[test]
    fn a_log_has_each_of_few_parts_and_one_of_many_a_second() {
        let mut progress = Progress { all: Some(21), ..of_four(1, 0) };
        let began = progress.began;
        assert!(progress.is_due(began), "the first");
        progress.last_line = Some(began);
        let at = |ms| began + Duration::from_millis(ms);
        assert!(!progress.is_due(at(999)) && progress.is_due(at(1000)));
        progress.ended = 21;
        assert!(progress.is_due(at(1)), "the last");
        let few = Progress { all: Some(20), ended: 7, ..progress };
        assert!(few.is_due(at(1)), "one of few");
        let unknown = Progress { all: None, ..few };
        assert!(!unknown.is_due(at(1)) && unknown.is_due(at(1000)));
    }
}
