//! Fig. 4: a key-value store on a local drive and on a remote one: unloaded latency, and latency
//! against throughput.

use measure::Duration;
use serde_json::json;

use super::super::session::Session;
use super::super::{Measured, ReproduceError};
use super::fig4_report::report;
use super::fig4_scale::{CHANNELS, Scale, model, settled};
use crate::flags::Options;
use crate::store::{self, Asked, Image, Kept, Kind, Loads, Over, Place, Stack, Steps, Turn};

/// Workload A has few writes; the paper does not say how many.
pub(super) const READ_PERCENT: u8 = 90;
/// Rates of steps, as shares of the local store's throughput.
const SHARES: [f64; 7] = [0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0];
const CALIBRATING: Duration = Duration::from_ms(1_200);
/// Expected number of loads to settle the scale, for progress.
const CALIBRATIONS: usize = 6;
/// Loads of a turn, including warm-ups.
const LOADS: usize = 2 + 2 * (SHARES.len() + 1);

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When mounts are not allowed, RocksDB is missing, or a request fails.
pub(in super::super) fn run(
    mut session: Session,
    flags: &Options,
) -> Result<Option<Measured>, ReproduceError> {
    store::check()?;
    let (pace, repetitions, time) =
        if flags.quick { ("quick", 1, 1_500) } else { ("full", 3, 4_000) };
    let time = flags.duration.unwrap_or_else(|| Duration::from_ms(time));
    let kept = Kept::new(flags.output.join(format!("klimovic-fig4-{pace}.runs")))?;
    let overs = Over::all();
    let name = |over: Over, repetition| format!("{repetition}-{}", serde_name(over));
    let wanted = (0..repetitions).flat_map(|number| overs.iter().map(move |&over| (over, number)));
    let wanted: Vec<(Over, usize)> = wanted.collect();
    let read = |&(over, number): &(Over, usize)| kept.read::<Turn>(&name(over, number));
    let missing = wanted.iter().filter(|one| read(one).is_none()).count();
    let before = wanted.len() - missing;
    let scale = kept.read::<Scale>("scale");
    let mut scale = scale;
    if missing > 0 {
        session.expect(1 + CALIBRATIONS * usize::from(scale.is_none()) + LOADS * missing);
        let place = Place::new(&kept.path().join("place"))?;
        let mut loads = Loads::new(&mut session);
        if let Some(image) = Image::make(&place, &mut loads)? {
            if scale.is_none() {
                scale = settle(&place, &image, &mut loads, flags)?;
                scale.iter().try_for_each(|scale| kept.write("scale", scale))?;
            }
            for one in wanted.iter().filter(|one| read(one).is_none()) {
                let Some(scale) = &scale else { break };
                let mut steps = steps(scale, time);
                // Each repetition begins at another rate, so that a flush of the store does not
                // always meet the same one.
                steps.rates.rotate_left(2 * one.1 % SHARES.len());
                let model = model(scale.channels);
                let stack = Stack::start(&place, &image, (&model, one.0), Duration::ZERO)?;
                let Some(turn) = store::turn(&mut loads, stack, *one, &steps)? else { break };
                kept.write(&name(one.0, one.1), &turn)?;
            }
        }
    }
    session.end_line();
    let turns: Vec<Turn> = wanted.iter().filter_map(read).collect();
    let Some(scale) = scale.filter(|_| !turns.is_empty()) else { return Ok(None) };
    Ok(Some(Measured {
        report: report(&scale, &turns),
        described: described(&scale, time, (repetitions, before), &kept),
        bed: json!({
            "device": model(scale.channels),
            "channels": scale.channels,
            "base_per_s": scale.base_per_s,
            "records": store::RECORDS,
            "key_bytes": store::KEY_BYTES,
            "set_bytes": store::SET_BYTES,
            "read_percent": READ_PERCENT,
            "clients": store::CLIENTS,
            "runtime_ns": time.as_ns(),
            "repetitions": repetitions,
        }),
        is_interrupted: session.is_interrupted(),
    }))
}

/// The name of a way in file names.
fn serde_name(over: Over) -> String {
    serde_json::to_string(&over).unwrap_or_default().trim_matches('"').to_owned()
}

/// The loads of a turn.
fn steps(scale: &Scale, time: Duration) -> Steps {
    Steps {
        read_percent: READ_PERCENT,
        rates: SHARES.map(|share| (share * scale.base_per_s).round().max(1.0)).into(),
        time,
        warm_up: Duration::from_ps(time.as_ps() / 3),
    }
}

// Finds the number of channels that keep the processors busy with a local drive; `None` if it was
// interrupted.
fn settle(
    place: &Place,
    image: &Image,
    loads: &mut Loads<'_>,
    flags: &Options,
) -> Result<Option<Scale>, ReproduceError> {
    let asked = Asked {
        kind: Kind::Closed(store::CLIENTS),
        read_percent: READ_PERCENT,
        time: CALIBRATING,
        warm_up: CALIBRATING,
    };
    let what = "how much of the drive this machine can use";
    settled(flags.scale, |channels| {
        let stack = Stack::start(place, image, (&model(channels), Over::Local), Duration::ZERO)?;
        let Some((reads, spent)) = store::timed(loads, &stack, what, &asked)? else {
            return Ok(None);
        };
        stack.end()?;
        Ok(Some((reads.per_s, spent.busy)))
    })
}

// The lines that describe drive, store and loads.
fn described(
    scale: &Scale,
    time: Duration,
    (repetitions, before): (usize, usize),
    kept: &Kept,
) -> String {
    let mut text = format!(
        "drive: {}, {} of {CHANNELS} channels, with which a local store answers {:.0}/s and \
         {:.0} % of the processors are busy\n\
         store: RocksDB behind afar kv serve on ext4 on a loop device, direct I/O; {} records of \
         {} bytes and more,\nkeys of {}, {READ_PERCENT} % reads; loads of {time}, {repetitions} \
         repetitions, kept in {}",
        model(scale.channels),
        scale.channels,
        scale.base_per_s,
        scale.busy * 100.0,
        store::RECORDS,
        store::SET_BYTES,
        store::KEY_BYTES,
        kept.path().display()
    );
    if before > 0 {
        text += &format!("\n{before} turns of them were there; remove it to run them anew");
    }
    text
}
