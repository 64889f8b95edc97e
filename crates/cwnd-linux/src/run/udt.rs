//! A flow of UDT.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use cwnd::{Controller, Limit, Time};
use cwnd_sim::rng::Rng;
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};
use cwnd_udt::{Config, Endpoint, UdtListener, UdtStream};

use super::meter::{Meter, Reading, Told};
use super::plan::Flow;
use super::stage::{SLICE, Scene, Side, Stage};

const PORT: u16 = 9;
/// Bytes written and read at a time.
const CHUNK: usize = 64 << 10;
/// Between two looks whether all is acknowledged.
const LOOK: Duration = Duration::from_micros(500);

/// Both ends, as far as they are there.
#[derive(Default)]
struct Sockets {
    source: OnceLock<UdtStream>,
    /// Bytes that arrived in order.
    received: AtomicU64,
    completed: OnceLock<f64>,
}

pub(super) struct Ends {
    sockets: Arc<Sockets>,
    payload: f64,
    /// What limited the sender, for how many seconds, and until when that is known.
    limited: Mutex<([f64; 4], Time)>,
}

impl Ends {
    pub(super) fn new(
        stage: &mut Stage,
        flow: &Flow,
        config: &Config,
        seed: u64,
    ) -> io::Result<Self> {
        let sockets = Arc::new(Sockets::default());
        let mut config = config.clone();
        // As in the simulator.
        config.seed = Rng::new(seed, "law", flow.index.into()).bits();
        let [local, peer] = flow.ends;
        let (local, peer) = (SocketAddrV4::new(local, 0), SocketAddrV4::new(peer, PORT));
        let listener = stage.space(Side::Sink).run(|| UdtListener::bind(peer, &config))??;
        let shared = Arc::clone(&sockets);
        stage.spawn(Side::Sink, &flow.name, move |scene| sink(&listener, &shared, scene))?;

        let payload = u64::from(config.packet_size) - (HEADER + IP_UDP_HEADERS) as u64;
        let left = flow.packets.map_or(u64::MAX, |packets| packets.saturating_mul(payload));
        let (shared, start, stop) = (Arc::clone(&sockets), flow.start, flow.stop);
        stage.spawn(Side::Source, &flow.name, move |scene| {
            if !scene.wait_until(start) {
                return Ok(());
            }
            let endpoint = Endpoint::bind(local)?;
            let connecting = endpoint.connect_async(peer.into(), &config);
            let Some(stream) = wait(connecting, scene).transpose()? else { return Ok(()) };
            source(shared.source.get_or_init(|| stream), &shared, (left, stop), scene)
        })?;
        Ok(Ends { sockets, payload: payload as f64, limited: Mutex::new(([0.0; 4], flow.start)) })
    }

    /// Tells what happens between two readings: only the last of each kind is remembered.
    pub(super) fn look(&self, now: Time, meter: &mut Meter) {
        let Some(stream) = self.sockets.source.get() else { return };
        let seen = stream.with_connection(|it| (it.take_rtt(), it.take_cut(), it.limit()));
        let (rtt, cut, limit) = seen;
        if let Some(rtt) = rtt {
            meter.told(Told::Rtt(now, rtt.as_secs()));
        }
        if let Some(cut) = cut {
            meter.told(Told::Cut(now, cut));
        }
        let mut limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        let (seconds, since) = &mut *limited;
        if self.sockets.completed.get().is_none() {
            let limit: Limit = limit;
            seconds[limit as usize] += now.since(*since).as_secs();
        }
        *since = now;
    }

    pub(super) fn read(&self) -> Reading {
        let received = self.sockets.received.load(Ordering::Relaxed) as f64;
        let delivered = Some((received / self.payload).floor());
        let Some(stream) = self.sockets.source.get() else {
            return Reading { delivered, ..Reading::default() };
        };
        let (limited, _) = *self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        stream.with_connection(|connection| {
            let counters = connection.counters();
            let controller = connection.controller();
            let mut gauges = Vec::new();
            if let Some(controller) = controller {
                controller.gauges(&mut |name, value| gauges.push((name, value)));
            }
            Reading {
                sent: counters.pkt_sent,
                delivered,
                retransmitted: counters.pkt_retrans,
                timeouts: counters.timeouts,
                window: controller.map(|controller| controller.output().window.get()),
                rtt: None,
                min_rtt: None,
                limited,
                completed: self.sockets.completed.get().copied(),
                gauges,
            }
        })
    }
}

/// Takes the connection, and all that comes.
fn sink(listener: &UdtListener, sockets: &Sockets, scene: &Scene) -> io::Result<()> {
    let stream = loop {
        match listener.accept_until(Some(Instant::now() + SLICE)) {
            Ok((stream, _)) => break stream,
            Err(_) if scene.is_over() => return Ok(()),
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
    };
    let mut buffer = vec![0; CHUNK];
    while !scene.is_over() {
        match stream.read_until(&mut buffer, Some(Instant::now() + SLICE)) {
            Ok(0) => break,
            Ok(count) => drop(sockets.received.fetch_add(count as u64, Ordering::Relaxed)),
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
    }
    stream.abort();
    Ok(())
}

/// Writes what there is to write, and stays until the end.
fn source(
    stream: &UdtStream,
    sockets: &Sockets,
    (mut left, stop): (u64, Time),
    scene: &Scene,
) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    while left > 0 && !scene.is_over() && scene.now() < stop {
        let most = left.min(CHUNK as u64) as usize;
        match stream.write_until(&zeros[..most], Some(Instant::now() + SLICE)) {
            Ok(count) => left -= count as u64,
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
    }
    // Whether all is written or the flow has stopped: nothing new comes.
    while !scene.is_over() {
        let done = stream.unacknowledged() == 0;
        if done {
            sockets.completed.get_or_init(|| scene.now().as_secs());
        }
        thread::sleep(if done { SLICE } else { LOOK });
    }
    stream.abort();
    Ok(())
}

/// Wakes a thread.
struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for something; `None` if all is over before.
fn wait<T>(what: impl Future<Output = T>, scene: &Scene) -> Option<T> {
    let waker = Waker::from(Arc::new(Bell(thread::current())));
    let mut what = pin!(what);
    while !scene.is_over() {
        if let Poll::Ready(done) = what.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
        thread::park_timeout(SLICE);
    }
    None
}
