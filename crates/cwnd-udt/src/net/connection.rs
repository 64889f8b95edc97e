//! A connection shared by the port's driver thread and the application.

use super::port::Port;
use super::protection::{Outgoing, Protection, Reset};
use super::socket::SendOutcome;
use super::{register, wait};
use crate::secure::PublicKey;
use crate::{CloseReason, Connection, Error, Event, Transmit};
use cwnd::{Dur, Limit, Time};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The largest number of batches that one call of [`SharedConnection::drive`] sends.
const MAX_BATCHES: usize = 8;
/// The shortest interval between two timers. It bounds the delay of paced packets, which are sent
/// in one burst.
const MIN_INTERVAL: Dur = Dur::from_nanos(100_000);
/// The shortest interval between two timers of a paced sender that fills a `UDP_SEGMENT` batch in
/// this time: at 2.6 Gb/s and above with packets of 1500 bytes. Fewer and larger batches cost less.
const MIN_FULL_BATCH_INTERVAL: Dur = Dur::from_nanos(200_000);

/// Threads and tasks that wait for one side of a connection.
#[derive(Debug, Default)]
struct Waiters {
    threads: usize,
    tasks: Vec<Waker>,
}

/// The side of a connection that a thread or a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Data to read, or the end of the connection.
    Read,
    /// Room to write, the end of the handshake, or the end of the connection.
    Write,
}

/// Waiters to wake after the lock is released.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    sides: [bool; 2],
    tasks: Vec<Waker>,
}

/// The state of a connection behind its lock.
#[derive(Debug)]
pub(super) struct State {
    pub connection: Connection,
    /// The system's error for this connection's datagrams.
    failure: Option<(io::ErrorKind, String)>,
    /// Datagrams for which the system's send buffer had no room, and their segment size. They are
    /// sealed if the connection has credentials, and the state machine counts them as sent.
    unsent: Option<(Vec<u8>, usize)>,
    /// The state machine's next timer when it was last driven.
    next_timer: Time,
    /// The driver's timer for this connection.
    scheduled: Time,
    /// The connection is in the driver's ready queue.
    queued: bool,
    waiters: [Waiters; 2],
}

/// The result of [`SharedConnection::drive`].
#[derive(Debug, Default)]
pub(super) struct DriveResult {
    pub wakeups: Wakeups,
    /// More datagrams are due now.
    pub more: bool,
    /// The system's send buffer is full.
    pub blocked: bool,
    /// The new time of the driver's timer, if it is earlier than before.
    pub timer: Option<Time>,
    /// The connection has ended and is drained.
    pub drained: bool,
}

/// One connection of a port.
#[derive(Debug)]
pub(super) struct SharedConnection {
    pub port: Arc<Port>,
    pub key: usize,
    pub id: u32,
    pub peer: SocketAddr,
    /// The largest size of a datagram on the wire in bytes.
    datagram_size: usize,
    /// The local address that the peer knows, on a port bound to several.
    source: Option<IpAddr>,
    /// Only the driver sends and opens datagrams. It locks the protection before the state.
    protection: Mutex<Protection>,
    state: Mutex<State>,
    /// Wakes the threads that wait for each side.
    signals: [Condvar; 2],
}

