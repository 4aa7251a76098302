//! A run: flows start, packets arrive, timers go off, until every flow has ended.

use measure::{Duration, Instant};

use crate::asking::{Asking, READER};
use crate::ends::{Ends, Run};
use crate::error::SimError;
use crate::event::{Order, What};
use crate::fabric::{Fabric, PortStats, Requests};
use crate::flow::{Exchange, Flow, FlowRecord};
use crate::net::{Keeper, Looker, Net, PortSeries, Sampler, Samples};
use crate::packet::Kind;
use crate::published::sort;
use crate::trace::{Trace, Tracer};
use crate::transport::Protocol;

/// How long no flow may progress before a run is abandoned.
const PATIENCE: Duration = Duration::from_ms(1_000);
/// Events between checks for progress.
const LOOK_EVERY: u64 = 1 << 20;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// By flow.
    pub records: Vec<FlowRecord>,
    /// By link.
    pub ports: Vec<PortStats>,
    /// When the last flow ended.
    pub end: Instant,
    /// What links sent in the span that was requested; `None` without one.
    pub span: Option<Span>,
    /// Events that the run took.
    pub event_count: u64,
    /// Data packets that reached their receivers, repeated ones included.
    pub delivered_packets: u64,
}

/// What links sent between two starts of flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The start of the first flow of it.
    pub from: Instant,
    /// The start of the first flow after it, or the end of the run.
    pub to: Instant,
    /// Bytes that were sent, by link.
    pub sent_bytes: Vec<u64>,
}

impl Outcome {
    /// Returns the outcome if every flow finished.
    ///
    /// # Errors
    /// If one of them did not.
    pub fn complete(self) -> Result<Self, SimError> {
        self.complete_of(|_| true)
    }

    /// Returns the outcome if every flow of `flows` that starts in `time` finished.
    ///
    /// # Errors
    /// If one of them did not.
    pub fn complete_within(self, flows: &[Flow], time: [Instant; 2]) -> Result<Self, SimError> {
        let [from, to] = time;
        self.complete_of(|flow| (from..to).contains(&flows[flow as usize].start))
    }

    /// Returns the outcome if every flow for which `is_wanted` finished.
    fn complete_of(self, is_wanted: impl Fn(u32) -> bool) -> Result<Self, SimError> {
        let mut unfinished = (0_u32..)
            .zip(&self.records)
            .filter(|(flow, record)| !record.has_ended() && is_wanted(*flow));
        let Some((first, record)) = unfinished.next() else { return Ok(self) };
        Err(SimError::Unfinished {
            count: u32::try_from(unfinished.count() + 1).unwrap_or(u32::MAX),
            total: u32::try_from(self.records.len()).unwrap_or(u32::MAX),
            first,
            why: record.stranded.unwrap_or("nothing is under way for it"),
        })
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The simulated time.
    pub now: Instant,
    /// Flows that have finished or never will.
    pub ended_count: u32,
    /// Events so far.
    pub event_count: u64,
    /// Data packets that reached their receivers, each counted once.
    pub received_packets: u64,
}

/// Called every million events with the progress; the run stops if it returns `false`.
pub type Watch<'a> = &'a mut dyn FnMut(&Progress) -> bool;

/// Runs `flows` until all have finished.
///
/// # Errors
/// If the fabric or a flow is invalid, or a flow never finishes.
pub fn simulate(fabric: &Fabric, protocol: Protocol, flows: &[Flow]) -> Result<Outcome, SimError> {
    simulate_stranded(fabric, protocol, flows)?.complete()
}

/// As [`simulate`]; also returns the bytes queued at a port at each sample.
///
/// # Errors
/// As [`simulate`], and if there is no such link or samples are 0 ps apart.
pub fn simulate_sampled(
    fabric: &Fabric,
    protocol: Protocol,
    flows: &[Flow],
    samples: Samples,
) -> Result<(Outcome, Vec<u64>), SimError> {
    let count = fabric.topology.links().len();
    if samples.link as usize >= count {
        return Err(SimError::NoLink { link: samples.link, count });
    }
    if samples.every.is_zero() {
        return Err(SimError::Unending);
    }
    let looker = Looker { sampler: Some(Sampler::new(samples)), ..Looker::default() };
    let net = Net::new(fabric, flows, order(protocol))?.told_to(looker);
    let watched = Watched { net, watch: &mut |_| true, requests: fabric.requests, span: None };
    let (outcome, looker) = run_protocol(watched, fabric, protocol)?;
    let queued_bytes = looker.sampler.map_or_else(Vec::new, |sampler| sampler.queued_bytes);
    Ok((outcome.complete()?, queued_bytes))
}

/// As [`simulate`], but flows that never finish are part of the outcome.
///
/// # Errors
/// If the fabric or a flow is invalid, or events go on without progress.
pub fn simulate_stranded(
    fabric: &Fabric,
    protocol: Protocol,
    flows: &[Flow],
) -> Result<Outcome, SimError> {
    simulate_watched(fabric, protocol, flows, &mut |_| true)
}

/// As [`simulate_stranded`]; the run stops once `watch` returns `false`.
///
/// # Errors
/// As [`simulate_stranded`], and if `watch` stopped the run.
pub fn simulate_watched(
    fabric: &Fabric,
    protocol: Protocol,
    flows: &[Flow],
    watch: Watch<'_>,
) -> Result<Outcome, SimError> {
    let net = Net::new(fabric, flows, order(protocol))?;
    run_protocol(Watched { net, watch, requests: fabric.requests, span: None }, fabric, protocol)
        .map(|(outcome, _)| outcome)
}

/// What to record of a run beside its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Observe {
    /// Record each port by intervals of this length, or longer ones if there are many.
    pub every: Option<Duration>,
    /// Trace the first so many packets.
    pub packets: Option<u32>,
    /// What links do from the first flow that starts at the first of these times or later to the
    /// first that starts at the second or later.
    pub span: Option<[Instant; 2]>,
    /// End the run once every flow that starts in `span` has ended. Others may then be under way;
    /// if none is left to start before, the run has no result.
    pub until_span_ended: bool,
}

