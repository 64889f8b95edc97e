//! The two ends of a flow, of any kind.

use crate::clock::Clock;
use crate::driver::{Meter, Payload};
use crate::engine::net::Net;
use crate::packet::Packet;
use crate::record::FlowRecord;
use cwnd::{AnyController, Needs, Output, Settings};

/// What the ends of a flow have sent and received since its start.
pub(crate) struct Progress {
    /// Data sent, retransmissions included.
    pub sent: Payload,
    /// Data packets of the whole flow; `None` if there may be more than now.
    pub total: Option<u64>,
    /// Data that arrived at the sink for the first time, in any order.
    pub arrived: Payload,
    /// Data packets that arrived at the sink, duplicates included.
    pub received: u64,
    /// Time of the last first arrival.
    pub last_new: u64,
    /// CE-marked data packets received since the end of the warm-up.
    pub marked: u64,
}

/// The two ends of a flow: its source and its sink. An end reacts only to packets and to its own
/// timer.
pub(crate) trait Endpoint: Send + 'static {
    /// Returns a copy; `None` if the protocol cannot be copied.
    fn fork(&self) -> Option<Box<dyn Endpoint>>;

    /// Starts the transfer.
    fn start(&mut self, net: &mut Net, now: u64);

    /// Ends the data of the source.
    fn stop(&mut self, net: &mut Net, now: u64);

    /// Handles the expired timer of the application.
    fn act(&mut self, _: &mut Net, _: u64) {}

    /// Handles the expired timer of one end.
    fn wake(&mut self, net: &mut Net, now: u64, side: usize);

    /// Handles a packet that arrives at the source, if it is an acknowledgement, or at the sink.
    /// Returns whether the flow is finished: its transfer is complete and nothing is in flight, so
    /// that its state does not change any more.
    fn receive(&mut self, net: &mut Net, now: u64, packet: Packet) -> bool;

    /// Replaces the law of the source's controller at `now`, if the flow is TCP.
    fn replace_law(&mut self, _now: u64, _other: AnyController) {}

    fn progress(&self) -> Progress;

    /// Resets the counters of one end at the end of the warm-up.
    fn begin_measurement(&mut self, _: u64, _: usize) {}

    /// Emits the sampled variables of the source: packets and bytes sent and, with a controller,
    /// the window, the round-trip time and the controller's own variables.
    fn sample(&self, clock: Clock, emit: &mut dyn FnMut(&'static str, f64)) {
        let Progress { sent, .. } = self.progress();
        emit("sent", sent.packets as f64);
        emit("sent_bytes", sent.bytes as f64);
        let Some((meter, output)) = self.measured() else { return };
        let rtt = meter.last_rtt;
        emit("window", output.window.get());
        emit("rtt", if rtt == 0 { f64::NAN } else { clock.seconds(rtt) });
        self.gauges(emit);
    }

    /// The source's measurements and its controller's output; `None` for a source without feedback.
    fn measured(&self) -> Option<(&Meter, Output)>;

    /// Emits the controller's own variables.
    fn gauges(&self, _: &mut dyn FnMut(&'static str, f64)) {}

    /// What the source's controller needs.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The settings of the source's controller if the protocol determines them.
    fn settings(&self) -> Option<Settings> {
        None
    }

    /// Writes the source's part of the record at the end of the run.
    fn finish(self: Box<Self>, end: u64, clock: Clock, record: &mut FlowRecord);
}

/// An idle period of a sender, for the restart after it (RFC 5681 section 4.1).
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    /// Time of the last transmission.
    pub since: u64,
    /// The initial window in packets.
    pub initial_window: u32,
}

/// A sender to which an application writes.
pub(crate) trait Writable: Endpoint + Sized {
    /// Returns a copy; `None` if the protocol cannot be copied.
    fn copy(&self) -> Option<Self>;

    /// Replaces the flow's data by that of an application, before the start.
    fn open(&mut self);

    /// Makes the first `units` packets of the flow, or bytes of QUIC, available, and sends what the
    /// controller permits. A smaller number than before withdraws data that has not been sent.
    /// Returns the number available then.
    fn make_available(&mut self, net: &mut Net, now: u64, units: u64, idle: Option<Idle>) -> u64;

    /// Packets, or bytes of QUIC, from the start of the flow up to the first unacknowledged one.
    fn acknowledged(&self) -> u64;
}
