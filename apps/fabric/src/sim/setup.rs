//! Makes a network, a transport and flows from settings.

use std::path::Path;

use measure::{BitsPerSec, Bytes, Fraction};
use netsim::demand;
use netsim::traffic::{self, Poisson};
use netsim::{
    Balance, End, Exchange, Fabric, Flow, Observe, Parameter, Protocol, Requests, Switching,
};
use workload::{Sizes, SizesName};

use super::SimError;
use super::link_name::link_name;
use super::setting::Settings;
use super::window::{FLOWS_MAX, Window};
use super::{blades, exchange, list, parameters, transport};

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The network.
    pub fabric: Fabric,
    /// The transport.
    pub protocol: Protocol,
    /// The flows, in order of start.
    pub flows: Vec<Flow>,
    /// When a one-way flow has ended.
    pub end: End,
    /// What the run records beside its outcome.
    pub observe: Observe,
    /// The load that was set, as a share of hosts' links; 0 where flows do not arrive by chance.
    pub asked: f64,
    /// Knobs whose values follow from others, with their values here.
    pub resolved: Vec<(&'static str, String)>,
}

/// Messages that one acknowledgement covers, with transports that delay acknowledgements.
const TOGETHER: &str = "messages-per-ack";

impl Setup {
    /// The network, transport and flows that settings describe.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(settings: &Settings) -> Result<Self, SimError> {
        settings.check()?;
        let words = [
            ("cut-through", Switching::CutThrough),
            ("store-and-forward", Switching::StoreAndForward),
        ];
        let switching = settings.choice("switching", &words)?;
        let (mut fabric, mut protocol) = transport::fabric(settings, switching)?;
        fabric.balance =
            settings.choice("balance", &[("spray", Balance::Spray), ("flow", Balance::Flow)])?;
        let is_published = transport::is_published(settings)?;
        let ends = [("received", End::Received), ("acknowledged", End::Acknowledged)];
        let end = match (settings.is_given("end"), is_published) {
            (true, _) => settings.choice("end", &ends)?,
            (false, true) => End::Acknowledged,
            (false, false) => End::Received,
        };
        let (mut flows, window) = flows(settings, &fabric)?;
        if is_published {
            as_published(settings, fabric.frame.payload, &mut flows)?;
        } else {
            fabric.requests = requests(settings, &fabric)?;
            fabric.frame.is_padded = is_padded(settings, &flows)?;
        }
        if end == End::Acknowledged {
            protocol.acknowledge_each();
        }
        let mut resolved = parameters::apply(settings, &mut protocol)?;
        let is_together = |(name, value): &(&str, String)| *name == TOGETHER && value != "1";
        if end == End::Acknowledged && resolved.iter().any(is_together) {
            let message = "an acknowledgement of several messages says of none when it ended; \
                           give 1, or --end received";
            return Err(settings.wrong(TOGETHER, message));
        }
        resolved.extend(transport::resolved(settings, &fabric));
        let last = if is_published || fabric.frame.is_padded { "full" } else { "short" };
        resolved.push(("last-packet", last.to_owned()));
        let observe = window.as_ref().map_or_else(Observe::default, |some| some.observe(&flows));
        let asked = if window.is_some() { percent(settings)? as f64 / 100.0 } else { 0.0 };
        resolved.extend(window.into_iter().flat_map(|window| window.resolved));
        let ends = ends.iter().find(|(_, one)| *one == end);
        resolved.extend(ends.map(|(name, _)| ("end", (*name).to_owned())));
        Ok(Self { fabric, protocol, flows, end, observe, asked, resolved })
    }
}

/// Makes flows as the simulator of 2016 had them: of full packets, one way, until they are
/// acknowledged; settings that differ are an error.
fn as_published(settings: &Settings, payload: u32, flows: &mut [Flow]) -> Result<(), SimError> {
    for (name, only) in [("exchange", "one-way"), ("last-packet", "full")] {
        if settings.is_given(name) && settings.text(name) != only {
            let message = format!("{} has full packets that go one way", transport::PUBLISHED);
            return Err(settings.wrong(name, message));
        }
    }
    let payload = u64::from(payload);
    for flow in flows {
        flow.bytes = flow.bytes.div_ceil(payload).saturating_mul(payload);
        flow.exchange = Exchange::OneWay;
    }
    Ok(())
}