/// What was recorded of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its outcome.
    pub outcome: Outcome,
    /// The ports by interval, if requested.
    pub ports: Option<PortSeries>,
    /// The traced packets, if requested.
    pub trace: Option<Trace>,
}

/// As [`simulate_watched`]; also returns what `observe` requests.
///
/// # Errors
/// As [`simulate_watched`], and if intervals are 0 ps long.
pub fn simulate_observed(
    fabric: &Fabric,
    protocol: Protocol,
    flows: &[Flow],
    observe: Observe,
    watch: Watch<'_>,
) -> Result<Observed, SimError> {
    if observe.every.is_some_and(Duration::is_zero) {
        return Err(SimError::Unending);
    }
    let mut net = Net::new(fabric, flows, order(protocol))?;
    if let Some(time) = observe.span.filter(|_| observe.until_span_ended) {
        net.await_only(time);
    }
    if observe.every.is_some() || observe.packets.is_some() {
        let from = flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let count = fabric.topology.links().len();
        net = net.told_to(Looker {
            sampler: None,
            keeper: observe.every.map(|every| Keeper::new(from, every, count)),
            tracer: observe.packets.map(Tracer::new),
        });
    }
    let (outcome, looker) = run_protocol(
        Watched { net, watch, requests: fabric.requests, span: observe.span },
        fabric,
        protocol,
    )?;
    Ok(Observed {
        outcome,
        ports: looker.keeper.map(|keeper| keeper.series),
        trace: looker.tracer.map(|tracer| tracer.trace),
    })
}

/// The order of simultaneous events that `protocol` needs.
const fn order(protocol: Protocol) -> Order {
    match protocol {
        Protocol::AsPublished2016(_) => Order::Heap,
        _ => Order::Sequence,
    }
}

/// Runs `watched` with the ends of `protocol`.
fn run_protocol(
    watched: Watched<'_, '_>,
    fabric: &Fabric,
    protocol: Protocol,
) -> Result<(Outcome, Looker), SimError> {
    let flows = watched.net.flows.len();
    protocol.run(fabric, flows, watched)
}

/// A network with its observers.
struct Watched<'a, 'w> {
    net: Net<'a>,
    watch: Watch<'w>,
    requests: Requests,
    span: Option<[Instant; 2]>,
}

impl Run for Watched<'_, '_> {
    type Outcome = (Outcome, Looker);

    fn run<T: Ends>(self, ends: T) -> Result<(Outcome, Looker), SimError> {
        run(self, ends)
    }
}

