//! A UDP port: its socket, its connections, and the thread that drives them.

use super::accept_queue::AcceptQueue;
use super::connection::SharedConnection;
use super::driver;
use super::protection::{Protection, inner_config};
use super::socket::Socket;
use crate::config::counted_address;
use crate::secure::{Session, destination, is_reset, is_secure_datagram, random};
use crate::{Config, Connection, Demultiplexer, Incoming, Route, Seq};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, PipeWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The UDP and IPv4 headers, which UDT includes in the packet size.
const LOWER_HEADERS: u32 = 28;

/// The receive window in packets until the application accepts a connection: four times the initial
/// congestion window.
const UNACCEPTED_WINDOW: u32 = 64;

/// The connections of a port, and its listener.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    pub demultiplexer: Demultiplexer<usize>,
    connections: Vec<Option<Arc<SharedConnection>>>,
    free_keys: Vec<usize>,
    /// Accepted connections by their client's [counted] address.
    accepted: HashMap<IpAddr, Vec<usize>>,
    pub accept_queue: Option<Arc<AcceptQueue>>,
}

/// This end's role in a handshake.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role<'a> {
    Connect,
    Rendezvous,
    /// Accepts a request that was sent to the given local address.
    Accept(&'a Incoming, Option<IpAddr>),
}

impl ConnectionTable {
    pub(super) fn get(&self, key: usize) -> Option<&Arc<SharedConnection>> {
        self.connections.get(key)?.as_ref()
    }

    pub(super) fn connections(&self) -> impl Iterator<Item = &Arc<SharedConnection>> {
        self.connections.iter().flatten()
    }

    /// Returns the destination of a datagram from `from`.
    pub(super) fn route(&self, from: SocketAddr, datagram: &[u8]) -> Route<usize> {
        if !is_secure_datagram(datagram) {
            return self.demultiplexer.route(from, datagram);
        }
        if is_reset(datagram) {
            return Route::Reset;
        }
        let route = destination(datagram).map(|id| self.demultiplexer.route_to(from, id));
        match route {
            // A client's hello, or a datagram in the session of a pending handshake.
            None | Some(Route::Unknown) if self.requires_credentials() => Route::Listener,
            None | Some(Route::Unknown) => Route::Drop,
            Some(route) => route,
        }
    }

    fn requires_credentials(&self) -> bool {
        self.accept_queue.as_ref().is_some_and(|queue| queue.config.credentials.is_some())
    }

    /// The connections that this port initiated to `peer`.
    pub(super) fn initiated_to(&self, peer: SocketAddr) -> Vec<Arc<SharedConnection>> {
        let keys = self.demultiplexer.initiated_to(peer);
        keys.filter_map(|key| self.get(key)).cloned().collect()
    }

    /// Returns an unused id: an odd one for a client that supports [resets](crate::reset).
    pub(super) fn unused_id(&self, supports_resets: bool) -> io::Result<u32> {
        loop {
            let id = u32::from_ne_bytes(random()?) >> 2 << 1 | u32::from(supports_resets);
            if id > 0 && !self.demultiplexer.contains(id) {
                return Ok(id);
            }
        }
    }

    /// The connections that were accepted from an address, or from its network of 64 bits.
    pub(super) fn accepted_from(&self, ip: IpAddr) -> Vec<Arc<SharedConnection>> {
        let keys = self.accepted.get(&counted_address(ip));
        keys.into_iter().flatten().filter_map(|key| self.get(*key)).cloned().collect()
    }

    pub(super) fn remove(&mut self, connection: &SharedConnection) {
        if self.demultiplexer.remove(connection.id).is_some() {
            let ip = counted_address(connection.peer.ip());
            if let Entry::Occupied(mut entry) = self.accepted.entry(ip) {
                entry.get_mut().retain(|key| *key != connection.key);
                if entry.get().is_empty() {
                    entry.remove();
                }
            }
            self.connections[connection.key] = None;
            self.free_keys.push(connection.key);
        }
    }
}

