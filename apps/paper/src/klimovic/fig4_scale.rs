//! How much of the paper's drive there is: as much as keeps this machine busy.

use measure::Fraction;
use serde::{Deserialize, Serialize};

/// How much of the drive there is, and what the store is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Scale {
    /// Of the drive's channels.
    pub(super) channels: u32,
    /// Requests per second that steps are shares of: what a local store could.
    pub(super) base_per_s: f64,
    /// And the share of the processors that were busy then.
    pub(super) busy: f64,
}

pub(super) const CHANNELS: u32 = 20;
/// Of the processors, at what the store can on the drive of its own machine: enough for a way to
/// show what it costs, and no more of the drive than that.
const BUSY: f64 = 0.75;
/// A channel that adds less is one that the processors cannot use.
const GROWTH: f64 = 1.05;
/// The drive with so many of its channels.
pub(super) fn model(channels: u32) -> String {
    let ppm = channels.clamp(1, CHANNELS) * (Fraction::ONE.ppm() / CHANNELS);
    format!("model:p3600*{:.6}", f64::from(ppm) / 1e6)
}

/// By what so many channels come to: requests per second, and the share of processors in use.
pub(super) fn settled<E>(
    asked: Option<Fraction>,
    mut measure: impl FnMut(u32) -> Result<Option<(f64, f64)>, E>,
) -> Result<Option<Scale>, E> {
    let only = asked.map(|share| (share.ppm() * CHANNELS).div_ceil(Fraction::ONE.ppm()));
    let (mut channels, mut before) = (only.unwrap_or(1).clamp(1, CHANNELS), 0.0);
    loop {
        let Some((base_per_s, busy)) = measure(channels)? else { return Ok(None) };
        let is_last = only.is_some() || channels == CHANNELS;
        if is_last || busy >= BUSY || base_per_s < before * GROWTH {
            return Ok(Some(Scale { channels, base_per_s, busy }));
        }
        (channels, before) = (channels + 1, base_per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_of_the_drive_as_keeps_the_processors_busy() {
        let of = |asked, measure: fn(u32) -> (f64, f64)| {
            settled(asked, |channels| Ok::<_, ()>(Some(measure(channels)))).ok().flatten()
        };
        let channels = |measure| of(None, measure).map(|scale| scale.channels);
        let even = |count| (7_000.0 * f64::from(count), 0.2 * f64::from(count));
        assert_eq!(channels(even), Some(4));
        assert_eq!(channels(|count| (f64::from(count), 0.01)), Some(20), "the whole drive");
        assert_eq!(channels(|_| (7_000.0, 0.3)), Some(2), "a channel more adds nothing");
        assert_eq!(channels(|_| (9.0, 0.9)), Some(1));
        let half = of(Fraction::from_ppm(500_000), even).expect("it is measured");
        assert_eq!((half.channels, half.base_per_s), (10, 70_000.0), "what was asked for");
        assert_eq!(settled(None, |_| Ok::<_, ()>(None)), Ok(None), "it was interrupted");
        assert_eq!(model(1), "model:p3600*0.050000");
    }
}