/// Takes events until all awaited flows have ended.
fn run<T: Ends>(watched: Watched<'_, '_>, mut transport: T) -> Result<(Outcome, Looker), SimError> {
    let Watched { mut net, watch, requests, span } = watched;
    let mut marks = Marks { times: span, seen: Vec::new() };
    let mut asking = Asking::new(&net, requests);
    let mut order: Vec<u32> = net.flow_indices().collect();
    match net.order() {
        Order::Sequence => order.sort_by_key(|&flow| net.flow(flow).start),
        Order::Heap => sort(&mut order, &|flow| net.flow(flow).start),
    }
    let mut starts = order.into_iter().peekable();
    transport.begin(&mut net);
    net.start_next(starts.peek());
    let mut taken = 0_u64;
    while net.left_count > 0 {
        let Some((at, phase)) = net.events.peek(net.has_called()) else {
            if !net.has_called() {
                break;
            }
            serve_called(&mut net, &mut transport);
            continue;
        };
        if net.must_serve(at, phase) {
            serve_called(&mut net, &mut transport);
            continue;
        }
        net.set_now(at);
        taken += 1;
        if taken.is_multiple_of(LOOK_EVERY) {
            look(&net, taken, watch)?;
        }
        let what = net.events.take();
        net.look(at, what);
        match what {
            Some(What::Pass { port, packet }) => net.pass(port, packet),
            Some(What::Serve { port }) => serve(&mut net, &mut transport, port),
            Some(What::Arrive { port, packet }) => {
                arrive(&mut net, &mut asking, &mut transport, (port, packet));
            }
            Some(What::Queue { port, packet }) => net.queue(port, packet),
            Some(What::Timer(timer)) if timer.kind == READER => asking.again(&mut net, timer.of),
            Some(What::Timer(timer)) => transport.timer(&mut net, timer),
            Some(What::Start) => {
                if let Some(flow) = starts.next() {
                    marks.look(&net);
                    begin(&mut net, &mut asking, &mut transport, flow);
                    net.start_next(starts.peek());
                    if starts.peek().is_none() {
                        net.check_load()?;
                    }
                }
            }
            None => {}
        }
        net.check();
    }
    if net.left_count > 0 {
        transport.silence(&mut net);
    }
    let looker = net.last_look();
    let outcome = Outcome {
        end: net.now(),
        span: marks.finish(&net),
        event_count: taken,
        delivered_packets: net.delivered_packets,
        ports: net.port_stats(),
        records: net.records,
    };
    Ok((outcome, looker))
}

/// What ports had sent at the two ends of a span of time.
struct Marks {
    times: Option<[Instant; 2]>,
    seen: Vec<(Instant, Vec<u64>)>,
}

impl Marks {
    /// Called at each start of a flow: records the counters if an end of the span has come.
    #[inline]
    fn look(&mut self, net: &Net<'_>) {
        if let Some(times) = self.times
            && times.get(self.seen.len()).is_some_and(|&time| net.now() >= time)
        {
            self.take(net);
        }
    }

    /// Records what each port has sent so far.
    #[cold]
    fn take(&mut self, net: &Net<'_>) {
        let sent = net.port_stats().iter().map(|port| port.sent_bytes).collect();
        self.seen.push((net.now(), sent));
    }

    /// The span at the end of the run; `None` if none was requested or it has not begun.
    fn finish(mut self, net: &Net<'_>) -> Option<Span> {
        if self.times.is_some() && self.seen.len() == 1 {
            self.take(net);
        }
        let [(from, before), (to, after)] = &self.seen[..] else { return None };
        let sent_bytes = after.iter().zip(before).map(|(after, before)| after - before).collect();
        Some(Span { from: *from, to: *to, sent_bytes })
    }
}

/// Begins a flow: a read with its reader's request, any other with its sender.
fn begin<T: Ends>(net: &mut Net<'_>, asking: &mut Asking, transport: &mut T, flow: u32) {
    net.progress_at = net.now();
    match net.flow(flow).exchange {
        Exchange::Read => asking.ask(net, flow),
        Exchange::OneWay | Exchange::Write => transport.start(net, flow),
    }
}

/// Delivers a packet to a host: requests of readers to `asking`, all others to the transport.
#[inline]
fn arrive<T: Ends>(
    net: &mut Net<'_>,
    asking: &mut Asking,
    transport: &mut T,
    (port, packet): (u32, u32),
) {
    let (host, packet) = net.arrive(port, packet);
    if packet.kind == Kind::Read {
        if asking.came(packet.flow) {
            transport.start(net, packet.flow);
        }
        return;
    }
    asking.heard(net, host, packet.flow);
    transport.receive(net, host, packet);
}

/// Serves the ports that were called at this instant.
#[inline]
fn serve_called<T: Ends>(net: &mut Net<'_>, transport: &mut T) {
    let mut next = 0;
    while let Some(port) = net.called(next) {
        serve(net, transport, port);
        next += 1;
    }
    net.all_served();
}

