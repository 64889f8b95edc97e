//! The driver thread of a port: receives datagrams, drives connections, and sleeps until the next
//! timer.

use super::accept_queue::AcceptQueue;
use super::connection::{DriveResult, SharedConnection};
use super::handshake::Action;
use super::port::{Port, Role};
use super::rate_limit::RateLimits;
use super::socket::{ReceiveBuffers, Socket};
use crate::packet::HEADER;
use crate::secure::{self, destination};
use crate::{Route, reset};
use cwnd::{Dur, Time};
use quinn_udp::RecvMeta;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, PipeReader};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// The largest number of receive calls before connections are driven.
const RECEIVE_CALLS: usize = 4;
/// The position of the destination socket id in a packet's header.
const DESTINATION: Range<usize> = HEADER - 4..HEADER;

struct Driver {
    port: Arc<Port>,
    woken: PipeReader,
    /// Connections to drive.
    ready: Vec<Arc<SharedConnection>>,
    /// Connections that wait for room in the system's send buffer.
    blocked: Vec<Arc<SharedConnection>>,
    /// The time and the key of each connection's timer.
    timers: BinaryHeap<Reverse<(Time, usize)>>,
    limits: RateLimits,
    /// Scratch memory for encrypted datagrams.
    wire: Vec<u8>,
}

/// Starts the driver of a port. It ends with the port's last connection, after the port was
/// released.
pub(super) fn start(port: Arc<Port>, woken: PipeReader) -> io::Result<()> {
    std::thread::Builder::new().name("cwnd-udt".into()).spawn(move || {
        let _fail_on_exit = FailOnExit(Arc::clone(&port));
        let mut driver = Driver {
            port,
            woken,
            ready: Vec::new(),
            blocked: Vec::new(),
            timers: BinaryHeap::new(),
            limits: RateLimits::default(),
            wire: Vec::new(),
        };
        if let Err(error) = driver.run() {
            driver.port.fail(error.kind(), &error.to_string());
        }
    })?;
    Ok(())
}

/// Fails all connections of the port when its thread ends, also by a panic.
struct FailOnExit(Arc<Port>);

impl Drop for FailOnExit {
    fn drop(&mut self) {
        self.0.fail(io::ErrorKind::Other, "the port's thread has ended");
    }
}

impl Driver {
    fn run(&mut self) -> io::Result<()> {
        let mut buffers = ReceiveBuffers::new();
        loop {
            let now = self.port.socket.now();
            self.expire_timers(now);
            self.port.take_queued(&mut self.ready);
            self.drive_ready(now);
            let released = self.port.released();
            if released && self.port.table().demultiplexer.is_empty() {
                return Ok(());
            }
            if self.sleep(released)? {
                self.receive(&mut buffers)?;
            }
        }
    }

    /// Sleeps until there is something to do. Returns whether datagrams may have arrived.
    fn sleep(&mut self, released: bool) -> io::Result<bool> {
        if !self.ready.is_empty() {
            return Ok(true);
        }
        let mut limit = self.timers.peek().map(|Reverse((at, _))| at.since(self.port.socket.now()));
        if !self.port.begin_sleep(released) {
            limit = Some(Dur::ZERO);
        }
        let blocked = !self.blocked.is_empty();
        let readiness = self.port.socket.wait(&mut self.woken, limit, blocked)?;
        self.port.end_sleep();
        if readiness.writable {
            self.ready.append(&mut self.blocked);
        }
        Ok(readiness.readable)
    }

    /// Makes the connections whose timers have expired ready.
    fn expire_timers(&mut self, now: Time) {
        while let Some(Reverse((at, key))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let connection = self.port.table().get(key).cloned();
            if let Some(connection) = connection
                && connection.lock().mark_queued()
            {
                self.ready.push(connection);
            }
        }
    }

    fn drive_ready(&mut self, mut now: Time) {
        for connection in std::mem::take(&mut self.ready) {
            let DriveResult { wakeups, more, blocked, timer, drained } =
                connection.drive(now, &mut self.wire);
            connection.wake(wakeups);
            if let Some(at) = timer {
                self.timers.push(Reverse((at, connection.key)));
            }
            if drained {
                self.port.table().remove(&connection);
            }
            if blocked {
                if !self.blocked.iter().any(|other| Arc::ptr_eq(other, &connection)) {
                    self.blocked.push(connection);
                }
            } else if more {
                self.ready.push(connection);
                // Sending takes time.
                now = self.port.socket.now();
            }
        }
    }

    fn receive(&mut self, buffers: &mut ReceiveBuffers) -> io::Result<()> {
        for _ in 0..RECEIVE_CALLS {
            let count = self.port.socket.receive(buffers)?;
            let (now, clock) = (self.port.socket.now(), SystemTime::now());
            for (meta, datagrams) in buffers.batches(count) {
                let at = self.port.socket.arrival(now, clock, meta);
                self.deliver(at, meta, datagrams);
            }
            if count < Socket::BATCHES {
                break;
            }
        }
        Ok(())
    }

