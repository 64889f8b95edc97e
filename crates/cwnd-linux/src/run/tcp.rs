//! Flows of the kernel's TCP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use cwnd::Time;
use cwnd_sim::DataSource;
use cwnd_sim::record::Transfer;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::net::sockopt;

use super::flow_config::{FlowConfig, TcpOptions};
use super::measurement::Snapshot;
use super::sys;
use super::threads::{
    CHUNK, COMPLETION_INTERVAL, FlowThreads, POLL_INTERVAL, PORT, RunState, Side,
};
use crate::emulate::{Metric, UPLINK, add_route, set_sysctl};

/// Receiver's window in bytes from which the kernel chooses the buffers. It doubles the size of a
/// buffer that is given, which must fit.
const MAX_BUFFER: u64 = 1 << 29;
/// Upper bound of the kernel's memory for a packet, as a multiple of its size.
const MEMORY_FACTOR: u64 = 4;
/// Limit of the unsent data in a socket of a flow that stops, in seconds of the slowest link and in
/// bytes. It is sent after the flow stops; it must suffice to keep the connection busy.
const UNSENT_TIME: f64 = 0.02;
const MIN_UNSENT: u64 = 8 << 10;
const MAX_UNSENT: u64 = 256 << 10;

/// The sockets of both ends, when they are open.
#[derive(Default)]
struct Sockets {
    source: OnceLock<TcpStream>,
    sink: OnceLock<TcpStream>,
    /// Time in nanoseconds at which the sink last read data.
    last_arrival: AtomicU64,
    /// Time in seconds at which all data were acknowledged.
    acknowledged: OnceLock<f64>,
    /// The data of the flow's application.
    application: Mutex<Option<DataSource>>,
}

