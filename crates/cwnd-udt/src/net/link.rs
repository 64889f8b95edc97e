//! The state of one connection that the driver thread and the application share.

use super::cover::{Cover, Reset, Wrapped};
use super::port::Port;
use super::socket::Sent;
use crate::secure::PublicKey;
use crate::{CloseReason, Connection, Error, Event, Transmit};
use cwnd::{Dur, Limit, Time};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Batches that a connection may send in one visit.
const TURN: usize = 8;
/// The shortest time between two timed visits. It bounds the delay of paced packets, which are sent in one burst.
const GRAIN: Dur = Dur::from_nanos(100_000);
/// The shortest time between two timed visits of a paced sender that fills a system batch in this time: at 2.6 Gb/s and
/// above with packets of 1500 bytes. Fewer and larger batches cost less.
const LONG_GRAIN: Dur = Dur::from_nanos(200_000);

/// Threads and tasks that wait for one thing.
#[derive(Debug, Default)]
struct Waiting {
    threads: usize,
    tasks: Vec<Waker>,
}

impl Waiting {
    fn add(&mut self, cx: &Context<'_>) {
        if !self.tasks.iter().any(|task| task.will_wake(cx.waker())) {
            self.tasks.push(cx.waker().clone());
        }
    }
}

/// The side of a connection that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Data to read, or the end of the connection.
    Read,
    /// Room to write, the end of the handshake, or the end of the connection.
    Write,
}

/// Waiters to wake after the lock is released.
#[derive(Debug, Default)]
pub(super) struct Wake {
    sides: [bool; 2],
    tasks: Vec<Waker>,
}

/// A connection behind its lock.
#[derive(Debug)]
pub(super) struct State {
    pub connection: Connection,
    /// The system's error for this connection's datagrams.
    failure: Option<(io::ErrorKind, String)>,
    /// Datagrams, already sealed, for which the system had no room, and their segment size. They count as sent.
    stuck: Option<(Vec<u8>, usize)>,
    /// The connection's next timer at the last visit, and the time of the next scheduled visit.
    planned: Time,
    scheduled: Time,
    /// The driver is about to visit the connection.
    touched: bool,
    waiting: [Waiting; 2],
}

/// The outcome of a visit.
#[derive(Debug, Default)]
pub(super) struct Visit {
    pub wake: Wake,
    /// More can be sent now.
    pub more: bool,
    /// The system's send buffer is full.
    pub blocked: bool,
    /// The time of the next visit, if it has changed.
    pub due: Option<Time>,
    /// The connection has ended for good.
    pub over: bool,
}

/// One connection: its state, and where it belongs.
#[derive(Debug)]
pub(super) struct Link {
    pub port: Arc<Port>,
    pub key: usize,
    pub id: u32,
    pub peer: SocketAddr,
    /// The largest size of a datagram on the wire in bytes.
    size: usize,
    /// The local address that the peer knows, on a port bound to several.
    source: Option<IpAddr>,
    /// The encryption of the datagrams. Only the driver uses it, and locks it before the state.
    cover: Mutex<Cover>,
    state: Mutex<State>,
    signals: [Condvar; 2],
}

impl State {
    /// Requests a visit. Returns false if one was requested before.
    pub(super) fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.touched, true)
    }

    /// Converts an error of the connection into the caller's `io::Error`.
    pub(super) fn explain(&self, error: Error) -> io::Error {
        use io::ErrorKind::*;
        if let Some((kind, text)) = &self.failure {
            return io::Error::new(*kind, text.clone());
        }
        let kind = match error {
            Error::NotConnected => NotConnected,
            Error::WrongType | Error::MessageTooLarge { .. } | Error::BufferTooSmall(_) => {
                InvalidInput
            }
            Error::Closed(reason) => {
                let kind = match reason {
                    CloseReason::Local | CloseReason::Peer => BrokenPipe,
                    CloseReason::Lost => ConnectionAborted,
                    CloseReason::Reset => ConnectionReset,
                    CloseReason::LingerOver | CloseReason::ConnectTimeout => TimedOut,
                    CloseReason::Refused => ConnectionRefused,
                    CloseReason::Incompatible => InvalidData,
                };
                return io::Error::new(kind, reason);
            }
        };
        io::Error::new(kind, error)
    }

    /// Ends the connection after an error of the system.
    pub(super) fn fail(&mut self, now: Time, kind: io::ErrorKind, text: String) {
        self.failure.get_or_insert((kind, text));
        self.connection.abort(now);
    }

    fn send_error(&mut self, now: Time, error: &io::Error) {
        if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) {
            let text =
                "the packets are larger than the network takes: choose a smaller packet size";
            self.fail(now, io::ErrorKind::InvalidInput, text.into());
        } else if !self.connection.is_open() && self.connection.close_reason().is_none() {
            // It may be returned to a caller that waits for the connection.
            self.failure = Some((error.kind(), error.to_string()));
        }
    }

    /// Takes the waiters that the connection's events concern.
    fn woken(&mut self) -> Wake {
        let mut sides = [false; 2];
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Connected => {
                    self.failure = None;
                    sides[Side::Write as usize] = true;
                }
                Event::Writable => sides[Side::Write as usize] = true,
                Event::Readable => sides[Side::Read as usize] = true,
                Event::Closed(_) => sides = [true; 2],
            }
        }
        let mut wake = Wake::default();
        for (side, waiting) in self.waiting.iter_mut().enumerate().filter(|(side, _)| sides[*side])
        {
            wake.sides[side] = waiting.threads > 0;
            wake.tasks.append(&mut waiting.tasks);
        }
        wake
    }
}