/// Refuses a load at which data, headers and readers' requests alone keep some link busy all the
/// time. The other packets of transports are not counted.
fn can_carry(settings: &Settings, fabric: &Fabric, poisson: &Poisson<'_>) -> Result<(), SimError> {
    // Who reads sends requests, too.
    let is_read = settings.is_given("exchange")
        && settings.choice("exchange", &exchange::NAMED)? == Exchange::Read;
    let request = if is_read { requests(settings, fabric)?.bytes } else { 0 };
    let overhead = poisson.overhead(fabric.frame, request);
    let host = poisson.rate.get() as f64 * poisson.load_percent as f64 / 100.0 * overhead;
    let links = fabric.topology.links().iter().zip(demand::all_to_all(&fabric.topology));
    let busy = links.map(|(link, carried)| host * carried / link.rate.get() as f64);
    let most = (0..).zip(busy).max_by(|one, other| one.1.total_cmp(&other.1));
    match most {
        Some((link, busy)) if busy >= 1.0 => {
            let name = link_name(fabric, link);
            let load = poisson.load_percent as f64;
            let message = format!(
                "the link from {name} would be busy {:.0} % of its time at {load} %; give at most \
                 {}%",
                busy * 100.0,
                ((load / busy).ceil() - 1.0).max(0.0)
            );
            Err(settings.wrong("load", message))
        }
        _ => Ok(()),
    }
}

/// The size and the timeout of readers' requests.
fn requests(settings: &Settings, fabric: &Fabric) -> Result<Requests, SimError> {
    let bytes: Bytes = settings.value("request-size")?;
    let (least, most) = (fabric.frame.header, fabric.frame.full());
    let known = u32::try_from(bytes.get()).ok().filter(|bytes| (least..=most).contains(bytes));
    let bytes = known.ok_or_else(|| {
        let message = format!("a request of {bytes} is no packet; give {least}B to {most}B");
        settings.wrong("request-size", message)
    })?;
    let timeout = settings.time("request-timeout", Parameter::TIME_MAX)?;
    Ok(Requests { bytes, timeout })
}

/// Whether the last packet of a flow is full.
fn is_padded(settings: &Settings, flows: &[Flow]) -> Result<bool, SimError> {
    match settings.is_given("last-packet") {
        true => settings.choice("last-packet", &[("short", false), ("full", true)]),
        false => Ok(flows.iter().any(|flow| flow.exchange != Exchange::OneWay)),
    }
}

/// The flows in order of start; with the window that is measured if they arrive by chance.
fn flows(settings: &Settings, fabric: &Fabric) -> Result<(Vec<Flow>, Option<Window>), SimError> {
    let (mut flows, window) = match settings.text("traffic") {
        "poisson" => {
            let (flows, window) = poisson(settings, fabric)?;
            (flows, Some(window))
        }
        other => (patterned(settings, fabric, other)?, None),
    };
    if settings.is_given("exchange") {
        let exchange = settings.choice("exchange", &exchange::NAMED)?;
        flows.iter_mut().for_each(|flow| flow.exchange = exchange);
    }
    Ok((flows, window))
}

/// Flows that arrive by chance, and the window of those that are measured.
fn poisson(settings: &Settings, fabric: &Fabric) -> Result<(Vec<Flow>, Window), SimError> {
    let sizes = sizes(settings)?;
    let poisson = Poisson {
        hosts: fabric.topology.host_count(),
        rate: mean_rate(fabric),
        load_percent: percent(settings)?,
        sizes: &sizes,
        count: settings.number("flows", 1, FLOWS_MAX)?,
        seed: settings.seed()?,
    };
    can_carry(settings, fabric, &poisson)?;
    let window = Window::new(settings, &poisson, fabric.frame)?;
    let poisson = Poisson { count: window.count, ..poisson };
    let flows = poisson.flows(fabric.frame).map_err(|error| settings.wrong("load", error))?;
    Ok((flows, window))
}

