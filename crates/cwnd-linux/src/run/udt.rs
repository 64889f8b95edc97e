//! Flows of UDT.

use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use cwnd::{Controller, Time};
use cwnd_sim::rng::Rng;
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};
use cwnd_udt::{Config, Endpoint, UdtListener, UdtStream};

use super::flow_config::FlowConfig;
use super::measurement::{FlowEvent, LimitTimes, Measurement, Snapshot};
use super::threads::{
    CHUNK, COMPLETION_INTERVAL, FlowThreads, POLL_INTERVAL, PORT, RunState, Side,
};

/// State shared by both ends: their connections when they are open.
#[derive(Default)]
struct Sockets {
    source: OnceLock<UdtStream>,
    sink: OnceLock<UdtStream>,
    /// Time in nanoseconds at which the sink last read data.
    last_arrival: AtomicU64,
    /// Time in seconds at which all data were acknowledged.
    acknowledged: OnceLock<f64>,
}

/// A flow of UDT.
pub(super) struct UdtFlow {
    sockets: Arc<Sockets>,
    payload: u64,
    limited: LimitTimes,
}

impl UdtFlow {
    /// Starts the threads of a flow.
    pub(super) fn new(
        threads: &mut FlowThreads,
        flow: &FlowConfig,
        config: &Config,
        seed: u64,
    ) -> io::Result<Self> {
        let sockets = Arc::new(Sockets::default());
        let mut config = config.clone();
        // The same seed as in the simulator.
        config.seed = Rng::new(seed, "law", flow.index.into()).bits();
        let [local, peer] = flow.addresses;
        let (local, peer) = (SocketAddrV4::new(local, 0), SocketAddrV4::new(peer, PORT));
        let listener = threads.namespace(Side::Sink).run(|| UdtListener::bind(peer, &config))??;
        let shared = Arc::clone(&sockets);
        threads.spawn(Side::Sink, &flow.name, move |state| run_sink(&listener, &shared, state))?;

        let payload = u64::from(config.packet_size) - (HEADER + IP_UDP_HEADERS) as u64;
        let remaining = flow.packets.map_or(u64::MAX, |packets| packets.saturating_mul(payload));
        let (shared, start, stop) = (Arc::clone(&sockets), flow.start, flow.stop);
        threads.spawn(Side::Source, &flow.name, move |state| {
            if !state.wait_until(start) {
                return Ok(());
            }
            let stream = Endpoint::bind(local)?.connecting(peer.into(), &config)?;
            let connected = |deadline| match stream.connected_until(deadline) {
                // The handshake has timed out, not the wait for it.
                Err(error) if stream.close_reason().is_some() => Err(io::Error::other(error)),
                other => other,
            };
            if repeat(state, connected)?.is_none() {
                return Ok(());
            }
            run_source(shared.source.get_or_init(|| stream), &shared, (remaining, stop), state)
        })?;
        Ok(UdtFlow { sockets, payload, limited: LimitTimes::new(flow.start) })
    }

    /// Records the last round-trip time sample, the last cut, and the limit since the last call.
    pub(super) fn poll(&self, now: Time, measurement: &mut Measurement) {
        let Some(stream) = self.sockets.source.get() else { return };
        let (rtt, cut, limit) =
            stream.with_connection(|it| (it.take_rtt(), it.take_cut(), it.limit()));
        if let Some(rtt) = rtt {
            measurement.add_event(FlowEvent::Rtt(now, rtt.as_secs()));
        }
        if let Some(cut) = cut {
            measurement.add_event(FlowEvent::Cut(now, cut));
        }
        let acknowledged = self.sockets.acknowledged.get().is_some();
        self.limited.add(now, (!acknowledged).then_some(limit));
    }

    /// Returns the current state.
    pub(super) fn snapshot(&self) -> Snapshot {
        let received = |sink: &UdtStream| sink.with_connection(|it| it.counters().byte_recv);
        let delivered = Some(self.sockets.sink.get().map_or(0, received));
        let Some(stream) = self.sockets.source.get() else {
            return Snapshot { delivered, ..Snapshot::default() };
        };
        stream.with_connection(|connection| {
            let counters = connection.counters();
            let controller = connection.controller();
            let mut gauges = Vec::new();
            if let Some(controller) = controller {
                controller.gauges(&mut |name, value| gauges.push((name, value)));
            }
            Snapshot {
                sent: counters.pkt_sent,
                bytes_sent: counters.byte_sent + counters.pkt_retrans * self.payload,
                delivered,
                retransmitted: counters.pkt_retrans,
                timeouts: counters.timeouts,
                window: controller.map(|controller| controller.output().window.get()),
                limited: self.limited.seconds(),
                acknowledged: self.sockets.acknowledged.get().copied(),
                last_arrival: Time::from_nanos(self.sockets.last_arrival.load(Ordering::Relaxed))
                    .as_secs(),
                gauges,
                ..Snapshot::default()
            }
        })
    }
}

/// Accepts the connection and reads it to the end.
fn run_sink(listener: &UdtListener, sockets: &Sockets, state: &RunState) -> io::Result<()> {
    let accepted = repeat(state, |deadline| listener.accept_until(deadline))?;
    let Some((stream, _)) = accepted else { return Ok(()) };
    let stream = sockets.sink.get_or_init(|| stream);
    let mut buffer = vec![0; CHUNK];
    while let Some(1..) = repeat(state, |deadline| stream.read_until(&mut buffer, deadline))? {
        sockets.last_arrival.store(state.now().as_nanos(), Ordering::Relaxed);
    }
    stream.abort();
    Ok(())
}

/// Writes the data, and keeps the connection open until the run stops.
fn run_source(
    stream: &UdtStream,
    sockets: &Sockets,
    (mut remaining, stop): (u64, Time),
    state: &RunState,
) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    while remaining > 0 && !state.is_stopped() && state.now() < stop {
        let size = remaining.min(CHUNK as u64) as usize;
        match stream.write_until(&zeros[..size], Some(Instant::now() + POLL_INTERVAL)) {
            Ok(count) => remaining -= count as u64,
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
    }
    // Here all data are written, or the flow has stopped: wait until the written data are
    // acknowledged.
    while !state.is_stopped() {
        let done = stream.unacknowledged() == 0;
        if done {
            sockets.acknowledged.get_or_init(|| state.now().as_secs());
        }
        thread::sleep(if done { POLL_INTERVAL } else { COMPLETION_INTERVAL });
    }
    stream.abort();
    Ok(())
}

/// Repeats a call with a deadline while it times out; `None` if the run stops before.
fn repeat<T>(
    state: &RunState,
    mut call: impl FnMut(Option<Instant>) -> io::Result<T>,
) -> io::Result<Option<T>> {
    while !state.is_stopped() {
        match call(Some(Instant::now() + POLL_INTERVAL)) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            done => return done.map(Some),
        }
    }
    Ok(None)
}
