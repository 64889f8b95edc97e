//! A flow of the kernel's TCP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use cwnd::Time;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::meter::Reading;
use super::plan::{Flow, TcpOptions};
use super::stage::{SLICE, Scene, Side, Stage, set};
use super::sys::{self, Info, Metric};
use crate::emulate::UPLINK;

const PORT: u16 = 9;
/// Bytes written and read at a time.
const CHUNK: usize = 64 << 10;
/// The largest buffer of a socket: no more can be asked for, as the kernel doubles it.
const LARGEST_BUFFER: u64 = 1 << 29;
/// What the kernel keeps for a packet is at most so many times the packet.
const OVERHEAD: u64 = 4;
/// What waits unsent in a socket, in seconds of the slowest link and in bytes: no more than that is
/// sent after a flow stops, and yet the socket never runs dry.
const AHEAD: f64 = 0.02;
const LEAST_AHEAD: u64 = 8 << 10;
const MOST_AHEAD: u64 = 256 << 10;
/// Between two looks whether all is acknowledged.
const LOOK: Duration = Duration::from_micros(500);

/// Both ends, as far as they are there.
#[derive(Default)]
struct Sockets {
    source: OnceLock<TcpStream>,
    sink: OnceLock<TcpStream>,
    completed: OnceLock<f64>,
}

pub(super) struct Ends {
    sockets: Arc<Sockets>,
    payload: f64,
    start: Time,
    scene: Arc<Scene>,
}