/// The flows of a traffic other than Poisson, by its name or file.
fn patterned(settings: &Settings, fabric: &Fabric, name: &str) -> Result<Vec<Flow>, SimError> {
    let hosts = fabric.topology.host_count();
    let refused = |knob: &'static str| move |error| settings.wrong(knob, error);
    match name {
        "permutation" => traffic::permutation(hosts, size(settings)?, settings.seed()?)
            .map_err(refused("traffic")),
        "all-to-all" => traffic::all_to_all(hosts, size(settings)?).map_err(refused("traffic")),
        "incast" => {
            let senders = settings.number("senders", 1, hosts - 1)?;
            let receiver = settings.number("receiver", 0, hosts - 1)?;
            traffic::incast(hosts, receiver, senders, size(settings)?).map_err(refused("senders"))
        }
        "bursts" => bursts(settings, fabric),
        "blades" => blades::flows(settings, fabric),
        file if file.contains(['.', '/']) => list::flows(Path::new(file), hosts),
        other => {
            let message = format!(
                "there is no traffic \"{other}\"; give poisson, permutation, incast, all-to-all, \
                 bursts, blades, or a file of flows"
            );
            Err(settings.wrong("traffic", message))
        }
    }
}

/// The flows of bursts that every host sends to one other.
fn bursts(settings: &Settings, fabric: &Fabric) -> Result<Vec<Flow>, SimError> {
    let hosts = fabric.topology.host_count();
    let burst = settings.number("burst", 1, FLOWS_MAX)?;
    let wanted = settings.number("flows", 1, FLOWS_MAX)?;
    let repeats = wanted.div_ceil(hosts.saturating_mul(burst)).max(1);
    let load = percent(settings)?;
    let pairs = traffic::permutation(hosts, size(settings)?, settings.seed()?);
    let mut flows = Vec::new();
    for each in pairs.map_err(|error| settings.wrong("traffic", error))? {
        let rate = fabric.topology.links()[each.src as usize].rate;
        let some = traffic::bursts(burst, &each, rate, load, repeats);
        flows.extend(some.map_err(|error| settings.wrong("load", error))?);
    }
    flows.sort_by_key(|flow| (flow.start, flow.src));
    Ok(flows)
}

/// The bytes of each flow; 0 is an error.
fn size(settings: &Settings) -> Result<u64, SimError> {
    let bytes: Bytes = settings.value("size")?;
    match bytes.get() {
        0 => Err(settings.wrong("size", "a flow of no bytes; give it at least 1B")),
        bytes => Ok(bytes),
    }
}

/// The load in whole percent, from 1 to 99.
fn percent(settings: &Settings) -> Result<u64, SimError> {
    let text = settings.text("load");
    let over = || {
        let message =
            format!("\"{text}\": links carry 1 to 99 %, in whole percents; write 60% or 0.6");
        settings.wrong("load", message)
    };
    let load: Fraction = text.parse().map_err(|_| over())?;
    let is_whole = load.ppm().is_multiple_of(10_000) && load != Fraction::ONE;
    if is_whole { Ok(u64::from(load.ppm() / 10_000)) } else { Err(over()) }
}

/// The mean rate of hosts' links.
fn mean_rate(fabric: &Fabric) -> BitsPerSec {
    let hosts = fabric.topology.host_count();
    let links = &fabric.topology.links()[..hosts as usize];
    let sum: u128 = links.iter().map(|link| u128::from(link.rate.get())).sum();
    BitsPerSec::new(u64::try_from(sum / u128::from(hosts)).unwrap_or(u64::MAX).max(1))
}

/// The distribution of flow sizes: by name, one size, or from a file.
fn sizes(settings: &Settings) -> Result<Sizes, SimError> {
    let text = settings.text("sizes");
    for name in [SizesName::Imc10, SizesName::WebSearch, SizesName::DataMining] {
        if name.to_string() == text {
            return Ok(Sizes::named(name));
        }
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return match bytes.get() {
            0 => Err(settings.wrong("sizes", "flows of no bytes; give them at least 1B")),
            bytes => Ok(Sizes::fixed(bytes)),
        };
    }
    if text.contains(['.', '/']) {
        return list::sizes(Path::new(text));
    }
    let message = format!(
        "there is no distribution \"{text}\"; give imc10, web-search, data-mining, one size or a \
         file"
    );
    Err(settings.wrong("sizes", message))
}
