//! No transport: a flow's packets are all sent when it starts, and none is sent again.
//!
//! For checks of the network alone against queueing theory. It sends data only.

use crate::ends::Ends;
use crate::event::Timer;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::{Held, Slots};

/// The packets that each flow's receiver holds.
#[derive(Debug)]
pub(crate) struct Datagrams {
    flows: Slots<Held>,
}

impl Datagrams {
    pub(crate) fn new(flows: usize) -> Self {
        Self { flows: Slots::new(flows) }
    }
}

impl Ends for Datagrams {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let &crate::Flow { src, dst, bytes, .. } = net.flow(flow);
        let packets = net.frame.packets(bytes);
        self.flows.open(flow, |old| old.unwrap_or_default().reset(packets));
        for number in 0..packets {
            let packet = Packet {
                number,
                bytes: net.frame.wire(bytes, number),
                ..Packet::control(net.frame.header, flow, Kind::Data, dst)
            };
            net.send(src, packet);
        }
    }

    fn receive(&mut self, net: &mut Net<'_>, _: u32, packet: Packet) {
        let Some(held) = self.flows.get_mut(packet.flow) else { return };
        held.take(packet.number);
        net.new_data(held.count());
        if held.count() == net.frame.packets(net.flow(packet.flow).bytes) {
            self.flows.close(packet.flow);
            net.received(packet.flow);
            net.finished(packet.flow);
        }
    }

    fn timer(&mut self, _: &mut Net<'_>, _: Timer) {}

    fn silence(&mut self, net: &mut Net<'_>) {
        for flow in net.flow_indices() {
            if self.flows.get(flow).is_some() {
                net.stranded(flow, "a packet was dropped and datagrams are not repeated");
            }
        }
    }
}
