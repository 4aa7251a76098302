//! Transports by name, each with the ports it needs.

use measure::Bytes;
use netsim::{Description, Discipline, Fabric, Frame, Protocol, Published, Switching, Transport};
use workload::Draw;

use super::SimError;
use super::setting::Settings;
use super::topology::leaf_spine;

/// The variant with the rules of the simulator of 2016.
pub(super) const PUBLISHED: &str = "as-published-2016";

/// The text of `--list` about transports.
pub(super) fn list() -> String {
    let mut text = "Transports:\n".to_owned();
    for transport in Transport::ALL {
        let Description { name, summary, paper, omits } = transport.describe();
        text += &format!("  {name:<9} {summary} ({paper}; without {omits})\n");
    }
    text
}

/// Whether the variant is that of the simulator of 2016.
///
/// # Errors
/// If the variant does not exist.
pub(super) fn is_published(settings: &Settings) -> Result<bool, SimError> {
    settings.choice("variant", &[("default", false), (PUBLISHED, true)])
}

/// The network with the ports that the transport needs, and the transport.
///
/// # Errors
/// If the transport does not exist, or does not fit the network.
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
    fabric.frame = frame(settings)?;
    ports(settings, &mut fabric)?;
    let protocol = transport.protocol(&fabric);
    Ok((fabric, protocol))
}

/// The sizes of packets: the header, and the payload of a full packet.
fn frame(settings: &Settings) -> Result<Frame, SimError> {
    let bytes = |name: &'static str, least: u64, most: u64| -> Result<u32, SimError> {
        let bytes: Bytes = settings.value(name)?;
        let known = (least..=most).contains(&bytes.get()).then(|| u32::try_from(bytes.get()).ok());
        known
            .flatten()
            .ok_or_else(|| settings.wrong(name, format!("{bytes}: give {least}B to {most}B")))
    };
    let header = bytes("header", 20, HEADER_MAX)?;
    let full = bytes("mtu", u64::from(header) + 1, MTU_MAX)?;
    Ok(Frame { payload: full - header, header, is_padded: false })
}

/// Sets the queues and buffers of ports that settings give.
fn ports(settings: &Settings, fabric: &mut Fabric) -> Result<(), SimError> {
    match &mut fabric.switch_port.discipline {
        Discipline::Mark { packets } => *packets = settings.number("mark", 1, PACKETS_MAX)?,
        Discipline::Trim { packets } => {
            *packets = settings.number("trim", 1, PACKETS_MAX)?;
            // As much again for headers.
            let bytes = 2 * u64::from(*packets) * u64::from(fabric.frame.full());
            fabric.switch_port.buffer = Some(Bytes::new(bytes));
        }
        _ => {}
    }
    if settings.is_given("buffer") {
        fabric.switch_port.buffer = settings.limit("buffer")?;
    }
    if settings.is_given("host-buffer") {
        fabric.host_port.buffer = settings.limit("host-buffer")?;
    }
    if settings.is_given("host-queue") {
        fabric.host_port.discipline = settings.choice("host-queue", &HOST_QUEUES)?;
    }
    Ok(())
}

/// Knobs whose values follow from others, with the values in `fabric`.
pub(super) fn resolved(settings: &Settings, fabric: &Fabric) -> Vec<(&'static str, String)> {
    let limit = |buffer: Option<Bytes>| {
        buffer.map_or_else(|| "none".to_owned(), |bytes| format!("{}B", bytes.get()))
    };
    let mut all = vec![("buffer", limit(fabric.switch_port.buffer))];
    if settings.text("variant") != PUBLISHED {
        all.push(("host-buffer", limit(fabric.host_port.buffer)));
        let queue = HOST_QUEUES.iter().find(|(_, one)| *one == fabric.host_port.discipline);
        let has_queue = ["dctcp", "tcp", "ndp"].contains(&settings.text("transport"));
        all.extend(queue.filter(|_| has_queue).map(|(name, _)| ("host-queue", (*name).to_owned())));
    }
    if settings.text("topology") == "leaf-spine"
        && let Ok(shape) = leaf_spine(settings)
    {
        all.push(("spine-rate", format!("{}bps", shape.spine_rate.get())));
    }
    all
}

const HOST_QUEUES: [(&str, Discipline); 3] = [
    ("levels", Discipline::Levels),
    ("turns", Discipline::Turns),
    ("drop-tail", Discipline::DropTail),
];
/// Longest header and packet: a jumbo frame of 9 KiB, and more than any header has.
const HEADER_MAX: u64 = 1024;
const MTU_MAX: u64 = 65_536;
/// Most packets of a threshold.
const PACKETS_MAX: u32 = 1 << 20;

/// The network and a transport of the simulator of 2016, where only rates, delays and switching
/// vary.
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
        if settings.is_given(name) && settings.text(name) != only {
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
    let mut draw = Draw::new(settings.seed()?);
    let spines = u64::from(shape.spines);
    let hosts = shape.racks * shape.hosts_per_rack + 1;
    let phases = (0..hosts).map(|_| u32::try_from(draw.below(spines)).unwrap_or(0)).collect();
    let fabric = transport.fabric(shape.host_rate, shape.delays, switching, phases);
    let fabric = fabric.map_err(|error| settings.wrong("transport", error))?;
    Ok((fabric, Protocol::AsPublished2016(transport)))
}
