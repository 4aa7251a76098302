//! Transports by name, each with the ports it asks for.

use measure::Bytes;
use netsim::{Description, Fabric, Protocol, Published, Switching, Transport};
use workload::Draw;

use super::SimError;
use super::setting::Settings;
use super::topology::leaf_spine;

/// The variant with the rules of the simulator of 2016.
pub(super) const PUBLISHED: &str = "as-published-2016";

/// What `--list` says of transports.
pub(super) fn list() -> String {
    let mut text = "Transports:\n".to_owned();
    for transport in Transport::ALL {
        let Description { name, summary, paper, omits } = transport.describe();
        text += &format!("  {name:<9} {summary} ({paper}; without {omits})\n");
    }
    text
}

/// Whether the rules are those of 2016.
///
/// # Errors
/// If it is another variant that does not exist.
pub(super) fn is_published(settings: &Settings) -> Result<bool, SimError> {
    settings.choice("variant", &[("default", false), (PUBLISHED, true)])
}

/// A network with the ports that the transport asks for, and the transport.
///
/// # Errors
/// If there is no such transport, or not for this network.
pub(super) fn fabric(
    settings: &Settings,
    switching: Switching,
) -> Result<(Fabric, Protocol), SimError> {
    let name = settings.text("transport");
    if is_published(settings)? {
        return published(settings, switching);
    }
    let transport = Transport::named(name).ok_or_else(|| {
        let names: Vec<&str> = Transport::ALL.iter().map(|one| one.describe().name).collect();
        let message = format!("there is no transport \"{name}\"; give {}", names.join(", "));
        settings.wrong("transport", message)
    })?;
    let topology = super::topology::topology(settings)?;
    let fabric = transport.fabric(topology, switching);
    let mut fabric = fabric.map_err(|error| settings.wrong("transport", error))?;
    if settings.is_given("buffer") {
        fabric.switch_port.buffer = buffer(settings)?;
    }
    let protocol = transport.protocol(&fabric);
    Ok((fabric, protocol))
}

fn buffer(settings: &Settings) -> Result<Option<Bytes>, SimError> {
    match settings.text("buffer") {
        "none" => Ok(None),
        _ => settings.value("buffer").map(Some),
    }
}

/// The network of 2016 is one and the same but for rates, delays and switching.
fn published(settings: &Settings, switching: Switching) -> Result<(Fabric, Protocol), SimError> {
    let named = [
        ("pfabric", Published::PFabric),
        ("phost", Published::PHost),
        ("fastpass", Published::Fastpass),
        ("dctcp", Published::Dctcp),
        ("tcp", Published::Tcp),
    ];
    let transport = settings.choice("transport", &named)?;
    for (name, only) in [("topology", "leaf-spine"), ("balance", "spray"), ("buffer", "36864B")] {
        if settings.text(name) != only {
            let message = format!("{PUBLISHED} has {only} and no other");
            return Err(settings.wrong(name, message));
        }
    }
    let shape = leaf_spine(settings)?;
    let paper = netsim::LeafSpine::paper(shape.host_rate, shape.delays);
    if shape != paper {
        let message = format!("{PUBLISHED} has 9 racks of 16 hosts and 4 spines, full bisection");
        let knobs = ["racks", "hosts-per-rack", "spines", "spine-rate"];
        let name = knobs.into_iter().find(|name| settings.is_given(name)).unwrap_or("topology");
        return Err(settings.wrong(name, message));
    }
    // Where each host's round robin began was drawn; the arbiter of Fastpass is a host more.
    let mut draw = Draw::new(settings.value("seed")?);
    let spines = u64::from(shape.spines);
    let hosts = shape.racks * shape.hosts_per_rack + 1;
    let phases = (0..hosts).map(|_| u32::try_from(draw.below(spines)).unwrap_or(0)).collect();
    let fabric = transport.fabric(shape.host_rate, shape.delays, switching, phases);
    let fabric = fabric.map_err(|error| settings.wrong("transport", error))?;
    Ok((fabric, Protocol::AsPublished2016(transport)))
}
