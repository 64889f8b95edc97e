//! The thread of a port: takes datagrams in, lets connections send, and sleeps until something is due.

use super::door::{Budgets, Word};
use super::link::{Link, Visit};
use super::listener::Queue;
use super::port::{Begin, Port};
use super::socket::{Inbox, Socket};
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

/// Calls that take in datagrams before connections have their turn.
const CALLS: usize = 4;
/// Where a packet's header names the socket.
const DESTINATION: Range<usize> = HEADER - 4..HEADER;

struct Driver {
    port: Arc<Port>,
    woken: PipeReader,
    /// Connections that something happened to.
    touched: Vec<Arc<Link>>,
    /// Those that wait for room in the system's buffer.
    blocked: Vec<Arc<Link>>,
    due: BinaryHeap<Reverse<(Time, usize)>>,
    budgets: Budgets,
    /// What is sealed, on its way to the socket.
    wire: Vec<u8>,
}

/// Starts the driver of a port. It ends with the port's last connection, after nobody holds the port.
pub(super) fn start(port: Arc<Port>, woken: PipeReader) -> io::Result<()> {
    std::thread::Builder::new().name("cwnd-udt".into()).spawn(move || {
        let _alarm = Alarm(Arc::clone(&port));
        let mut driver = Driver {
            port,
            woken,
            touched: Vec::new(),
            blocked: Vec::new(),
            due: BinaryHeap::new(),
            budgets: Budgets::default(),
            wire: Vec::new(),
        };
        if let Err(error) = driver.run() {
            driver.port.fail(error.kind(), &error.to_string());
        }
    })?;
    Ok(())
}

/// Tells all who wait that nobody drives the port any more.
struct Alarm(Arc<Port>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.fail(io::ErrorKind::Other, "the thread of the port has ended");
    }
}

impl Driver {
    fn run(&mut self) -> io::Result<()> {
        let mut inbox = Inbox::new();
        loop {
            let now = self.port.socket.now();
            self.find_due(now);
            self.port.take_asked(&mut self.touched);
            self.serve(now);
            let released = self.port.released();
            if released && self.port.table().routes.is_empty() {
                return Ok(());
            }
            if self.rest(released)? {
                self.receive(&mut inbox)?;
            }
        }
    }

    /// Sleeps until there is something to do: whether datagrams may have come.
    fn rest(&mut self, released: bool) -> io::Result<bool> {
        if !self.touched.is_empty() {
            return Ok(true);
        }
        let mut limit = self.due.peek().map(|Reverse((at, _))| at.since(self.port.socket.now()));
        if !self.port.fall_asleep(released) {
            limit = Some(Dur::ZERO);
        }
        let blocked = !self.blocked.is_empty();
        let ready = self.port.socket.wait(&mut self.woken, limit, blocked)?;
        self.port.awake();
        if ready.room {
            self.touched.append(&mut self.blocked);
        }
        Ok(ready.datagrams)
    }

    fn find_due(&mut self, now: Time) {
        while let Some(Reverse((at, key))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            let link = self.port.table().get(key).cloned();
            if let Some(link) = link
                && link.lock().touch()
            {
                self.touched.push(link);
            }
        }
    }