/// What a source has to know.
struct Source {
    sockets: Arc<Sockets>,
    local: Ipv4Addr,
    peer: Ipv4Addr,
    controller: String,
    switches: [(&'static str, bool); 3],
    segment: u64,
    buffer: u64,
    ahead: u64,
    start: Time,
    stop: Time,
    left: u64,
}

impl Ends {
    /// The threads of a flow, whose controller the kernel calls `controller`.
    pub(super) fn new(
        stage: &mut Stage,
        flow: &Flow,
        options: &TcpOptions,
        controller: &str,
    ) -> io::Result<Self> {
        let sockets = Arc::new(Sockets::default());
        let [local, peer] = flow.ends;
        let window = u64::from(options.window) * u64::from(options.payload);
        let buffer = (window * OVERHEAD).min(LARGEST_BUFFER);

        let there = Metric::InitialWindow(options.initial_window);
        let least = options.least_timeout.as_nanos().div_ceil(1_000_000).clamp(1, 120_000);
        let least = Metric::LeastTimeout(least as u32);
        stage.space(Side::Source).run(|| sys::route(peer, UPLINK, &[there, least]))??;
        let quick = options.quick_acks.then_some(Metric::QuickAck);
        let listener = stage.space(Side::Sink).run(|| {
            sys::route(local, UPLINK, quick.as_slice())?;
            let listener = TcpListener::bind(SocketAddrV4::new(peer, PORT))?;
            sys::set_number(&listener, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)?;
            let clamp = window.min(LARGEST_BUFFER);
            sys::set_number(&listener, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp)?;
            let segment = options.segment.into();
            sys::set_number(&listener, libc::IPPROTO_TCP, libc::TCP_MAXSEG, segment)?;
            listener.set_nonblocking(true)?;
            io::Result::Ok(listener)
        })??;
        let shared = Arc::clone(&sockets);
        stage.spawn(Side::Sink, &flow.name, move |scene| sink(&listener, &shared, scene))?;

        let ahead = options.slowest.map_or(MOST_AHEAD, |rate| (rate / 8.0 * AHEAD) as u64);
        let bytes = |packets: u64| packets.saturating_mul(options.payload.into());
        let source = Source {
            sockets: Arc::clone(&sockets),
            local,
            peer,
            controller: controller.to_owned(),
            switches: [
                ("tcp_sack", options.sack),
                ("tcp_ecn", options.ecn),
                ("tcp_timestamps", options.timestamps),
            ],
            segment: options.segment.into(),
            buffer,
            ahead: ahead.clamp(LEAST_AHEAD, MOST_AHEAD),
            start: flow.start,
            stop: flow.stop,
            left: flow.packets.map_or(u64::MAX, bytes),
        };
        stage.spawn(Side::Source, &flow.name, move |scene| source.run(scene))?;
        let (payload, scene) = (options.payload.into(), Arc::clone(&stage.scene));
        Ok(Ends { sockets, payload, start: flow.start, scene })
    }

    pub(super) fn read(&self) -> Reading {
        let info = |socket: &OnceLock<TcpStream>| Info::of(socket.get()?).ok();
        let received = info(&self.sockets.sink).map_or(0, |info| info.received());
        let delivered = Some((received as f64 / self.payload).floor());
        let Some(info) = info(&self.sockets.source) else {
            return Reading { delivered, ..Reading::default() };
        };
        let seconds = |micros: u64| micros as f64 * 1e-6;
        let [busy, receiver, buffer] = info.busy().map(seconds);
        let completed = self.sockets.completed.get().copied();
        let end = completed.unwrap_or_else(|| self.scene.now().as_secs());
        let idle = (end - self.start.as_secs() - busy).max(0.0);
        let ssthresh = info.ssthresh().map_or(f64::INFINITY, |packets| packets as f64);
        Reading {
            sent: info.sent(),
            delivered,
            retransmitted: info.retransmitted(),
            timeouts: info.timeouts(),
            window: Some(info.window() as f64),
            rtt: Some(seconds(info.rtt())).filter(|&rtt| rtt > 0.0),
            min_rtt: info.min_rtt().map(seconds),
            limited: [(busy - receiver - buffer).max(0.0), 0.0, receiver, idle + buffer],
            completed,
            gauges: vec![("ssthresh", ssthresh)],
        }
    }
}

/// Takes the connection, and all that comes.
fn sink(listener: &TcpListener, sockets: &Sockets, scene: &Scene) -> io::Result<()> {
    let stream = loop {
        if scene.is_over() {
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
    stream.set_read_timeout(Some(SLICE))?;
    let mut stream = sockets.sink.get_or_init(|| stream);
    let mut buffer = vec![0; CHUNK];
    while !scene.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Err(error) if !again(&error) => return Err(error),
            _ => {}
        }
    }
    vanish(stream)
}

impl Source {
    fn run(mut self, scene: &Scene) -> io::Result<()> {
        if !scene.wait_until(self.start) {
            return Ok(());
        }
        let Some(stream) = self.connect(scene)? else { return Ok(()) };
        let sockets = Arc::clone(&self.sockets);
        let mut stream = sockets.source.get_or_init(|| stream);
        let zeros = vec![0; CHUNK];
        while self.left > 0 && !scene.is_over() && scene.now() < self.stop {
            let most = self.left.min(CHUNK as u64) as usize;
            match stream.write(&zeros[..most]) {
                Ok(count) => self.left -= count as u64,
                Err(error) if again(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // Whether all is written or the flow has stopped: nothing new comes.
        while !scene.is_over() {
            let info = Info::of(stream)?;
            if info.unacknowledged() == 0 && info.unsent() == 0 {
                sockets.completed.get_or_init(|| scene.now().as_secs());
                break;
            }
            thread::sleep(LOOK);
        }
        // What is on its way still counts: the connection stays until the end.
        while !scene.is_over() {
            thread::sleep(SLICE);
        }
        vanish(stream)
    }

    /// Connects; `None` if all is over before.
    fn connect(&self, scene: &Scene) -> io::Result<Option<TcpStream>> {
        let stream = sys::socket(self.local)?;
        let tcp = libc::IPPROTO_TCP;
        sys::set(&stream, tcp, libc::TCP_CONGESTION, self.controller.as_bytes())?;
        sys::set_number(&stream, tcp, libc::TCP_MAXSEG, self.segment)?;
        sys::set_number(&stream, tcp, libc::TCP_NODELAY, 1)?;
        sys::set_number(&stream, tcp, libc::TCP_NOTSENT_LOWAT, self.ahead)?;
        sys::set_number(&stream, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, self.buffer)?;
        {
            // The first packet says what the connection can do.
            let _alone = scene.opening.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, on) in self.switches {
                set(name, if on { "1" } else { "0" })
                    .map_err(|error| io::Error::other(format!("net.ipv4.{name}: {error}")))?;
            }
            sys::connect(&stream, SocketAddrV4::new(self.peer, PORT))?;
        }
        // The window and the threshold are there before the handshake is over.
        while !ready(&stream, PollFlags::POLLOUT)? {
            if scene.is_over() {
                return Ok(None);
            }
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(SLICE))?;
        Ok(Some(stream))
    }
}

/// Whether a socket can be read or written, or has failed; waits a while for that.
fn ready(socket: impl AsFd, what: PollFlags) -> io::Result<bool> {
    let mut files = [PollFd::new(socket.as_fd(), what)];
    let timeout = PollTimeout::try_from(SLICE).unwrap_or(PollTimeout::ZERO);
    Ok(poll(&mut files, timeout)? > 0)
}

/// Whether an error means no more than that it took too long.
fn again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Has nothing of a connection go on when its socket is closed.
fn vanish(stream: &TcpStream) -> io::Result<()> {
    let at_once = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
    sys::set(stream, libc::SOL_SOCKET, libc::SO_LINGER, &at_once)
}
