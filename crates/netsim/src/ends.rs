//! The two ends of every flow, whatever the transport.

use crate::error::SimError;
use crate::event::Timer;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::Held;

/// The two ends of every flow. Its methods are given the network to act on, one event at a time.
pub(crate) trait Ends {
    /// The run begins.
    fn begin(&mut self, _: &mut Net<'_>) {}
    /// The sender of `flow` has its bytes.
    fn start(&mut self, net: &mut Net<'_>, flow: u32);
    /// `packet` has reached `host`.
    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet);
    /// The link of `host` is free, which was awaited: sends one packet, if it still has one, and
    /// leaves the link if that was all.
    fn link_free(&mut self, net: &mut Net<'_>, host: u32) {
        net.leave_link(host);
    }
    /// A timer that this transport set goes off.
    fn timer(&mut self, net: &mut Net<'_>, timer: Timer);
    /// Nothing is left to happen though flows have not ended: says which are stranded, and why.
    fn silence(&mut self, _: &mut Net<'_>) {}
}

/// What is to be done with the ends of flows, whatever the transport.
pub(crate) trait Run {
    /// What comes of it.
    type Outcome;

    /// Does it with `ends`.
    fn run<T: Ends>(self, ends: T) -> Result<Self::Outcome, SimError>;
}

/// Data has come to a receiver that acknowledges every packet by itself and has `held` of
/// `packets`.
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