/// Lets `port` send its next packet, after the transport has queued one if it has any.
#[inline]
fn serve<T: Ends>(net: &mut Net<'_>, transport: &mut T, port: u32) {
    while net.is_awaited(port) {
        transport.link_free(net, port);
    }
    net.serve(port);
}

/// Returns an error if no flow progresses any more or `watch` stops the run.
fn look(net: &Net<'_>, event_count: u64, watch: Watch<'_>) -> Result<(), SimError> {
    if net.now().saturating_since(net.progress_at) > PATIENCE {
        return Err(SimError::Livelock { at: net.progress_at, for_long: PATIENCE });
    }
    let progress = Progress {
        now: net.now(),
        ended_count: net.ended_count,
        event_count,
        received_packets: net.received_packets,
    };
    if !watch(&progress) {
        let total = u32::try_from(net.flows.len()).unwrap_or(u32::MAX);
        return Err(SimError::Stopped { ended: net.ended_count, total, at: net.now() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use measure::BitsPerSec;

    use super::*;
    use crate::fabric::Switching;
    use crate::net::Losses;
    use crate::queue::Discipline;
    use crate::transport::PFabricConfig;
    use crate::{LeafSpine, Topology, Transport, traffic};

    /// Runs `transport` with the packets lost that are sent as those numbers; how many are sent.
    fn run_losing(transport: Transport, flows: &[Flow], numbers: &[u64]) -> u64 {
        let shape = LeafSpine {
            racks: 2,
            hosts_per_rack: 2,
            spines: 2,
            host_rate: BitsPerSec::from_gbps(40),
            spine_rate: BitsPerSec::from_gbps(40),
            delays: [Duration::from_ns(200); 4],
        };
        let topology = Topology::leaf_spine(&shape).unwrap();
        let fabric = transport.fabric(topology, Switching::CutThrough).unwrap();
        let protocol = transport.protocol(&fabric);
        let mut net = Net::new(&fabric, flows, Order::Sequence).unwrap();
        let losses = Rc::new(RefCell::new(Losses { sent: 0, numbers: numbers.to_vec() }));
        net.losses = Some(losses.clone());
        let watched = Watched { net, watch: &mut |_| true, requests: fabric.requests, span: None };
        let outcome = run_protocol(watched, &fabric, protocol);
        let outcome = outcome.and_then(|(outcome, _)| outcome.complete());
        let name = transport.describe().name;
        let outcome = outcome.unwrap_or_else(|error| panic!("{name}, {numbers:?}: {error}"));
        assert!(outcome.end < Instant::ZERO + Duration::from_ms(100), "{name}, {numbers:?}");
        losses.take().sent
    }

    /// Among them are each reader's request, each SYN, request to send, token, grant, pull and the
    /// last acknowledgement.
    #[test]
    fn whichever_packet_is_lost_every_flow_finishes() {
        for &transport in Transport::ALL {
            for packets in [1, 2, 40] {
                let bytes = packets * 1460 - 100;
                let flow = |start, src, exchange| Flow { start, src, dst: 3, bytes, exchange };
                let flows = [
                    flow(Instant::ZERO, 0, Exchange::Read),
                    flow(Instant::from_ns(700), 1, Exchange::Write),
                ];
                let sent = run_losing(transport, &flows, &[]);
                for number in 0..sent {
                    run_losing(transport, &flows, &[number]);
                    run_losing(transport, &flows, &[number, number + 1]);
                    // What is sent again for it is perhaps this.
                    run_losing(transport, &flows, &[number, sent - 1, sent, sent + 1]);
                }
            }
        }
    }

    #[test]
    fn who_watches_can_stop_it_and_changes_nothing() {
        let rate = BitsPerSec::from_gbps(100);
        let topology = Topology::single_switch(2, rate, Duration::from_ns(200)).unwrap();
        let fabric = Fabric::new(topology, Switching::CutThrough, Discipline::Urgency);
        let protocol = Protocol::PFabric(PFabricConfig::for_fabric(&fabric));
        let flows = traffic::permutation(2, 300 << 20, 1).unwrap();
        let mut seen = Vec::new();
        let mut go_on = |progress: &Progress| {
            seen.push(*progress);
            true
        };
        let watched = simulate_watched(&fabric, protocol, &flows, &mut go_on);
        assert_eq!(watched, simulate(&fabric, protocol, &flows));
        assert_eq!(seen[0].event_count, LOOK_EVERY);
        let stopped = simulate_watched(&fabric, protocol, &flows, &mut |_| false);
        let at = seen[0].now;
        assert_eq!(stopped, Err(SimError::Stopped { ended: 0, total: 2, at }));
    }
}
