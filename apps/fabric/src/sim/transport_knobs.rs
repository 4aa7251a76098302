//! What can be set of transports, as `netsim` says it: a knob for each name, for the transports
//! that have it.

use std::collections::BTreeMap;

use measure::{BitsPerSec, Duration};
use netsim::{Parameter, Protocol, Slot, Switching, Topology, Transport};

use super::knob::{Knob, Need, Preset};

/// The variants whose transports can be set.
const VARIANT: Need = ("variant", &["default"]);

/// A knob for each name, in the order of transports.
pub(super) fn knobs() -> Vec<Knob> {
    let mut knobs: Vec<Knob> = Vec::new();
    let mut having = BTreeMap::<&str, Vec<&'static str>>::new();
    for &transport in Transport::ALL {
        let Some(mut protocol) = any(transport) else { continue };
        for (parameter, slot) in protocol.slots() {
            let with = having.entry(parameter.name).or_default();
            with.push(transport.describe().name);
            if with.len() == 1 {
                knobs.push(knob(parameter, &slot));
            }
        }
    }
    // They are made once, and as long as there are flags that they explain.
    for knob in &mut knobs {
        let with: &'static [&'static str] = having.remove(knob.name).unwrap_or_default().leak();
        knob.needs = vec![("transport", with), VARIANT].leak();
    }
    knobs
}

/// A transport in some network: what can be set does not depend on which.
fn any(transport: Transport) -> Option<Protocol> {
    let topology = Topology::single_switch(2, BitsPerSec::from_gbps(1), Duration::ZERO).ok()?;
    let fabric = transport.fabric(topology, Switching::CutThrough).ok()?;
    Some(transport.protocol(&fabric))
}

fn knob(parameter: Parameter, slot: &Slot<'_>) -> Knob {
    Knob {
        name: parameter.name,
        value: match slot {
            Slot::Count(_) => "NUMBER",
            Slot::Time(_) => "TIME",
            Slot::Flag(_) => "yes|no",
        },
        default: Preset::Words(match slot {
            Slot::Flag(_) => "no if something is read or written, else yes",
            Slot::Count(_) | Slot::Time(_) => "as the transport has it in the network",
        }),
        what: parameter.what,
        from: parameter.from,
        needs: &[],
    }
}
