//! A UDP port: its socket, its connections, and the thread that drives them.

use super::cover::{Cover, inside};
use super::driver;
use super::link::Link;
use super::listener::Queue;
use super::socket::Socket;
use crate::secure::{Session, destination, is_reset, is_sealing};
use crate::{Config, Connection, Invitation, Route, Routes, Seq};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, PipeWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The UDP and IPv4 headers, which UDT includes in the packet size.
const LOWER_HEADERS: u32 = 28;

/// The receive window of a connection until the application accepts it: four times the initial congestion window.
const UNACCEPTED: u32 = 64;

/// The connections of a port, and its listener.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub routes: Routes<usize>,
    links: Vec<Option<Arc<Link>>>,
    free: Vec<usize>,
    /// Accepted connections by their client's address.
    accepted: HashMap<IpAddr, Vec<usize>>,
    pub queue: Option<Arc<Queue>>,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin<'a> {
    Connect,
    Meet,
    /// The request, and the local address to which it was sent.
    Accept(&'a Invitation, Option<IpAddr>),
}

impl Table {
    pub(super) fn get(&self, key: usize) -> Option<&Arc<Link>> {
        self.links.get(key)?.as_ref()
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.links.iter().flatten()
    }

    /// Returns the destination of a datagram from `from`.
    pub(super) fn route(&self, from: SocketAddr, datagram: &[u8]) -> Route<usize> {
        if !is_sealing(datagram) {
            return self.routes.route(from, datagram);
        }
        if is_reset(datagram) {
            return Route::Reset;
        }
        let found = destination(datagram).map(|id| self.routes.route_to(from, id));
        match found {
            // The first datagram of a client, or one of a client without a connection.
            None | Some(Route::Unknown) if self.is_locked() => Route::Listener,
            None | Some(Route::Unknown) => Route::Nowhere,
            Some(found) => found,
        }
    }

    fn is_locked(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_locked())
    }

    /// The connections that this port began with `peer`.
    pub(super) fn begun_with(&self, peer: SocketAddr) -> Vec<Arc<Link>> {
        self.routes.begun_with(peer).filter_map(|key| self.get(key)).cloned().collect()
    }

    /// Returns an unused id: an odd one for a client that knows [resets](crate::reset).
    pub(super) fn fresh_id(&self, knows_resets: bool) -> io::Result<u32> {
        loop {
            let id = u32::from_ne_bytes(random()?) >> 2 << 1 | u32::from(knows_resets);
            if id > 0 && !self.routes.contains(id) {
                return Ok(id);
            }
        }
    }

    /// The connections that were accepted from an address.
    pub(super) fn accepted_from(&self, ip: IpAddr) -> Vec<Arc<Link>> {
        let keys = self.accepted.get(&ip.to_canonical());
        keys.into_iter().flatten().filter_map(|key| self.get(*key)).cloned().collect()
    }

    pub(super) fn remove(&mut self, link: &Link) {
        if self.routes.remove(link.id).is_some() {
            if let Entry::Occupied(mut entry) = self.accepted.entry(link.peer.ip().to_canonical()) {
                entry.get_mut().retain(|key| *key != link.key);
                if entry.get().is_empty() {
                    entry.remove();
                }
            }
            self.links[link.key] = None;
            self.free.push(link.key);
        }
    }
}

/// A UDP port.
#[derive(Debug)]
pub(super) struct Port {
    pub socket: Socket,
    pub local: SocketAddr,
    table: Mutex<Table>,
    /// Connections that the driver is to visit.
    asked: Mutex<Vec<Arc<Link>>>,
    /// The driver sleeps and must be woken.
    asleep: AtomicBool,
    wake: PipeWriter,
    /// No new connections begin: the driver ends with the last connection.
    released: AtomicBool,
    /// The driver has failed.
    failed: AtomicBool,
}

/// Returns random bytes of the system.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

