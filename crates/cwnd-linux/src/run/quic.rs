//! Flows of QUIC: connections of the stacks noq and quinn, with TLS.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use cwnd::{Spec, Time};
use cwnd_quic_net::{Controllers, Error, Identity, Job, Receiver, Sender};
use cwnd_sim::network::Quic;
use cwnd_sim::record::Closed;
use cwnd_sim::rng::Rng;

use super::flow_config::FlowConfig;
use super::measurement::{FlowEvent, LimitTimes, Measurement, Snapshot};
use super::threads::{FlowThreads, PORT, RunState, Side};

/// A flow of QUIC.
pub(super) struct QuicFlow {
    sender: Arc<Sender>,
    receiver: Arc<Receiver>,
    state: Arc<RunState>,
    payload: u64,
    limited: LimitTimes,
}

impl QuicFlow {
    /// Starts the threads of a flow. Without `spec` the controller is one of the stack's own.
    pub(super) fn new(
        threads: &mut FlowThreads,
        flow: &FlowConfig,
        quic: &Quic,
        spec: Option<Spec>,
        seed: u64,
    ) -> io::Result<Self> {
        let (sender, receiver) = (Arc::new(Sender::default()), Arc::new(Receiver::default()));
        let [local, peer] = flow.addresses;
        let (local, peer) = (SocketAddrV4::new(local, 0), SocketAddrV4::new(peer, PORT));
        let socket = threads.namespace(Side::Sink).run(|| UdpSocket::bind(peer))??;
        let identity = Identity::generate().map_err(system)?;
        let (shared, options, key) = (receiver.clone(), quic.clone(), identity.clone());
        threads.spawn(Side::Sink, &flow.name, move |state| {
            shared.run(socket, &options, &key, || state.is_stopped()).map_err(system)
        })?;

        let (shared, quic) = (sender.clone(), quic.clone());
        let (start, stop) = (flow.start, flow.stop);
        // The same seed as in the simulator.
        let seed = Rng::new(seed, "law", flow.index.into()).bits();
        threads.spawn(Side::Source, &flow.name, move |state| {
            if !state.wait_until(start) {
                return Ok(());
            }
            let job = Job {
                quic: &quic,
                controllers: spec.map(|spec| Controllers::from(spec).seed(seed)),
                identity: &identity,
                peer: peer.into(),
                stop: (stop != Time::NEVER).then(|| state.instant(stop)),
            };
            shared.run(UdpSocket::bind(local)?, job, || state.is_stopped()).map_err(system)
        })?;
        Ok(QuicFlow {
            sender,
            receiver,
            state: Arc::clone(&threads.state),
            payload: flow.payload().into(),
            limited: LimitTimes::new(flow.start),
        })
    }

    /// Records the last round-trip time sample, the cuts, and the limit since the last call.
    pub(super) fn poll(&self, now: Time, measurement: &mut Measurement) {
        let news = self.sender.news();
        if let Some(rtt) = news.rtt {
            measurement.add_event(FlowEvent::Rtt(now, rtt.as_secs()));
        }
        for cut in news.cuts {
            measurement.add_event(FlowEvent::Cut(now, cut));
        }
        if let Some(snapshot) = self.sender.snapshot() {
            let ended = self.sender.acknowledged().is_some() || self.sender.closed().is_some();
            self.limited.add(now, (!ended).then_some(snapshot.limit));
        }
    }

    /// Returns the current state.
    pub(super) fn snapshot(&self) -> Snapshot {
        let delivered = Some(self.receiver.received());
        let Some(sender) = self.sender.snapshot() else {
            return Snapshot { delivered, ..Snapshot::default() };
        };
        Snapshot {
            sent: sender.sent,
            bytes_sent: sender.sent * self.payload,
            delivered,
            retransmitted: sender.lost,
            timeouts: sender.timeouts,
            ecn_cuts: sender.mark_cuts,
            window: Some(sender.window.get()),
            limited: self.limited.seconds(),
            acknowledged: self.sender.acknowledged().map(|at| self.seconds(at)),
            last_arrival: self.receiver.last_arrival().map_or(0.0, |at| self.seconds(at)),
            gauges: sender.gauges,
            ..Snapshot::default()
        }
    }

    /// Returns when and why the connection was closed before all data was acknowledged.
    pub(super) fn closed(&self) -> Option<Closed> {
        if self.sender.acknowledged().is_some() {
            return None;
        }
        let ends = [("sender", self.sender.closed()), ("receiver", self.receiver.closed())];
        let closed = ends.into_iter().filter_map(|(end, closed)| Some((end, closed?)));
        let (end, (at, reason)) = closed.min_by_key(|(_, (at, _))| *at)?;
        Some(Closed { at: self.seconds(*at), reason: format!("{end}: {reason}") })
    }

    fn seconds(&self, at: Instant) -> f64 {
        self.state.time(at).as_secs()
    }
}

fn system(error: Error) -> io::Error {
    io::Error::other(error)
}
