//! Knobs of the parameters of transports in `netsim`: one for each name, for the transports that
//! have it.

use std::collections::BTreeMap;

use measure::{BitsPerSec, Duration};
use netsim::{LeafSpine, Parameter, Protocol, Slot, Switching, Topology, Transport};

use super::knob::{Knob, Need, Preset};

/// The variants whose transports can be set.
const VARIANT: Need = ("variant", &["default"]);

/// A knob for each parameter's name, in the order of transports.
pub(super) fn knobs() -> Vec<Knob> {
    let mut knobs: Vec<Knob> = Vec::new();
    let mut having = BTreeMap::<&str, Vec<(&'static str, String)>>::new();
    for &transport in Transport::ALL {
        let Some(mut protocol) = usual(transport) else { continue };
        for (parameter, slot) in protocol.slots() {
            let with = having.entry(parameter.name).or_default();
            with.push((transport.describe().name, shown(&slot)));
            if with.len() == 1 {
                knobs.push(knob(parameter, &slot));
            }
        }
    }
    // Texts are leaked: made once, and needed as long as flags are.
    for knob in &mut knobs {
        let with = having.remove(knob.name).unwrap_or_default();
        knob.default = Preset::Words(defaults(&with).leak());
        let names: Vec<&'static str> = with.into_iter().map(|(name, _)| name).collect();
        let names: &'static [&'static str] = names.leak();
        knob.needs = vec![("transport", names), VARIANT].leak();
    }
    knobs
}

/// A transport in the default network.
fn usual(transport: Transport) -> Option<Protocol> {
    let shape = LeafSpine::paper(BitsPerSec::from_gbps(40), [Duration::from_ns(200); 4]);
    let topology = Topology::leaf_spine(&shape).ok()?;
    let fabric = transport.fabric(topology, Switching::CutThrough).ok()?;
    Some(transport.protocol(&fabric))
}

/// A value as people write it.
fn shown(slot: &Slot<'_>) -> String {
    match slot {
        Slot::Count(count) => count.to_string(),
        Slot::Time(time) => time.to_string(),
        Slot::Flag(flag) => if **flag { "yes" } else { "no" }.to_owned(),
    }
}

/// The defaults of transports as text; one that all have stands alone.
fn defaults(with: &[(&'static str, String)]) -> String {
    let mut by_value: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, value) in with {
        match by_value.iter_mut().find(|(other, _)| *other == value.as_str()) {
            Some((_, names)) => names.push(name),
            None => by_value.push((value.as_str(), vec![*name])),
        }
    }
    if let [(value, _)] = &by_value[..] {
        return (*value).to_owned();
    }
    let one = |(value, names): &(&str, Vec<&str>)| format!("{} {value}", names.join(", "));
    by_value.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A knob for a parameter, still without its default and needs.
fn knob(parameter: Parameter, slot: &Slot<'_>) -> Knob {
    Knob {
        name: parameter.name,
        value: match slot {
            Slot::Count(_) => parameter.unit,
            Slot::Time(_) => "TIME",
            Slot::Flag(_) => "yes|no",
        },
        default: Preset::Words(""),
        what: parameter.what,
        from: parameter.from,
        needs: &[],
    }
}

#[cfg(test)]
mod tests {
    use super::super::setting::Settings;
    use super::super::setup::Setup;
    use super::*;

    /// What `--list` says of a transport is what a run without flags records.
    #[test]
    fn defaults_are_those_of_a_run() {
        for &transport in Transport::ALL {
            let name = transport.describe().name;
            let settings = Settings::default().with("transport", name).with("flows", "5");
            let mut setup = Setup::new(&settings).expect("it can be");
            for (parameter, slot) in setup.protocol.slots() {
                let value = shown(&slot);
                let said = super::super::knobs::find(parameter.name).expect("a knob").shown();
                let mut parts = said.split("; ");
                let of = |part: &str| part.split([',', ' ']).any(|word| word == name);
                let part = parts.find(|part| of(part)).unwrap_or(said);
                assert!(part.ends_with(&value), "{name}, {}: {value}, {said}", parameter.name);
                let all = Transport::ALL.iter().any(|one| part.contains(one.describe().name));
                assert!(all || said == value, "{name}, {}: {value}, {said}", parameter.name);
            }
        }
    }
}
