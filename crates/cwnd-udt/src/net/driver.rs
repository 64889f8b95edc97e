//! The thread of a port: takes datagrams in, lets connections send, and sleeps until something is due.

use super::link::{Link, Visit};
use super::listener::Queue;
use super::port::{Begin, Port};
use super::socket::{Inbox, Socket};
use crate::packet::HEADER;
use crate::{Answer, Route};
use cwnd::{Dur, Time};
use quinn_udp::RecvMeta;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, PipeReader};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// Calls that take in datagrams before connections have their turn.
const CALLS: usize = 4;
/// Answers of a listener to strangers: so many at once, and one more in each interval. A flood of requests
/// costs established connections no more than that.
const ANSWERS: u64 = 1024;
const ANSWER_EVERY: Dur = Dur::from_nanos(50_000);
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
    /// The next answer of the listener is due then, as if there were one in each interval.
    answer_at: Time,
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
            answer_at: Time::ZERO,
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
            let Visit { wake, more, blocked, due, over } = link.visit(now);
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
    fn deliver(&mut self, at: Time, meta: &RecvMeta, mut datagrams: &[u8]) {
        let segment = meta.stride.max(1);
        while !datagrams.is_empty() {
            let first = &datagrams[..segment.min(datagrams.len())];
            let to = first.get(DESTINATION);
            let mut end = first.len();
            // Requests for connections, to socket 0, are looked at one by one.
            if to != Some(&[0; 4]) {
                while end < datagrams.len() && datagrams[end..].get(DESTINATION) == to {
                    end = datagrams.len().min(end + segment);
                }
            }
            let (part, rest) = datagrams.split_at(end);
            datagrams = rest;
            let table = self.port.table();
            match table.routes.route(meta.addr, first) {
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
                        self.answer(at, &queue, meta, first);
                    }
                }
                Route::Nowhere => {}
            }
        }
    }

    fn pass(&mut self, at: Time, link: Arc<Link>, datagrams: &[u8], segment: usize) {
        let mut state = link.lock();
        state.connection.handle_batch(at, datagrams, segment);
        let fresh = state.touch();
        drop(state);
        if fresh {
            self.touched.push(link);
        }
    }

    /// Whether the listener may answer one more.
    fn may_answer(&mut self, now: Time) -> bool {
        let ahead = Dur::from_nanos(ANSWERS * ANSWER_EVERY.as_nanos());
        let may = self.answer_at <= now + ahead;
        if may {
            self.answer_at = self.answer_at.max(now) + ANSWER_EVERY;
        }
        may
    }

    /// A datagram for the listener.
    fn answer(&mut self, now: Time, queue: &Arc<Queue>, meta: &RecvMeta, datagram: &[u8]) {
        let from: SocketAddr = meta.addr;
        // On a port of all addresses the answer leaves by the one that was asked.
        let source = meta.dst_ip.filter(|_| self.port.local.ip().is_unspecified());
        match queue.listener.handle(now, from, datagram) {
            Answer::Ignore => {}
            // A client that gets no answer asks again.
            Answer::Reply(_) if !self.may_answer(now) => {}
            Answer::Reply(reply) => {
                let _ = self.port.socket.send(from, source, &reply, reply.len());
            }
            Answer::Accept(asked) => {
                // A client that finds the queue full asks again, too.
                if queue.has_room()
                    && let Ok(link) =
                        self.port.begin(from, &queue.config, Begin::Accept(&asked, source))
                {
                    queue.push(link);
                }
            }
        }
    }
}
