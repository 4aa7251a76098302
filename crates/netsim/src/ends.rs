//! The two ends of every flow, whatever the transport.

use crate::error::SimError;
use crate::event::Timer;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::Held;

/// The two ends of every flow. Its methods are given the network to act on, one event at a time.
pub(crate) trait Ends {
    /// Called once, when the run begins.
    fn begin(&mut self, _: &mut Net<'_>) {}
    /// Starts `flow`: its sender has the bytes to send.
    fn start(&mut self, net: &mut Net<'_>, flow: u32);
    /// Handles `packet`, which has reached `host`.
    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet);
    /// The link of `host`, which the transport awaits, is free: sends one packet, if there is one,
    /// and stops awaiting the link after the last one.
    fn link_free(&mut self, net: &mut Net<'_>, host: u32) {
        net.leave_link(host);
    }
    /// Handles a timer that this transport set.
    fn timer(&mut self, net: &mut Net<'_>, timer: Timer);
    /// No event is left though flows have not ended: marks those that are stranded, with the
    /// reason.
    fn silence(&mut self, _: &mut Net<'_>) {}
}

/// Code that is generic over the transport: `Protocol::run` calls it with the ends of one.
pub(crate) trait Run {
    /// The result of `run`.
    type Outcome;

    /// Runs with `ends`.
    fn run<T: Ends>(self, ends: T) -> Result<Self::Outcome, SimError>;
}

/// Takes a data packet in at a receiver that acknowledges each packet by itself and holds `held` of
/// `packets`, and sends the ACK.
pub(crate) fn acknowledge(net: &mut Net<'_>, held: &mut Held, packets: u32, packet: &Packet) {
    if held.take(packet.number) {
        net.new_data(held.count());
        if held.count() == packets {
            net.received(packet.flow);
        }
    }
    let flow = net.flow(packet.flow);
    let ack = Packet {
        number: packet.number,
        extra: held.until(),
        is_marked: packet.is_marked,
        ..Packet::control(net.frame.header, packet.flow, Kind::Ack, flow.src)
    };
    net.send(flow.dst, ack);
}