impl Port {
    /// Opens the port and starts its driver.
    pub(super) fn open(addr: SocketAddr) -> io::Result<Arc<Self>> {
        let socket = Socket::bind(addr)?;
        let (woken, wake) = io::pipe()?;
        let port = Arc::new(Port {
            local: socket.local_addr()?,
            socket,
            table: Mutex::default(),
            asked: Mutex::default(),
            asleep: AtomicBool::new(false),
            wake,
            released: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        });
        driver::start(Arc::clone(&port), woken)?;
        Ok(port)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a connection and passes it to the driver. `session` is that of an accepted client.
    pub(super) fn begin(
        self: &Arc<Self>,
        peer: SocketAddr,
        config: &Config,
        begin: Begin<'_>,
        session: Option<Box<Session>>,
    ) -> io::Result<Arc<Link>> {
        let now = self.socket.now();
        let mut table = self.table();
        if self.failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("the port's socket has failed"));
        }
        let knows_resets = matches!(begin, Begin::Accept(asked, _) if asked.knows_resets);
        let id = match &session {
            None => table.fresh_id(knows_resets)?,
            Some(session) => session.id(),
        };
        // A session's id was chosen earlier: check it again.
        if id == 0 || table.routes.contains(id) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let initial = Seq::new(u32::from_ne_bytes(random()?));
        let sealed = session.is_some();
        let cover = Cover::new(config, session, now, id)?;
        let ip = peer.ip().to_canonical();
        let inner = &*inside(config);
        let (mut connection, source) = match begin {
            Begin::Connect => (Connection::connect(inner, now, id, initial, ip), None),
            Begin::Meet => (Connection::rendezvous(inner, now, id, initial, ip), None),
            Begin::Accept(asked, source) => (Connection::accept(inner, now, id, asked), source),
        };
        if let Begin::Accept(..) = begin {
            connection.hold_room(UNACCEPTED);
        }
        let key = table.free.pop().unwrap_or(table.links.len());
        if key == table.links.len() {
            table.links.push(None);
        }
        let size = config.packet_size.saturating_sub(LOWER_HEADERS) as usize;
        let link = Link::new(self, (key, id), (peer, source), (connection, cover, size));
        match begin {
            Begin::Meet => table.routes.meet(id, peer, key),
            // A client with a session names the session in each request.
            Begin::Accept(asked, _) if !sealed => {
                table.routes.accept(id, peer, &asked.handshake, key);
            }
            Begin::Connect | Begin::Accept(..) => table.routes.connect(id, peer, key),
        }
        if let Begin::Accept(..) = begin {
            table.accepted.entry(ip).or_default().push(key);
        }
        table.links[key] = Some(Arc::clone(&link));
        drop(table);
        link.lock().touch();
        self.ask(Arc::clone(&link));
        Ok(link)
    }

    /// Asks the driver to visit a connection.
    pub(super) fn ask(&self, link: Arc<Link>) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        self.rouse();
    }

    fn rouse(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The pipe has room: one byte is written each time that the driver goes to sleep.
            let _ = (&self.wake).write(&[1]);
        }
    }

    /// Takes the connections that the driver is to visit.
    pub(super) fn take_asked(&self, into: &mut Vec<Arc<Link>>) {
        into.append(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Prepares the driver's sleep. Returns false if a visit was requested since its last check, or if
    /// [`released`](Self::released) has changed from `released`.
    pub(super) fn fall_asleep(&self, released: bool) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_empty() && self.released() == released
    }

    pub(super) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Records that no further connections begin.
    pub(super) fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
        self.rouse();
    }

    pub(super) fn released(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }

    /// Wakes all waiters after the driver has failed.
    pub(super) fn fail(&self, kind: io::ErrorKind, text: &str) {
        let mut table = self.table();
        self.failed.store(true, Ordering::SeqCst);
        let links: Vec<_> = table.links().cloned().collect();
        let queue = table.queue.take();
        drop(table);
        let now = self.socket.now();
        links.iter().for_each(|link| link.fail(now, kind, text));
        if let Some(queue) = queue {
            queue.fail(kind, text);
        }
    }
}