impl Sockets {
    fn application(&self) -> MutexGuard<'_, Option<DataSource>> {
        self.application.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A flow of the kernel's TCP.
pub(super) struct TcpFlow {
    sockets: Arc<Sockets>,
    start: Time,
    /// Bytes of data in a packet.
    payload: u64,
    state: Arc<RunState>,
}

/// Configuration of a source.
struct Source {
    sockets: Arc<Sockets>,
    local: Ipv4Addr,
    peer: Ipv4Addr,
    controller: String,
    sysctls: [(&'static str, bool); 3],
    segment: u64,
    buffer: Option<usize>,
    unsent_limit: Option<u64>,
    /// Bytes of data in a packet.
    payload: u64,
    start: Time,
    stop: Time,
    remaining: u64,
}

impl TcpFlow {
    /// Starts the threads of a flow. `controller` is the name of the controller in the kernel.
    pub(super) fn new(
        threads: &mut FlowThreads,
        flow: &FlowConfig,
        options: &TcpOptions,
        controller: &str,
        application: Option<DataSource>,
    ) -> io::Result<Self> {
        let has_application = application.is_some();
        let application = Mutex::new(application);
        let sockets = Arc::new(Sockets { application, ..Sockets::default() });
        let [local, peer] = flow.addresses;
        let window = u64::from(options.window) * u64::from(options.payload);
        // While a receiver's window grows towards a given one, the kernel acknowledges every packet
        // (`tcp_grow_window`). A window that does not limit the sender is therefore not given.
        let limits = window < MAX_BUFFER;
        let buffer = limits.then_some((window * MEMORY_FACTOR).min(MAX_BUFFER) as usize);

        let initial_window = Metric::InitialWindow(options.initial_window);
        let min_rto = options.min_rto.as_nanos().div_ceil(1_000_000).clamp(1, 120_000);
        let min_rto = Metric::MinRto(min_rto as u32);
        threads
            .namespace(Side::Source)
            .run(|| add_route(peer.into(), UPLINK, &[initial_window, min_rto]))??;
        let quick_ack = options.quick_acks.then_some(Metric::QuickAck);
        let listener = threads.namespace(Side::Sink).run(|| {
            add_route(local.into(), UPLINK, quick_ack.as_slice())?;
            let listener = TcpListener::bind(SocketAddrV4::new(peer, PORT))?;
            if let Some(buffer) = buffer {
                sockopt::set_socket_recv_buffer_size_force(&listener, buffer)?;
                sys::set_tcp_option(&listener, libc::TCP_WINDOW_CLAMP, window)?;
            }
            sys::set_tcp_option(&listener, libc::TCP_MAXSEG, options.segment.into())?;
            if options.controller.needs_ecn() {
                sockopt::set_tcp_congestion(&listener, controller)?;
            }
            listener.set_nonblocking(true)?;
            io::Result::Ok(listener)
        })??;
        let shared = Arc::clone(&sockets);
        threads.spawn(Side::Sink, &flow.name, move |state| run_sink(&listener, &shared, state))?;

        let unsent_limit = || {
            let rate = options.bottleneck_rate;
            let bytes = rate.map_or(MAX_UNSENT, |rate| (rate / 8.0 * UNSENT_TIME) as u64);
            bytes.clamp(MIN_UNSENT, MAX_UNSENT)
        };
        let bytes = |packets: u64| packets.saturating_mul(options.payload.into());
        let source = Source {
            sockets: Arc::clone(&sockets),
            local,
            peer,
            controller: controller.to_owned(),
            sysctls: [
                ("tcp_sack", options.sack),
                ("tcp_ecn", options.ecn),
                ("tcp_timestamps", options.timestamps),
            ],
            segment: options.segment.into(),
            buffer,
            // The data of an application that ends an on period is in the socket no longer than
            // necessary.
            unsent_limit: (flow.stop != Time::NEVER || has_application).then(unsent_limit),
            payload: options.payload.into(),
            start: flow.start,
            stop: flow.stop,
            remaining: flow.packets.map_or(u64::MAX, bytes),
        };
        threads.spawn(Side::Source, &flow.name, move |state| source.run(state))?;
        let state = Arc::clone(&threads.state);
        Ok(TcpFlow { sockets, start: flow.start, payload: options.payload.into(), state })
    }

    /// Returns the transfers and figures of the flow's application at the end of the run, `end`, of
    /// which `last` is the snapshot.
    pub(super) fn results(
        &self,
        end: Time,
        last: &Snapshot,
    ) -> (Vec<Transfer>, Vec<(&'static str, f64)>) {
        let application = self.sockets.application();
        let packets = last.bytes_acknowledged / self.payload;
        application.as_ref().map_or_else(Default::default, |data| data.results(end, packets))
    }

    /// Returns the current state, from `TCP_INFO` of both ends.
    pub(super) fn snapshot(&self) -> Snapshot {
        let info = |socket: &OnceLock<TcpStream>| sys::tcp_info(socket.get()?).ok();
        let received = info(&self.sockets.sink).map_or(0, |info| info.tcpi_bytes_received);
        // In order: the kernel does not report data behind a gap.
        let delivered = Some(received);
        let Some(info) = info(&self.sockets.source) else {
            return Snapshot { delivered, ..Snapshot::default() };
        };
        let seconds = |micros: u64| micros as f64 * 1e-6;
        let busy = seconds(info.tcpi_busy_time);
        let (receiver, buffer) =
            (seconds(info.tcpi_rwnd_limited), seconds(info.tcpi_sndbuf_limited));
        let acknowledged = self.sockets.acknowledged.get().copied();
        let end = acknowledged.unwrap_or_else(|| self.state.now().as_secs());
        let idle = (end - self.start.as_secs() - busy).max(0.0);
        let cut = info.tcpi_snd_ssthresh < i32::MAX as u32;
        let ssthresh = if cut { f64::from(info.tcpi_snd_ssthresh) } else { f64::INFINITY };
        Snapshot {
            sent: info.tcpi_data_segs_out.into(),
            // Linux 4.19; 0 before.
            bytes_sent: info.tcpi_bytes_sent,
            bytes_acknowledged: acknowledged_bytes(&info),
            delivered,
            retransmitted: info.tcpi_total_retrans.into(),
            // Linux 6.7; 0 before.
            timeouts: info.tcpi_total_rto.into(),
            // The kernel does not tell them.
            ecn_cuts: 0,
            window: Some(info.tcpi_snd_cwnd.into()),
            // Before the first sample they are 0 and the largest number.
            rtt: (info.tcpi_rtt > 0).then(|| seconds(info.tcpi_rtt.into())),
            min_rtt: (info.tcpi_min_rtt < u32::MAX).then(|| seconds(info.tcpi_min_rtt.into())),
            limited: [(busy - receiver - buffer).max(0.0), 0.0, receiver, idle + buffer],
            acknowledged,
            last_arrival: Time::from_nanos(self.sockets.last_arrival.load(Ordering::Relaxed))
                .as_secs(),
            gauges: vec![("ssthresh", ssthresh)],
        }
    }
}

/// Accepts the connection and reads it to the end.
fn run_sink(listener: &TcpListener, sockets: &Sockets, state: &RunState) -> io::Result<()> {
    let stream = loop {
        if state.is_stopped() {
            return Ok(());
        }
        if ready(listener, PollFlags::POLLIN)? {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    let mut stream = sockets.sink.get_or_init(|| stream);
    let mut buffer = vec![0; CHUNK];
    while !state.is_stopped() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => sockets.last_arrival.store(state.now().as_nanos(), Ordering::Relaxed),
            Err(error) if !timed_out(&error) => return Err(error),
            Err(_) => {}
        }
    }
    reset_on_close(stream)
}

impl Source {
    /// Runs the source.
    fn run(mut self, state: &RunState) -> io::Result<()> {
        if !state.wait_until(self.start) {
            return Ok(());
        }
        let Some(stream) = self.connect(state)? else { return Ok(()) };
        let sockets = Arc::clone(&self.sockets);
        let mut stream = sockets.source.get_or_init(|| stream);
        let zeros = vec![0; CHUNK];
        if let Some(data) = &mut *sockets.application() {
            data.start(state.now());
            // The application has no data besides its own.
            self.remaining = 0;
        }
        self.write_application(stream, &zeros, state)?;
        while self.remaining > 0 && !state.is_stopped() && state.now() < self.stop {
            let size = self.remaining.min(CHUNK as u64) as usize;
            match stream.write(&zeros[..size]) {
                Ok(count) => self.remaining -= count as u64,
                Err(error) if timed_out(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // Here all data are written, or the flow has stopped: wait until the written data are
        // acknowledged.
        while !state.is_stopped() {
            let info = sys::tcp_info(stream)?;
            if info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0 {
                sockets.acknowledged.get_or_init(|| state.now().as_secs());
                break;
            }
            thread::sleep(COMPLETION_INTERVAL);
        }
        // Packets in flight still count: keep the connection open until the run stops.
        while !state.is_stopped() {
            thread::sleep(POLL_INTERVAL);
        }
        reset_on_close(stream)
    }

    /// Writes the data of the flow's application, if it has one, until the flow or the run stops.
    fn write_application(
        &self,
        mut stream: &TcpStream,
        zeros: &[u8],
        state: &RunState,
    ) -> io::Result<()> {
        let mut written: u64 = 0;
        loop {
            let mut application = self.sockets.application();
            let Some(data) = &mut *application else { return Ok(()) };
            let now = state.now();
            if state.is_stopped() || now >= self.stop {
                data.stop(now);
                return Ok(());
            }
            let info = sys::tcp_info(stream)?;
            let acknowledged = acknowledged_bytes(&info) / self.payload;
            let packets = written.div_ceil(self.payload);
            let available = data.advance(now, acknowledged, packets).saturating_mul(self.payload);
            let due = data.due();
            drop(application);
            if written < available {
                let size = (available - written).min(CHUNK as u64) as usize;
                match stream.write(&zeros[..size]) {
                    Ok(count) => written += count as u64,
                    Err(error) if timed_out(&error) => {}
                    Err(error) => return Err(error),
                }
            } else {
                let wait = Duration::from_nanos(due.since(state.now()).as_nanos());
                thread::sleep(wait.min(COMPLETION_INTERVAL));
            }
        }
    }

    /// Opens the connection; `None` if the run stops before.
    fn connect(&self, state: &RunState) -> io::Result<Option<TcpStream>> {
        let stream = sys::socket(self.local)?;
        sockopt::set_tcp_congestion(&stream, &self.controller)?;
        sys::set_tcp_option(&stream, libc::TCP_MAXSEG, self.segment)?;
        stream.set_nodelay(true)?;
        if let Some(limit) = self.unsent_limit {
            sys::set_tcp_option(&stream, libc::TCP_NOTSENT_LOWAT, limit)?;
        }
        if let Some(buffer) = self.buffer {
            sockopt::set_socket_send_buffer_size_force(&stream, buffer)?;
        }
        {
            // The SYN negotiates these options, which are settings of the namespace.
            let _lock = state.connect_lock.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, on) in self.sysctls {
                set_sysctl(name, if on { "1" } else { "0" })
                    .map_err(|error| io::Error::other(format!("net.ipv4.{name}: {error}")))?;
            }
            sys::connect(&stream, SocketAddrV4::new(self.peer, PORT))?;
        }
        // Wait for the handshake. The window and the threshold are valid before its end.
        while !ready(&stream, PollFlags::POLLOUT)? {
            if state.is_stopped() {
                return Ok(None);
            }
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(POLL_INTERVAL))?;
        Ok(Some(stream))
    }
}

/// Waits up to [`POLL_INTERVAL`] for a socket to become readable or writable, or to fail. Returns
/// whether it did.
fn ready(socket: impl AsFd, events: PollFlags) -> io::Result<bool> {
    let mut files = [PollFd::new(socket.as_fd(), events)];
    let timeout = PollTimeout::try_from(POLL_INTERVAL).unwrap_or(PollTimeout::ZERO);
    Ok(poll(&mut files, timeout)? > 0)
}

/// Returns the bytes of data acknowledged. The kernel counts the SYN as a byte.
fn acknowledged_bytes(info: &libc::tcp_info) -> u64 {
    info.tcpi_bytes_acked.saturating_sub(1)
}

/// Whether an error is a timeout or an interruption.
fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Makes closing the socket reset the connection, so that no packets follow.
fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}
