//! Values of the parameters of transports.

use measure::Duration;
use netsim::{Parameter, Protocol, Slot};

use super::SimError;
use super::setting::Settings;

/// Sets the parameters of a transport that settings give; returns the values of all of them.
///
/// # Errors
/// If a value is invalid.
pub(super) fn apply(
    settings: &Settings,
    protocol: &mut Protocol,
) -> Result<Vec<(&'static str, String)>, SimError> {
    let mut all = Vec::new();
    for (parameter, slot) in protocol.slots() {
        let name = parameter.name;
        let is_given = settings.is_given(name);
        let text = match slot {
            Slot::Count(count) => {
                if is_given {
                    *count = settings.number(name, parameter.least, parameter.most)?;
                }
                count.to_string()
            }
            Slot::Time(time) => {
                if is_given {
                    *time = settings.time(name, Parameter::TIME_MAX)?;
                }
                exact(*time)
            }
            Slot::Flag(flag) => {
                if is_given {
                    *flag = settings.choice(name, &[("yes", true), ("no", false)])?;
                }
                if *flag { "yes" } else { "no" }.to_owned()
            }
        };
        all.push((name, text));
    }
    Ok(all)
}

/// A time to the last picosecond, in the largest unit of which it is a whole number.
pub(super) fn exact(time: Duration) -> String {
    let ps = time.as_ps();
    let whole = UNITS.into_iter().find(|(unit, _)| ps > 0 && ps.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ps"));
    format!("{}{name}", ps / unit)
}

const UNITS: [(u64, &str); 4] =
    [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_and_as_short_as_can_be() {
        let cases = [
            (0, "0ps"),
            (1, "1ps"),
            (9_500_000, "9500ns"),
            (45_000_000, "45us"),
            (1_000_000_000, "1ms"),
            (2_000_000_000_000, "2s"),
            (1_234_567, "1234567ps"),
        ];
        for (ps, text) in cases {
            assert_eq!(exact(Duration::from_ps(ps)), text);
            assert_eq!(text.parse(), Ok(Duration::from_ps(ps)));
        }
    }
}
