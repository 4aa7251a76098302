//! The emulated share of the paper's drive: as much as keeps this machine busy.

use measure::Fraction;
use serde::{Deserialize, Serialize};

/// The emulated share of the drive, and the throughput of a local store on it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Scale {
    /// Emulated channels of the drive.
    pub(super) channels: u32,
    /// Requests per second of a local store, the base of steps.
    pub(super) base_per_s: f64,
    /// The share of the processors that were busy at that throughput.
    pub(super) busy: f64,
}

pub(super) const CHANNELS: u32 = 20;
/// Channels are added until a local store keeps this share of the processors busy, so that the cost
/// of a way shows.
const BUSY: f64 = 0.75;
/// The least growth of throughput by one more channel; with less the processors are the limit.
const GROWTH: f64 = 1.05;
/// The URI of the drive with `channels` channels.
pub(super) fn model(channels: u32) -> String {
    let ppm = channels.clamp(1, CHANNELS) * (Fraction::ONE.ppm() / CHANNELS);
    format!("model:p3600*{:.6}", f64::from(ppm) / 1e6)
}

/// Finds the scale: the user's share, or the first number of channels that is enough. `measure`
/// returns requests per second and the busy share of processors; `None` if it was interrupted.
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
