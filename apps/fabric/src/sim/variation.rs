//! Other values of what decides a run: half and twice of numbers, times, sizes and rates, and the
//! other words of choices.

use measure::{BitsPerSec, Bytes, Duration};
use netsim::Exchange;

use super::knob::Knob;
use super::parameters::exact;
use super::setting::Settings;
use super::setup::Setup;

/// One knob with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variation {
    pub(super) knob: &'static str,
    /// The knob's value in the run.
    pub(super) value: String,
    /// The other value, or why there is none to try.
    pub(super) other: Result<String, String>,
}

/// Knobs of the network that decide how long flows take, beside those of transports. Hosts and
/// traffic are the question, and not varied, except by another seed, whose effect is that of
/// chance.
const NETWORK: [&str; 16] = [
    "rate",
    "spine-rate",
    "delay",
    "switching",
    "balance",
    "buffer",
    "host-buffer",
    "host-queue",
    "mtu",
    "header",
    "mark",
    "trim",
    "request-size",
    "request-timeout",
    "last-packet",
    "seed",
];
/// Knobs that have an effect on reads only.
const REQUESTS: [&str; 2] = ["request-size", "request-timeout"];
/// Knobs that choose among words.
const CHOICES: [(&str, &[&str]); 5] = [
    ("switching", &["cut-through", "store-and-forward"]),
    ("balance", &["spray", "flow"]),
    ("host-queue", &["turns", "levels", "drop-tail"]),
    ("last-packet", &["short", "full"]),
    ("handshake", &["no", "yes"]),
];

/// Every value to try for the run of these settings, knob by knob.
pub(super) fn all(settings: &Settings, setup: &Setup) -> Vec<Variation> {
    let mut protocol = setup.protocol;
    let transport: Vec<&str> =
        protocol.slots().into_iter().map(|(parameter, _)| parameter.name).collect();
    let is_read = setup.flows.iter().any(|flow| flow.exchange == Exchange::Read);
    let decides = |knob: &&Knob| {
        let is_one = NETWORK.contains(&knob.name) || transport.contains(&knob.name);
        is_one && (is_read || !REQUESTS.contains(&knob.name))
    };
    settings.that_matter().filter(decides).flat_map(|knob| of(knob, settings, setup)).collect()
}

/// The other values of one knob to try.
fn of(knob: &Knob, settings: &Settings, setup: &Setup) -> Vec<Variation> {
    let resolved = setup.resolved.iter().find(|(name, _)| *name == knob.name);
    let value =
        resolved.map_or_else(|| settings.text(knob.name), |(_, value)| value.as_str()).to_owned();
    if value.is_empty() {
        return Vec::new();
    }
    let choices = CHOICES.iter().find(|(name, _)| *name == knob.name);
    let others: Vec<Result<String, String>> = match choices {
        Some((_, words)) => {
            let others = words.iter().filter(|word| **word != value);
            others.map(|word| Ok((*word).to_owned())).collect()
        }
        None if knob.name == "seed" => {
            let next = value.parse().ok().and_then(|seed: u64| seed.checked_add(1));
            vec![next.map(|seed| seed.to_string()).ok_or_else(|| "there is no next one".to_owned())]
        }
        None => vec![scaled(&value, knob.value, 1, 2), scaled(&value, knob.value, 2, 1)],
    };
    let variation = |other| Variation { knob: knob.name, value: value.clone(), other };
    others.into_iter().map(variation).collect()
}

/// `times` / `parts` of a value, in its unit; the error says why there is none.
fn scaled(value: &str, kind: &str, times: u64, parts: u64) -> Result<String, String> {
    let word = if parts > times { "halved" } else { "doubled" };
    if value == "none" {
        return Err(format!("no limit cannot be {word}"));
    }
    let one = |text: &str| -> Option<String> {
        let kind = kind.split(['[', ',', '|']).next();
        let (number, unit) = match kind {
            Some("TIME") => (document::delay(text).ok()?.as_ps(), "ps"),
            Some("SIZE") => (text.parse::<Bytes>().ok()?.get(), "B"),
            Some("RATE") => (text.parse::<BitsPerSec>().ok()?.get(), "bps"),
            _ => (text.parse::<u64>().ok()?, ""),
        };
        let other = number.checked_mul(times)? / parts;
        (other != number && other > 0).then(|| match unit {
            "ps" => exact(Duration::from_ps(other)),
            _ => format!("{other}{unit}"),
        })
    };
    let all: Option<Vec<String>> = value.split(',').map(one).collect();
    all.map(|all| all.join(",")).ok_or_else(|| format!("{value} cannot be {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_kind_are_halved_and_doubled() {
        let both = |value, kind| [scaled(value, kind, 1, 2), scaled(value, kind, 2, 1)];
        let are = |half: &str, twice: &str| [Ok(half.to_owned()), Ok(twice.to_owned())];
        assert_eq!(both("45us", "TIME"), are("22500ns", "90us"));
        assert_eq!(both("10ns,400ns", "TIME[,TIME,TIME,TIME]"), are("5ns,200ns", "20ns,800ns"));
        assert_eq!(both("36864B", "SIZE"), are("18432B", "73728B"));
        assert_eq!(both("40Gbps", "RATE"), are("20000000000bps", "80000000000bps"));
        assert_eq!(both("5", "PACKETS"), are("2", "10"));
        let half = |value, kind| scaled(value, kind, 1, 2).unwrap_err();
        assert_eq!(half("1", "PACKETS"), "1 cannot be halved");
        assert_eq!(half("0", "MESSAGES"), "0 cannot be halved");
        assert_eq!(half("none", "SIZE"), "no limit cannot be halved");
        assert_eq!(scaled("none", "SIZE", 2, 1).unwrap_err(), "no limit cannot be doubled");
    }

    /// Everything that `netsim` has a slot for, and every knob of the network that says something.
    #[test]
    fn whatever_decides_a_run_is_varied() {
        for &transport in netsim::Transport::ALL {
            let name = transport.describe().name;
            let settings = Settings::default().with("transport", name).with("flows", "5");
            let settings = settings.with("exchange", "read");
            let mut setup = Setup::new(&settings).expect("it can be");
            let all = all(&settings, &setup);
            let names: Vec<&str> = all.iter().map(|one| one.knob).collect();
            for (parameter, _) in setup.protocol.slots() {
                assert!(names.contains(&parameter.name), "{name}: {}", parameter.name);
            }
            for knob in NETWORK {
                let matters = settings.that_matter().any(|other| other.name == knob);
                assert_eq!(names.contains(&knob), matters, "{name}: {knob}");
            }
            assert!(!names.contains(&"load") && !names.contains(&"flows"), "{names:?}");
        }
        let one_way = Settings::default().with("flows", "5");
        let all = all(&one_way, &Setup::new(&one_way).expect("it can be"));
        assert!(all.iter().all(|one| one.knob != "request-size"), "{all:?}");
    }
}
