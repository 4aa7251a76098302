//! Which flows of a run that arrive by chance are measured.
//!
//! ```text
//! time ─►  fills    │ measured: these flows start here │ arrivals go on until they have ended
//!          warm-up  │ --flows                          │ cool-down
//! ```
//!
//! Invariants:
//! 1. Whether a flow is measured follows from when it starts, never from when it ends.
//! 2. The cool-down `auto` ends with the last measured flow: no measured flow meets a network that
//!    empties.

use measure::{Duration, Fraction, Instant};
use netsim::traffic::Poisson;
use netsim::{Flow, Frame, Observe};

use super::SimError;
use super::setting::Settings;
use super::{parameters, transport};

/// Unmeasured flows before the measured ones of a single run, and after them, parts per million.
const UNMEASURED_PPM: u32 = 100_000;
/// A flow may take this many times what the largest needs alone: at a load of 80 %, where the
/// shortest go first (pFabric), one of 16,000 took more than 8 times that.
const CLEARING_TIMES: u64 = 32;
/// A network fills for at least this: tens of round trips.
const FILLING_MIN: Duration = Duration::from_us(100);
/// Arrivals go on for at least this time, some timeouts of TCP, or for this many flows.
const TAIL_MIN: (Duration, u64) = (Duration::from_ms(3), 1_000_000);

/// A part of the run that is not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A share of `--flows`, parts per million.
    Share(u32),
    /// More flows, that start within a time.
    Time(Duration),
    /// More flows, as many as are needed.
    Auto,
}

/// Which flows of a list are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// The number of all flows.
    pub(super) count: u32,
    /// The first flow that is measured, and the first after the measured ones.
    bounds: [u32; 2],
    /// Whether the run ends with the last measured flow.
    until_ended: bool,
    /// The values of `warm-up` and `cool-down` here.
    pub(super) resolved: [(&'static str, String); 2],
}

impl Window {
    /// The window of `poisson.count` flows and those that `warm-up` and `cool-down` add.
    ///
    /// # Errors
    /// If nothing would be measured, or a network takes longer to fill than can be simulated.
    pub(super) fn new(
        settings: &Settings,
        poisson: &Poisson<'_>,
        frame: Frame,
    ) -> Result<Self, SimError> {
        let [before, after] = [part(settings, "warm-up")?, part(settings, "cool-down")?];
        let filling = whole_us(poisson.filling(frame).max(FILLING_MIN));
        let before = if before == Part::Auto { Part::Time(filling) } else { before };
        let during = |time: Duration| time.as_ps() / poisson.gap(frame).as_ps();
        let wanted = u64::from(poisson.count);
        let share = |ppm: u32| u64::from(ppm) * wanted / 1_000_000;
        let (more, first) = match before {
            Part::Share(ppm) => (0, share(ppm)),
            Part::Time(time) => (during(time), during(time)),
            Part::Auto => (0, 0),
        };
        let listed = more + wanted;
        let (count, last) = match after {
            Part::Share(ppm) => (listed, listed - share(ppm)),
            Part::Time(_) | Part::Auto => {
                let clearing = poisson.clearing(frame).saturating_mul(CLEARING_TIMES);
                let (time, flows) = TAIL_MIN;
                let tail = during(filling.saturating_mul(2) + clearing);
                (listed + tail.max(during(time).min(flows)) + 1, listed)
            }
        };
        let known = |count: u64| u32::try_from(count).ok().filter(|&count| count <= FLOWS_MAX);
        let count = known(count).ok_or_else(|| {
            let message = format!(
                "{count} flows start while this network fills, is measured and is kept busy, more \
                 than {FLOWS_MAX}; give a lower --load, or shares of --flows as --warm-up and \
                 --cool-down"
            );
            settings.wrong("warm-up", message)
        })?;
        let bounds = [first, last].map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        let resolved = [("warm-up", before.text()), ("cool-down", after.text())];
        Ok(Self { count, bounds, until_ended: after == Part::Auto, resolved })
    }

    /// What a run with these flows measures.
    pub(super) fn observe(&self, flows: &[Flow]) -> Observe {
        let start = |place: u32| flows.get(place as usize).map_or(Instant::MAX, |flow| flow.start);
        let is_all = self.bounds == [0, self.count];
        Observe {
            span: (!is_all).then(|| self.bounds.map(start)),
            until_span_ended: self.until_ended,
            ..Observe::default()
        }
    }
}

impl Part {
    /// The part as the value of a knob.
    fn text(self) -> String {
        match self {
            Self::Share(ppm) => format!("{}%", f64::from(ppm) / 1e4),
            Self::Time(time) => parameters::exact(time),
            Self::Auto => "auto".to_owned(),
        }
    }
}

/// Rounds up to a whole microsecond.
fn whole_us(time: Duration) -> Duration {
    Duration::from_us(time.as_ps().div_ceil(1_000_000))
}

/// The value of `warm-up` or `cool-down`, or its default.
fn part(settings: &Settings, name: &str) -> Result<Part, SimError> {
    let text = settings.text(name);
    let ppm = match text {
        "" if transport::is_published(settings)? => 0,
        "" if settings.number("repetitions", 1, RUNS_MAX)? > 1 => return Ok(Part::Auto),
        "" => UNMEASURED_PPM,
        "0" | "0%" => 0,
        "auto" => return Ok(Part::Auto),
        _ => match document::delay(text) {
            Ok(time) if name == "warm-up" => return Ok(Part::Time(time)),
            _ => settings.value::<Fraction>(name)?.ppm(),
        },
    };
    if ppm >= 500_000 {
        return Err(settings.wrong(name, "nothing would be measured; give less than 50%"));
    }
    Ok(Part::Share(ppm))
}

/// Flows of one run, if they are not in a list.
pub(super) const FLOWS_MAX: u32 = 100_000_000;
/// Runs of one simulation.
pub(super) const RUNS_MAX: u32 = 1000;