impl State {
    /// Marks the connection as queued for the driver. Returns false if it was queued before.
    pub(super) fn mark_queued(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    /// Converts an error of the connection into the caller's `io::Error`.
    pub(super) fn io_error(&self, error: Error) -> io::Error {
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

    fn handle_send_error(&mut self, error: &io::Error) {
        if !self.connection.is_open() && self.connection.close_reason().is_none() {
            // Reported to the caller if the connection attempt fails.
            // Routes and firewalls change, unlike what makes other errors of these kinds.
            let kind = match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => {
                    io::ErrorKind::NetworkUnreachable
                }
                kind => kind,
            };
            self.failure = Some((kind, error.to_string()));
        }
    }

    /// Takes the waiters of the sides that the connection's events concern.
    fn take_wakeups(&mut self) -> Wakeups {
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
        let mut wakeups = Wakeups::default();
        for (side, waiters) in self.waiters.iter_mut().enumerate().filter(|(side, _)| sides[*side])
        {
            wakeups.sides[side] = waiters.threads > 0;
            wakeups.tasks.append(&mut waiters.tasks);
        }
        wakeups
    }
}

/// The shortest interval between two timers of a connection that sends batches of up to
/// `max_segments` packets.
fn min_interval(connection: &Connection, max_segments: usize) -> Dur {
    let batch = connection.pacing_period().as_nanos().saturating_mul(max_segments as u64);
    if connection.limit() == Limit::Pacing && batch <= MIN_FULL_BATCH_INTERVAL.as_nanos() {
        MIN_FULL_BATCH_INTERVAL
    } else {
        MIN_INTERVAL
    }
}

impl SharedConnection {
    pub(super) fn new(
        port: &Arc<Port>,
        (key, id): (usize, u32),
        (peer, source): (SocketAddr, Option<IpAddr>),
        (connection, protection, datagram_size): (Connection, Protection, usize),
    ) -> Arc<Self> {
        Arc::new(SharedConnection {
            port: Arc::clone(port),
            key,
            id,
            peer,
            datagram_size,
            source,
            protection: Mutex::new(protection),
            state: Mutex::new(State {
                connection,
                failure: None,
                unsent: None,
                next_timer: Time::NEVER,
                scheduled: Time::NEVER,
                queued: false,
                waiters: Default::default(),
            }),
            signals: Default::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The authenticated public key of the peer.
    pub(super) fn identity(&self) -> Option<PublicKey> {
        self.protection().identity()
    }

    fn protection(&self) -> MutexGuard<'_, Protection> {
        self.protection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes a batch of datagrams. Returns true if the caller must queue the connection.
    pub(super) fn receive(&self, now: Time, datagrams: &mut [u8], segment: usize) -> bool {
        // Decrypt without holding the application's lock.
        let opened = self.protection().open(now, datagrams, segment);
        let mut state = self.lock();
        state.connection.handle_batch(now, &datagrams[..opened.length], opened.segment);
        state.mark_queued()
    }

    /// Processes a reset from the peer's address. Returns true if it ended the connection and the
    /// caller must queue it.
    pub(super) fn reset(&self, now: Time, datagram: &[u8]) -> bool {
        let reset = self.protection().check_reset(datagram);
        let mut state = self.lock();
        let ended = match reset {
            Reset::Echo(header) => state.connection.handle_reset(now, &header),
            Reset::Authentic => state.connection.close_by_reset(now),
            Reset::Invalid => false,
        };
        ended && state.mark_queued()
    }

    /// Processes timers and sends the datagrams that are due. `wire` is scratch memory for
    /// encryption.
    pub(super) fn drive(&self, now: Time, wire: &mut Vec<u8>) -> DriveResult {
        let mut protection = self.protection();
        let mut state = self.lock();
        if state.scheduled <= now {
            state.scheduled = Time::NEVER;
        }
        state.connection.handle_timeout(now);
        if state.connection.suspects_black_hole() {
            self.port.socket.let_routers_fragment();
        }
        let (mut state, sent_all, has_room) = if protection.handshake_wakeup().is_none() {
            self.transmit(state, &mut protection, now, wire)
        } else {
            self.transmit_handshake(&mut state, &mut protection, now);
            (state, true, true)
        };
        state.queued = false;
        let wakeups = state.take_wakeups();
        let mut result = DriveResult { wakeups, blocked: !has_room, ..DriveResult::default() };
        if !sent_all && has_room {
            result.more = state.mark_queued();
            return result;
        }
        match state.connection.next_wakeup() {
            None => result.drained = true,
            Some(at) => {
                let at = protection.handshake_wakeup().unwrap_or(at);
                state.next_timer = at;
                let max_segments = self.max_segments(&state, &protection);
                let at = at.max(now + min_interval(&state.connection, max_segments));
                if at < state.scheduled {
                    state.scheduled = at;
                    result.timer = Some(at);
                }
            }
        }
        result
    }

    /// The largest number of data packets in a batch.
    fn max_segments(&self, state: &State, protection: &Protection) -> usize {
        let agreed = state.connection.datagram_size().map(|size| size + protection.overhead());
        self.port.socket.max_segments(agreed.unwrap_or(self.datagram_size))
    }

    /// Sends the datagram of the session's handshake that is due.
    fn transmit_handshake(&self, state: &mut State, protection: &mut Protection, now: Time) {
        if state.connection.close_reason() == Some(CloseReason::ConnectTimeout)
            && let Some(text) = protection.failure_reason()
        {
            state.failure.get_or_insert((io::ErrorKind::TimedOut, text));
        }
        if let Some(datagram) = protection.poll_handshake(now)
            && let SendOutcome::Failed(error) =
                self.port.socket.send(self.peer, self.source, datagram, datagram.len())
        {
            state.handle_send_error(&error);
        }
    }

    /// Sends the datagrams that are due. Returns whether these were all, and whether the system's
    /// send buffer had room.
    fn transmit<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        protection: &mut Protection,
        now: Time,
        wire: &mut Vec<u8>,
    ) -> (MutexGuard<'a, State>, bool, bool) {
        let socket = &self.port.socket;
        if let Some((unsent, segment)) = state.unsent.take()
            && let SendOutcome::Blocked(sent) =
                socket.send(self.peer, self.source, &unsent, segment)
        {
            state.unsent = Some((unsent[sent..].to_vec(), segment));
            return (state, false, false);
        }
        let max_segments = self.max_segments(&state, protection);
        for batch in 0..MAX_BATCHES {
            let handshake = state.connection.is_connecting();
            let Some(transmit) = state.connection.poll_transmit(now, max_segments) else {
                if batch > 0 {
                    state.connection.transmit_finished(now, socket.now());
                }
                return (state, true, true);
            };
            let (outcome, unsent) = match protection.prepare(transmit, wire) {
                Ok(Outgoing::Plain(Transmit { datagrams, .. })) if handshake => {
                    (socket.send_handshake(self.peer, self.source, datagrams), None)
                }
                Ok(Outgoing::Plain(Transmit { datagrams, segment })) => {
                    let outcome = socket.send(self.peer, self.source, datagrams, segment);
                    let unsent = outcome.unsent(datagrams, segment);
                    (outcome, unsent)
                }
                Ok(Outgoing::Unsealed(segment)) => {
                    // Encrypt without holding the application's lock.
                    drop(state);
                    protection.seal(wire, segment);
                    let outcome = if handshake {
                        socket.send_handshake(self.peer, self.source, wire)
                    } else {
                        socket.send(self.peer, self.source, wire, segment)
                    };
                    state = self.lock();
                    let unsent = outcome.unsent(wire, segment);
                    (outcome, unsent)
                }
                Err(exhausted) => {
                    state.fail(now, io::ErrorKind::Other, exhausted.to_string());
                    continue;
                }
            };
            if unsent.is_some() {
                state.unsent = unsent;
                return (state, false, false);
            }
            if let SendOutcome::Failed(error) = outcome {
                state.handle_send_error(&error);
            }
        }
        (state, false, true)
    }

    pub(super) fn wake(&self, wakeups: Wakeups) {
        for (signal, wake) in self.signals.iter().zip(wakeups.sides) {
            if wake {
                signal.notify_all();
            }
        }
        wakeups.tasks.into_iter().for_each(Waker::wake);
    }

    /// Ends the connection after an error of the system, and wakes all waiters.
    pub(super) fn fail(&self, now: Time, kind: io::ErrorKind, text: &str) {
        let mut state = self.lock();
        state.fail(now, kind, text.into());
        let wakeups = state.take_wakeups();
        drop(state);
        self.wake(wakeups);
    }

    /// Queues the connection for the driver if an operation of the application has made something
    /// due earlier.
    fn notify_driver(self: &Arc<Self>, side: Side, mut state: MutexGuard<'_, State>) {
        let idle = side == Side::Write && state.connection.limit() == Limit::Application;
        let known = state.next_timer.min(state.scheduled);
        let sooner = state.connection.next_wakeup().is_none_or(|at| at < known);
        if (idle || sooner) && state.mark_queued() {
            drop(state);
            self.port.queue(Arc::clone(self));
        }
    }

    /// Changes the connection for the application, and queues it if something is due earlier.
    pub(super) fn update(self: &Arc<Self>, side: Side, change: impl FnOnce(&mut Connection, Time)) {
        let now = self.port.socket.now();
        let mut state = self.lock();
        change(&mut state.connection, now);
        self.notify_driver(side, state);
    }

    /// Sleeps until an event of one side.
    pub(super) fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        side: Side,
        deadline: Option<Instant>,
    ) -> io::Result<MutexGuard<'a, State>> {
        state.waiters[side as usize].threads += 1;
        let (mut state, expired) = wait(&self.signals[side as usize], state, deadline);
        state.waiters[side as usize].threads -= 1;
        if expired { Err(io::ErrorKind::TimedOut.into()) } else { Ok(state) }
    }

    /// Calls `attempt` until it returns a result, and sleeps between the calls.
    pub(super) fn block<T>(
        self: &Arc<Self>,
        side: Side,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut State) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut state = self.lock();
        loop {
            if let Some(result) = attempt(&mut state) {
                self.notify_driver(side, state);
                return result;
            }
            state = self.wait(state, side, deadline)?;
        }
    }

    /// Calls `attempt` once, and registers the task if there is no result.
    pub(super) fn poll<T>(
        self: &Arc<Self>,
        side: Side,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut State) -> Option<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.lock();
        match attempt(&mut state) {
            Some(result) => {
                self.notify_driver(side, state);
                Poll::Ready(result)
            }
            None => {
                register(&mut state.waiters[side as usize].tasks, cx);
                Poll::Pending
            }
        }
    }
}
