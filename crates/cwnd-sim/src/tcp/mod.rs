//! TCP: a sender with its congestion controller and a receiver. Sequence numbers count packets.
//!
//! The sender ([`sender`]) is generic over its loss recovery ([`recovery`]): that of RFC 6675 and
//! earlier ones ([`rfc`]), that of ns-2 ([`ns2`]), or that with the parts of later RFCs and of
//! Linux ([`selective`]).

pub(crate) mod accecn;
mod delayed_acks;
pub(crate) mod demands;
pub(crate) mod ns2;
mod prr;
mod rack;
mod receiver;
pub(crate) mod recovery;
mod rfc;
mod rto;
pub(crate) mod scoreboard;
mod selective;
pub(crate) mod sender;
mod tlp;
mod tso;

use crate::cast::low32;
use crate::clock::Clock;
use crate::driver::{Driver, Meter};
use crate::endpoint::{Endpoint, Idle, Progress, Writable};
use crate::engine::net::{Net, Place};
use crate::engine::schedule::NONE;
use crate::network::Tcp;
use crate::packet::{Packet, SINK, flags};
use crate::record::FlowRecord;
use cwnd::{AnyController, Controller, Needs, Output};
pub(crate) use ns2::Ns2;
use receiver::Receiver;
use recovery::LossRecovery;
pub(crate) use rfc::Rfc;
pub(crate) use selective::Selective;
use sender::Sender;

/// A TCP connection with the loss recovery `R`.
#[derive(Clone)]
pub(crate) struct TcpFlow<R: LossRecovery> {
    sender: Sender<R>,
    receiver: Receiver,
}

impl<R: LossRecovery> TcpFlow<R> {
    /// Creates a connection. `back` is the first hop of the return route.
    pub(crate) fn new(tcp: &Tcp, driver: Driver, place: Place, back: u32, seed: u64) -> Self {
        TcpFlow {
            sender: Sender::new(tcp, driver, place, seed),
            receiver: Receiver::new(tcp, place.clock, back, place.timer + SINK),
        }
    }

    /// Whether no packet is in flight and no timer is running.
    #[cold]
    fn is_drained(&self, net: &Net) -> bool {
        let [data, acks] = net.gone[self.sender.flow()];
        let core = &self.sender.core;
        core.driver.packets_sent == self.receiver.received + data
            && self.receiver.acks_sent == core.acks_received.wrapping_add(low32(acks))
            && core.due() == NONE
            && !self.receiver.ack_is_delayed()
    }
}

impl<R: LossRecovery> Endpoint for TcpFlow<R> {
    fn fork(&self) -> Option<Box<dyn Endpoint>> {
        Some(Box::new(self.clone()))
    }

    fn start(&mut self, net: &mut Net, now: u64) {
        self.sender.start(net, now);
    }

    fn stop(&mut self, _: &mut Net, now: u64) {
        self.sender.stop(now);
    }

    fn wake(&mut self, net: &mut Net, now: u64, side: usize) {
        if side == SINK { self.receiver.wake(net, now) } else { self.sender.wake(net, now) }
    }

    fn receive(&mut self, net: &mut Net, now: u64, packet: Packet) -> bool {
        if packet.flags() & flags::ACK != 0 {
            self.sender.acknowledgement(net, now, packet);
            self.sender.core.driver.meter.acknowledged != NONE && self.is_drained(net)
        } else {
            self.receiver.data(net, now, packet);
            false
        }
    }

    fn replace_law(&mut self, now: u64, other: AnyController) {
        self.sender.core.driver.replace_law(now, other);
    }

    fn progress(&self) -> Progress {
        Progress {
            sent: self.sender.sent(self.receiver.header),
            total: self.sender.total(),
            arrived: self.receiver.arrived(),
            received: self.receiver.data_received(),
            last_new: self.receiver.last_new,
            marked: u64::from(self.receiver.marked),
        }
    }

    fn begin_measurement(&mut self, now: u64, side: usize) {
        if side == SINK {
            self.receiver.marked = 0
        } else {
            self.sender.core.driver.meter.reset(now)
        }
    }

    fn measured(&self) -> Option<(&Meter, Output)> {
        Some(self.sender.core.driver.measured())
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.sender.core.driver.controller.gauges(emit);
    }

    fn needs(&self) -> Needs {
        self.sender.core.driver.controller.needs()
    }

    fn finish(self: Box<Self>, end: u64, _: Clock, record: &mut FlowRecord) {
        self.sender.core.driver.finish(end, record);
    }
}

impl<R: LossRecovery + Send> Writable for TcpFlow<R>
where
    R::Estimator: Send,
{
    fn copy(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn open(&mut self) {
        self.sender.open();
    }

    fn make_available(&mut self, net: &mut Net, now: u64, packets: u64, idle: Option<Idle>) -> u64 {
        if let Some(Idle { since, initial_window }) = idle {
            self.sender.restart_after_idle(now, now - since, initial_window);
        }
        let available = self.sender.make_available(packets);
        self.sender.resume(net, now);
        available
    }

    fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }
}
