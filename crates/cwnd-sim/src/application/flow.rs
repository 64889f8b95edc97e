//! The endpoints of a flow with an application.

use super::source::DataSource;
use crate::clock::Clock;
use crate::driver::Meter;
use crate::endpoint::{Endpoint, Idle, Progress, Writable};
use crate::engine::net::{LIFE, Net, Place};
use crate::engine::schedule::NONE;
use crate::network::{Application, Flow, Traffic};
use crate::packet::{Packet, SOURCE};
use crate::record::FlowRecord;
use cwnd::{AnyController, Needs, Output};

/// The ends of a flow with an application.
struct ApplicationFlow<E> {
    sender: E,
    source: DataSource,
    timer: usize,
    /// Packets sent, and the time of the last transmission.
    sent: (u64, u64),
    /// The initial window in packets; `None` if idle periods do not reduce the window.
    initial_window: Option<u32>,
}

/// Returns the endpoints of `flow` with its application, if it has one.
pub(crate) fn with_application<E: Writable>(
    flow: &Flow,
    endpoint: E,
    place: Place,
    seed: u64,
) -> Box<dyn Endpoint> {
    match &flow.application {
        None => Box::new(endpoint),
        Some(application) => {
            Box::new(ApplicationFlow::new(application, flow, endpoint, place, seed))
        }
    }
}

impl<E: Writable> ApplicationFlow<E> {
    /// Adds the application of `flow` to `sender`.
    fn new(application: &Application, flow: &Flow, mut sender: E, place: Place, seed: u64) -> Self {
        let (payload, _) = flow.traffic.packet_bytes();
        let unit = if matches!(*flow.traffic, Traffic::Quic(_)) { 1 } else { payload };
        let initial_window = match &*flow.traffic {
            Traffic::Tcp(tcp) if !tcp.conventions.is_ns2() => Some(tcp.initial_window),
            _ => None,
        };
        sender.open();
        let source =
            DataSource::with_clock(application, [payload, unit], place.clock, seed, place.flow);
        ApplicationFlow { sender, source, timer: place.timer, sent: (0, 0), initial_window }
    }

    /// Lets the application act at `now`, and arms its timer.
    fn advance(&mut self, net: &mut Net, now: u64) {
        self.source.begin(now);
        loop {
            let sent = self.sender.progress().sent.packets;
            if sent > self.sent.0 {
                self.sent = (sent, now);
            }
            let (sender, payload) = (&self.sender, self.source.payload());
            let rate = || controller_rate(sender, payload);
            let Some(units) = self.source.act(sender.acknowledged(), rate) else { break };
            let since = self.sent.1;
            let idle = self.initial_window.map(|initial_window| Idle { since, initial_window });
            let available = self.sender.make_available(net, now, units, idle);
            self.source.made_available(available);
        }
        let due = self.source.due_at();
        if due != NONE {
            net.arm(self.timer + LIFE, due);
        }
    }
}

/// Returns the rate that a sender's controller allows: its pacing rate, or else a window in each
/// round-trip time.
fn controller_rate(sender: &dyn Endpoint, payload: u32) -> Option<f64> {
    let (meter, output) = sender.measured()?;
    let packets = match output.pace {
        Some(pace) => 1.0 / pace.period().as_secs(),
        None if meter.last_rtt == 0 => return None,
        None => output.window.get() / meter.clock.seconds(meter.last_rtt),
    };
    Some(packets * f64::from(payload) * 8.0)
}

impl<E: Writable> Endpoint for ApplicationFlow<E> {
    fn fork(&self) -> Option<Box<dyn Endpoint>> {
        let (sender, source) = (self.sender.copy()?, self.source.clone());
        Some(Box::new(ApplicationFlow { sender, source, ..*self }))
    }

    fn start(&mut self, net: &mut Net, now: u64) {
        self.sent.1 = now;
        self.sender.start(net, now);
        self.source.start_at(now);
        self.advance(net, now);
    }

    fn stop(&mut self, net: &mut Net, now: u64) {
        self.source.stop_at(now);
        self.advance(net, now);
        self.sender.stop(net, now);
    }

    fn act(&mut self, net: &mut Net, now: u64) {
        self.advance(net, now);
    }

    fn wake(&mut self, net: &mut Net, now: u64, side: usize) {
        self.sender.wake(net, now, side);
        if side == SOURCE {
            self.advance(net, now);
        }
    }

    fn receive(&mut self, net: &mut Net, now: u64, packet: Packet) -> bool {
        let finished = self.sender.receive(net, now, packet);
        if packet.side() == SOURCE {
            self.advance(net, now);
        }
        finished
    }

    fn replace_law(&mut self, now: u64, other: AnyController) {
        self.sender.replace_law(now, other);
    }

    fn progress(&self) -> Progress {
        self.sender.progress()
    }

    fn begin_measurement(&mut self, now: u64, side: usize) {
        self.sender.begin_measurement(now, side);
    }

    fn measured(&self) -> Option<(&Meter, Output)> {
        self.sender.measured()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.sender.gauges(emit);
    }

    fn needs(&self) -> Needs {
        self.sender.needs()
    }

    fn finish(self: Box<Self>, end: u64, clock: Clock, record: &mut FlowRecord) {
        let acknowledged = self.sender.acknowledged();
        (record.transfers, record.application) = self.source.results_at(end, acknowledged);
        Box::new(self.sender).finish(end, clock, record);
    }
}