/// The time between two timed visits of a connection whose packets leave in batches of up to `most`.
fn grain(connection: &Connection, most: usize) -> Dur {
    let batch = connection.pacing_period().as_nanos().saturating_mul(most as u64);
    if connection.limit() == Limit::Pacing && batch <= LONG_GRAIN.as_nanos() {
        LONG_GRAIN
    } else {
        GRAIN
    }
}

impl Link {
    pub(super) fn new(
        port: &Arc<Port>,
        (key, id): (usize, u32),
        (peer, source): (SocketAddr, Option<IpAddr>),
        (connection, cover, size): (Connection, Cover, usize),
    ) -> Arc<Self> {
        Arc::new(Link {
            port: Arc::clone(port),
            key,
            id,
            peer,
            size,
            source,
            cover: Mutex::new(cover),
            state: Mutex::new(State {
                connection,
                failure: None,
                stuck: None,
                planned: Time::NEVER,
                scheduled: Time::NEVER,
                touched: false,
                waiting: Default::default(),
            }),
            signals: Default::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The authenticated public key of the peer.
    pub(super) fn identity(&self) -> Option<PublicKey> {
        self.cover().identity()
    }

    fn cover(&self) -> MutexGuard<'_, Cover> {
        self.cover.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes a batch of datagrams. Returns true if a visit is to be scheduled.
    pub(super) fn receive(&self, now: Time, datagrams: &mut [u8], segment: usize) -> bool {
        // Decrypt without holding the application's lock.
        let opened = self.cover().open(now, datagrams, segment);
        let mut state = self.lock();
        state.connection.handle_batch(now, &datagrams[..opened.length], opened.segment);
        state.touch()
    }

    /// Processes a reset from the peer's address. Returns true if the connection ended and a visit is to be scheduled.
    pub(super) fn reset(&self, now: Time, datagram: &[u8]) -> bool {
        let reset = self.cover().read_reset(datagram);
        let mut state = self.lock();
        let ended = match reset {
            Reset::Echo(header) => state.connection.handle_reset(now, &header),
            Reset::Genuine => state.connection.end_unknown(now),
            Reset::Forged => false,
        };
        ended && state.touch()
    }

    /// Closes the connection at once; undelivered data is lost.
    pub(super) fn abort(self: &Arc<Self>) {
        let now = self.port.socket.now();
        let _ = self.block(Side::Write, None, |state| {
            state.connection.abort(now);
            Some(Ok(()))
        });
    }

    /// Processes timers and sends the datagrams that are due. `wire` is scratch memory for encryption.
    pub(super) fn visit(&self, now: Time, wire: &mut Vec<u8>) -> Visit {
        let mut cover = self.cover();
        let mut state = self.lock();
        if state.scheduled <= now {
            state.scheduled = Time::NEVER;
        }
        state.connection.handle_timeout(now);
        let (mut state, all, room) = if cover.waits_until().is_none() {
            self.transmit(state, &mut cover, now, wire)
        } else {
            self.ask(&mut state, &mut cover, now);
            (state, true, true)
        };
        state.touched = false;
        let wake = state.woken();
        let mut visit = Visit { wake, blocked: !room, ..Visit::default() };
        if !all && room {
            visit.more = state.touch();
            return visit;
        }
        match state.connection.next_wakeup() {
            None => visit.over = true,
            Some(at) => {
                let at = cover.waits_until().unwrap_or(at);
                state.planned = at;
                let at = at.max(now + grain(&state.connection, self.port.socket.most(self.size)));
                if at < state.scheduled {
                    state.scheduled = at;
                    visit.due = Some(at);
                }
            }
        }
        visit
    }

    /// Sends the handshake of the session that the connection waits for.
    fn ask(&self, state: &mut State, cover: &mut Cover, now: Time) {
        if state.connection.close_reason() == Some(CloseReason::ConnectTimeout)
            && let Some(text) = cover.silence()
        {
            state.failure.get_or_insert((io::ErrorKind::TimedOut, text));
        }
        if let Some(hello) = cover.hello(now)
            && let Sent::Failed(error) =
                self.port.socket.send(self.peer, self.source, hello, hello.len())
        {
            state.send_error(now, &error);
        }
    }

    /// Sends the datagrams that are due. Returns whether these were all, and whether the system had room.
    fn transmit<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        cover: &mut Cover,
        now: Time,
        wire: &mut Vec<u8>,
    ) -> (MutexGuard<'a, State>, bool, bool) {
        let socket = &self.port.socket;
        if let Some((rest, segment)) = state.stuck.take()
            && let Sent::Blocked(sent) = socket.send(self.peer, self.source, &rest, segment)
        {
            state.stuck = Some((rest[sent..].to_vec(), segment));
            return (state, false, false);
        }
        let most = socket.most(self.size);
        for turn in 0..TURN {
            let Some(transmit) = state.connection.poll_transmit(now, most) else {
                if turn > 0 {
                    state.connection.sent_by(now, socket.now());
                }
                return (state, true, true);
            };
            let (sent, stuck) = match cover.wrap(transmit, wire) {
                Ok(Wrapped::AsTheyAre(Transmit { datagrams, segment })) => {
                    let sent = socket.send(self.peer, self.source, datagrams, segment);
                    let stuck = sent.rest(datagrams, segment);
                    (sent, stuck)
                }
                Ok(Wrapped::LaidOut(segment)) => {
                    // Encrypt without holding the application's lock.
                    drop(state);
                    cover.seal(wire, segment);
                    let sent = socket.send(self.peer, self.source, wire, segment);
                    state = self.lock();
                    let stuck = sent.rest(wire, segment);
                    (sent, stuck)
                }
                Err(exhausted) => {
                    state.fail(now, io::ErrorKind::Other, exhausted.to_string());
                    continue;
                }
            };
            if stuck.is_some() {
                state.stuck = stuck;
                return (state, false, false);
            }
            if let Sent::Failed(error) = sent {
                state.send_error(now, &error);
            }
        }
        (state, false, true)
    }

    pub(super) fn wake(&self, wake: Wake) {
        for (signal, wanted) in self.signals.iter().zip(wake.sides) {
            if wanted {
                signal.notify_all();
            }
        }
        wake.tasks.into_iter().for_each(Waker::wake);
    }

    /// Ends the connection after an error of the system, and wakes all waiters.
    pub(super) fn fail(&self, now: Time, kind: io::ErrorKind, text: &str) {
        let mut state = self.lock();
        state.fail(now, kind, text.into());
        let wake = state.woken();
        drop(state);
        self.wake(wake);
    }

    /// Requests a visit after an operation of the application, if that changes what is due.
    fn done(self: &Arc<Self>, side: Side, mut state: MutexGuard<'_, State>) {
        let idle = side == Side::Write && state.connection.limit() == Limit::Application;
        let known = state.planned.min(state.scheduled);
        let sooner = state.connection.next_wakeup().is_none_or(|at| at < known);
        if (idle || sooner) && state.touch() {
            drop(state);
            self.port.ask(Arc::clone(self));
        }
    }

    /// Sleeps until an event of one side.
    pub(super) fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        side: Side,
        deadline: Option<Instant>,
    ) -> io::Result<MutexGuard<'a, State>> {
        let signal = &self.signals[side as usize];
        state.waiting[side as usize].threads += 1;
        let mut late = false;
        state = match deadline {
            None => signal.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                late = left.is_zero();
                signal.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.waiting[side as usize].threads -= 1;
        if late { Err(io::ErrorKind::TimedOut.into()) } else { Ok(state) }
    }

    /// Runs `attempt` until it returns a result, and sleeps in between.
    pub(super) fn block<T>(
        self: &Arc<Self>,
        side: Side,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut State) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut state = self.lock();
        loop {
            if let Some(answer) = attempt(&mut state) {
                self.done(side, state);
                return answer;
            }
            state = self.wait(state, side, deadline)?;
        }
    }

    /// Runs `attempt` once and registers the task if there is no result.
    pub(super) fn poll<T>(
        self: &Arc<Self>,
        side: Side,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut State) -> Option<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.lock();
        match attempt(&mut state) {
            Some(answer) => {
                self.done(side, state);
                Poll::Ready(answer)
            }
            None => {
                state.waiting[side as usize].add(cx);
                Poll::Pending
            }
        }
    }
}