/// A UDP port.
#[derive(Debug)]
pub(super) struct Port {
    pub socket: Socket,
    pub local: SocketAddr,
    table: Mutex<ConnectionTable>,
    /// Connections queued for the driver by other threads.
    queued: Mutex<Vec<Arc<SharedConnection>>>,
    /// The driver sleeps and must be woken.
    asleep: AtomicBool,
    wake: PipeWriter,
    /// No new connections are opened: the driver ends with the last connection.
    released: AtomicBool,
    /// The driver has failed.
    failed: AtomicBool,
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
            queued: Mutex::default(),
            asleep: AtomicBool::new(false),
            wake,
            released: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        });
        driver::start(Arc::clone(&port), woken)?;
        Ok(port)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a connection and passes it to the driver. `session` is that of an accepted client.
    pub(super) fn open_connection(
        self: &Arc<Self>,
        peer: SocketAddr,
        config: &Config,
        role: Role<'_>,
        session: Option<Box<Session>>,
    ) -> io::Result<Arc<SharedConnection>> {
        let now = self.socket.now();
        let mut table = self.table();
        if self.failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("the port's socket has failed"));
        }
        let supports_resets = matches!(role, Role::Accept(incoming, _) if incoming.supports_resets);
        let id = match &session {
            None => table.unused_id(supports_resets)?,
            Some(session) => session.id(),
        };
        // A session's id was chosen earlier and may be in use by now.
        if id == 0 || table.demultiplexer.contains(id) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let initial = Seq::new(u32::from_ne_bytes(random()?));
        let sealed = session.is_some();
        let protection = Protection::new(config, session, now, id)?;
        let ip = peer.ip().to_canonical();
        let inner = &inner_config(config, ip);
        let (mut connection, source) = match role {
            Role::Connect => (Connection::connect(inner, now, id, initial, ip), None),
            Role::Rendezvous => (Connection::rendezvous(inner, now, id, initial, ip), None),
            Role::Accept(incoming, source) => {
                (Connection::accept(inner, now, id, incoming), source)
            }
        };
        if let Role::Accept(..) = role {
            connection.limit_receive_window(UNACCEPTED_WINDOW);
        }
        let key = table.free_keys.pop().unwrap_or(table.connections.len());
        if key == table.connections.len() {
            table.connections.push(None);
        }
        let datagram_size = config.packet_size.saturating_sub(LOWER_HEADERS) as usize;
        let shared = SharedConnection::new(
            self,
            (key, id),
            (peer, source),
            (connection, protection, datagram_size),
        );
        match role {
            Role::Rendezvous => table.demultiplexer.rendezvous(id, peer, key),
            // A client with a session names the session in each request.
            Role::Accept(incoming, _) if !sealed => {
                table.demultiplexer.accept(id, peer, &incoming.handshake, key);
            }
            Role::Connect | Role::Accept(..) => table.demultiplexer.connect(id, peer, key),
        }
        if let Role::Accept(..) = role {
            table.accepted.entry(counted_address(ip)).or_default().push(key);
        }
        table.connections[key] = Some(Arc::clone(&shared));
        drop(table);
        shared.lock().mark_queued();
        self.queue(Arc::clone(&shared));
        Ok(shared)
    }

    /// Queues a connection for the driver.
    pub(super) fn queue(&self, connection: Arc<SharedConnection>) {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.wake_driver();
    }

    fn wake_driver(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The pipe has room: one byte is written each time that the driver goes to sleep.
            let _ = (&self.wake).write(&[1]);
        }
    }

    /// Moves the connections queued for the driver to `ready`.
    pub(super) fn take_queued(&self, ready: &mut Vec<Arc<SharedConnection>>) {
        ready.append(&mut self.queued.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Announces that the driver will sleep. Returns false if a connection was queued since the
    /// driver's last check, or if [`released`](Self::released) has changed from `released`.
    pub(super) fn begin_sleep(&self, released: bool) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        queued.is_empty() && self.released() == released
    }

    pub(super) fn end_sleep(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Records that no further connections are opened.
    pub(super) fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
        self.wake_driver();
    }

    pub(super) fn released(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }

    /// Fails all connections and the listener after the driver has failed.
    pub(super) fn fail(&self, kind: io::ErrorKind, text: &str) {
        let mut table = self.table();
        self.failed.store(true, Ordering::SeqCst);
        let connections: Vec<_> = table.connections().cloned().collect();
        let accept_queue = table.accept_queue.take();
        drop(table);
        let now = self.socket.now();
        connections.iter().for_each(|connection| connection.fail(now, kind, text));
        if let Some(accept_queue) = accept_queue {
            accept_queue.fail(kind, text);
        }
    }
}