    /// Gives each connection that something happened to its turn.
    fn serve(&mut self, mut now: Time) {
        for link in std::mem::take(&mut self.touched) {
            let Visit { wake, more, blocked, due, over } = link.visit(now, &mut self.wire);
            link.wake(wake);
            if let Some(at) = due {
                self.due.push(Reverse((at, link.key)));
            }
            if over {
                self.port.table().remove(&link);
            }
            if blocked {
                if !self.blocked.iter().any(|other| Arc::ptr_eq(other, &link)) {
                    self.blocked.push(link);
                }
            } else if more {
                self.touched.push(link);
                // Sending takes long.
                now = self.port.socket.now();
            }
        }
    }

    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        for _ in 0..CALLS {
            let count = self.port.socket.receive(inbox)?;
            let (now, clock) = (self.port.socket.now(), SystemTime::now());
            for (meta, datagrams) in inbox.batches(count) {
                let at = self.port.socket.arrival(now, clock, meta);
                self.deliver(at, meta, datagrams);
            }
            if count < Socket::SLOTS {
                break;
            }
        }
        Ok(())
    }

    /// Hands a batch to the connections that it is for: mostly to one.
    fn deliver(&mut self, at: Time, meta: &RecvMeta, mut datagrams: &mut [u8]) {
        let segment = meta.stride.max(1);
        while !datagrams.is_empty() {
            let (part, rest) = datagrams.split_at_mut(run(datagrams, segment));
            datagrams = rest;
            let table = self.port.table();
            match table.route(meta.addr, &part[..segment.min(part.len())]) {
                Route::Connection(key) => {
                    let link = table.get(key).cloned();
                    drop(table);
                    if let Some(link) = link {
                        self.pass(at, link, part, segment);
                    }
                }
                Route::Listener => {
                    let queue = table.queue.clone();
                    drop(table);
                    if let Some(queue) = queue {
                        for datagram in part.chunks_mut(segment) {
                            self.answer(at, &queue, meta, datagram);
                        }
                    }
                }
                Route::Reset => {
                    let begun = table.begun_with(meta.addr);
                    drop(table);
                    for datagram in part.chunks(segment) {
                        // Each connection with this peer looks at it, and strangers can send many.
                        if self.budgets.resets.spend(at, begun.len() as u64) {
                            let ended = begun.iter().filter(|link| link.reset(at, datagram));
                            self.touched.extend(ended.cloned());
                        }
                    }
                }
                // One answer to a batch is enough.
                Route::Unknown => {
                    let queue = table.queue.clone();
                    drop(table);
                    let allows = |queue: Arc<Queue>| queue.config.admission.allows(meta.addr.ip());
                    if !queue.is_none_or(allows) {
                        continue;
                    }
                    if let Some(answer) = reset::answer(&part[..segment.min(part.len())])
                        && self.budgets.resets.spend(at, 1)
                    {
                        self.send(meta, &answer);
                    }
                }
                Route::Nowhere => {}
            }
        }
    }

    /// Answers a datagram.
    fn send(&self, meta: &RecvMeta, datagram: &[u8]) {
        let source = self.source(meta);
        let _ = self.port.socket.send(meta.addr, source, datagram, datagram.len());
    }

    /// The address to answer from: on a port of all addresses the one that was asked.
    fn source(&self, meta: &RecvMeta) -> Option<IpAddr> {
        meta.dst_ip.filter(|_| self.port.local.ip().is_unspecified())
    }

    fn pass(&mut self, at: Time, link: Arc<Link>, datagrams: &mut [u8], segment: usize) {
        if link.receive(at, datagrams, segment) {
            self.touched.push(link);
        }
    }

    /// A datagram for the listener.
    fn answer(&mut self, now: Time, queue: &Queue, meta: &RecvMeta, datagram: &mut [u8]) {
        let (port, from) = (&self.port, meta.addr);
        let open = || {
            let links = port.table().accepted_from(from.ip());
            links.iter().filter(|link| link.lock().connection.is_open()).count()
        };
        if !queue.admits(from.ip(), open) {
            return;
        }
        let id = || port.table().fresh_id(false).unwrap_or_default();
        match queue.hear((now, from), datagram, &mut self.budgets, id) {
            Word::Nothing => {}
            Word::Say(reply) => self.send(meta, &reply),
            Word::Accept(asked, session) => {
                let begin = Begin::Accept(&asked, self.source(meta));
                if let Ok(link) = port.begin(from, &queue.config, begin, session) {
                    queue.push(link);
                }
            }
            Word::Void => {
                let text = "the code is void: there were 5 wrong guesses";
                queue.fail(io::ErrorKind::PermissionDenied, text);
            }
        }
    }
}

/// Bytes of the datagrams at the front that are for the same connection as the first.
fn run(datagrams: &[u8], segment: usize) -> usize {
    let first = &datagrams[..segment.min(datagrams.len())];
    let place = if destination(first).is_some() { secure::DESTINATION } else { DESTINATION };
    let to = first.get(place.clone());
    let mut end = first.len();
    // Requests for connections, to socket 0, are looked at one by one.
    if to != Some(&[0; 4]) {
        while end < datagrams.len() && datagrams[end..].get(place.clone()) == to {
            end = datagrams.len().min(end + segment);
        }
    }
    end
}