    /// Delivers a received batch to its connections. Usually all datagrams are for the same one.
    fn deliver(&mut self, at: Time, meta: &RecvMeta, mut datagrams: &mut [u8]) {
        let segment = meta.stride.max(1);
        while !datagrams.is_empty() {
            let (part, rest) = datagrams.split_at_mut(same_destination_length(datagrams, segment));
            datagrams = rest;
            let table = self.port.table();
            match table.route(meta.addr, &part[..segment.min(part.len())]) {
                Route::Connection(key) => {
                    let connection = table.get(key).cloned();
                    drop(table);
                    if let Some(connection) = connection
                        && connection.receive(at, part, segment)
                    {
                        self.ready.push(connection);
                    }
                }
                Route::Listener => {
                    let accept_queue = table.accept_queue.clone();
                    drop(table);
                    if let Some(accept_queue) = accept_queue {
                        for datagram in part.chunks_mut(segment) {
                            self.handle_handshake(at, &accept_queue, meta, datagram);
                        }
                    }
                }
                Route::Reset => {
                    let connections = table.initiated_to(meta.addr);
                    drop(table);
                    for datagram in part.chunks(segment) {
                        // Every connection to this peer checks the reset.
                        if self.limits.resets.take(at, connections.len() as u64) {
                            let ended = connections.iter().filter(|conn| conn.reset(at, datagram));
                            self.ready.extend(ended.cloned());
                        }
                    }
                }
                // One reset for each batch.
                Route::Unknown => {
                    let accept_queue = table.accept_queue.clone();
                    drop(table);
                    let allows =
                        |queue: Arc<AcceptQueue>| queue.config.admission.allows(meta.addr.ip());
                    if !accept_queue.is_none_or(allows) {
                        continue;
                    }
                    if let Some(answer) = reset::answer(&part[..segment.min(part.len())])
                        && self.limits.resets.take(at, 1)
                    {
                        let _ = self.port.socket.send(
                            meta.addr,
                            self.source(meta),
                            &answer,
                            answer.len(),
                        );
                    }
                }
                Route::Drop => {}
            }
        }
    }

    /// Sends an answer to the sender of a datagram.
    fn send(&self, meta: &RecvMeta, datagram: &[u8]) {
        let source = self.source(meta);
        let _ = self.port.socket.send_handshake(meta.addr, source, datagram);
    }

    /// The source address of an answer: on a port bound to all addresses, the destination of the
    /// request.
    fn source(&self, meta: &RecvMeta) -> Option<IpAddr> {
        meta.dst_ip.filter(|_| self.port.local.ip().is_unspecified())
    }

    /// Processes a datagram for the listener.
    fn handle_handshake(
        &mut self,
        now: Time,
        accept_queue: &AcceptQueue,
        meta: &RecvMeta,
        datagram: &mut [u8],
    ) {
        let (port, from) = (&self.port, meta.addr);
        let open_connections = || {
            let accepted = port.table().accepted_from(from.ip());
            accepted.iter().filter(|accepted| accepted.lock().connection.is_open()).count()
        };
        if !accept_queue.admits(from.ip(), open_connections) {
            return;
        }
        let id = || port.table().unused_id(false).unwrap_or_default();
        let (limits, has_room) = (&mut self.limits, || accept_queue.has_room());
        match accept_queue.responder.handle((now, from), datagram, limits, id, has_room) {
            Action::Ignore => {}
            Action::Send(reply) => self.send(meta, &reply),
            Action::Accept(incoming, session) => {
                let role = Role::Accept(&incoming, self.source(meta));
                let connection = port.open_connection(from, &accept_queue.config, role, session);
                if let Ok(connection) = connection {
                    accept_queue.push(connection);
                }
            }
            Action::CodeRevoked => {
                let text = "the code was revoked after 5 wrong guesses";
                accept_queue.fail(io::ErrorKind::PermissionDenied, text);
            }
        }
    }
}

/// The length in bytes of the leading datagrams with the same destination id.
fn same_destination_length(datagrams: &[u8], segment: usize) -> usize {
    let first = &datagrams[..segment.min(datagrams.len())];
    let position = if destination(first).is_some() { secure::DESTINATION } else { DESTINATION };
    let to = first.get(position.clone());
    let mut end = first.len();
    // Connection requests, to socket 0, are processed one by one.
    if to != Some(&[0; 4]) {
        while end < datagrams.len() && datagrams[end..].get(position.clone()) == to {
            end = datagrams.len().min(end + segment);
        }
    }
    end
}
