//! Values of what can be set of transports.

use netsim::{Parameter, Protocol, Slot};

use super::SimError;
use super::setting::Settings;

/// Sets what was said of a transport, and says what everything is then.
///
/// # Errors
/// If a value cannot be.
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
                format!("{}ps", time.as_ps())
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
