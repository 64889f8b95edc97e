//! Demultiplexing of the datagrams of a shared port.

use crate::handshake::{Handshake, Request};
use crate::packet::{Body, Control, Packet, destination};
use crate::reset;
use crate::seq::Seq;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;

/// The destination of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<K> {
    /// To this connection.
    Connection(K),
    /// To the listener, if there is one.
    Listener,
    /// A [reset](crate::reset), for the connections that this port
    /// [initiated](Demultiplexer::initiated_to) to its sender.
    Reset,
    /// No connection has its destination id. A [reset](crate::reset) may answer it.
    Unknown,
    /// Not a packet, or not from the connection's peer.
    Drop,
}

/// Maps received datagrams to the connections of a port. `K` is the caller's key of a connection.
#[derive(Clone, Debug)]
pub struct Demultiplexer<K> {
    by_id: HashMap<u32, (SocketAddr, Client, K)>,
    /// Accepted connections, to recognise repeated requests.
    accepted: HashMap<(SocketAddr, Client), u32>,
    /// Connections that this port initiated, by the peer's address.
    initiated: HashMap<SocketAddr, Vec<u32>>,
    /// Rendezvous connections by the peer's address: the peer may not know their ids yet.
    rendezvous_peers: HashMap<SocketAddr, u32>,
}

/// Identifies a client at its address: its socket id and its initial sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    socket: u32,
    initial: Seq,
}

impl From<&Handshake> for Client {
    fn from(handshake: &Handshake) -> Self {
        Client { socket: handshake.socket, initial: handshake.initial }
    }
}

impl<K: Copy> Default for Demultiplexer<K> {
    fn default() -> Self {
        Demultiplexer {
            by_id: HashMap::new(),
            accepted: HashMap::new(),
            initiated: HashMap::new(),
            rendezvous_peers: HashMap::new(),
        }
    }
}

impl<K: Copy> Demultiplexer<K> {
    /// Adds a connection that this port initiates to `peer`.
    pub fn connect(&mut self, id: u32, peer: SocketAddr, connection: K) {
        self.by_id.insert(id, (peer, Client::default(), connection));
        self.initiated.entry(peer).or_default().push(id);
    }

    /// Adds a rendezvous connection. Each peer address can have one at a time.
    pub fn rendezvous(&mut self, id: u32, peer: SocketAddr, connection: K) {
        self.connect(id, peer, connection);
        self.rendezvous_peers.insert(peer, id);
    }

    /// Adds a connection accepted from `peer`, which sent the handshake `request`.
    pub fn accept(&mut self, id: u32, peer: SocketAddr, request: &Handshake, connection: K) {
        let client = Client::from(request);
        self.by_id.insert(id, (peer, client, connection));
        self.accepted.insert((peer, client), id);
    }

    /// Removes a connection.
    pub fn remove(&mut self, id: u32) -> Option<K> {
        let (peer, client, connection) = self.by_id.remove(&id)?;
        if self.accepted.get(&(peer, client)) == Some(&id) {
            self.accepted.remove(&(peer, client));
        }
        if let Entry::Occupied(mut entry) = self.initiated.entry(peer) {
            entry.get_mut().retain(|initiated| *initiated != id);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
        if self.rendezvous_peers.get(&peer) == Some(&id) {
            self.rendezvous_peers.remove(&peer);
        }
        Some(connection)
    }

    /// Whether a connection has this id.
    pub fn contains(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The number of connections on the port.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The connections that this port initiated to `peer`.
    pub fn initiated_to(&self, peer: SocketAddr) -> impl Iterator<Item = K> {
        let ids = self.initiated.get(&peer).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id)).map(|(.., connection)| *connection)
    }

    /// Returns the destination of a datagram from `from`. Datagrams for a connection are dropped
    /// unless they come from its peer's address.
    pub fn route(&self, from: SocketAddr, datagram: &[u8]) -> Route<K> {
        match destination(datagram) {
            None => Route::Drop,
            Some(0) => self.route_request(from, datagram),
            Some(_) if reset::parse(datagram).is_some() => Route::Reset,
            Some(id) => self.route_to(from, id),
        }
    }

    /// Returns the destination of a datagram from `from` to the socket `id`.
    pub fn route_to(&self, from: SocketAddr, id: u32) -> Route<K> {
        match self.by_id.get(&id) {
            None => Route::Unknown,
            Some((peer, _, connection)) if *peer == from => Route::Connection(*connection),
            Some(_) => Route::Drop,
        }
    }

    fn route_request(&self, from: SocketAddr, datagram: &[u8]) -> Route<K> {
        let Ok(Packet { body: Body::Control(Control::Handshake(request)), .. }) =
            Packet::parse(datagram)
        else {
            return Route::Drop;
        };
        let id = match request.request {
            Request::Connect => None,
            // A rendezvous peer may send its second handshake before it knows this end's socket id.
            _ => (self.accepted.get(&(from, Client::from(&request))))
                .or_else(|| self.rendezvous_peers.get(&from)),
        };
        let found = id.and_then(|id| self.by_id.get(id));
        found.map_or(Route::Listener, |(_, _, connection)| Route::Connection(*connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(request: Request, socket: u32, destination: u32) -> [u8; 64] {
        let mut bytes = [0; 64];
        let handshake = Handshake { request, socket, ..crate::testing::request() };
        Control::Handshake(handshake).encode(0, destination, &mut bytes);
        bytes
    }

    fn request(bytes: &[u8]) -> Handshake {
        match Packet::parse(bytes).unwrap().body {
            Body::Control(Control::Handshake(request)) => request,
            _ => panic!("no handshake"),
        }
    }

    #[test]
    fn datagrams_are_routed_by_id_and_source() {
        let here: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let there: SocketAddr = "192.0.2.1:2".parse().unwrap();
        let mut routes = Demultiplexer::default();
        routes.connect(4, here, 'c');
        assert_eq!(routes.route(here, &datagram(Request::Agree, 8, 4)), Route::Connection('c'));
        assert_eq!(routes.route(there, &datagram(Request::Agree, 8, 4)), Route::Drop);
        assert_eq!(routes.route(here, &datagram(Request::Agree, 8, 5)), Route::Unknown);
        assert_eq!(routes.route(here, &[0; 12]), Route::Drop);

        let agree = datagram(Request::Agree, 8, 0);
        assert_eq!(routes.route(here, &agree), Route::Listener);
        routes.accept(6, here, &request(&agree), 'a');
        assert_eq!(routes.route(here, &agree), Route::Connection('a'));
        assert_eq!(routes.route(here, &datagram(Request::Connect, 8, 0)), Route::Listener);
        assert_eq!(routes.remove(6), Some('a'));
        assert_eq!(routes.route(here, &agree), Route::Listener);

        routes.rendezvous(7, there, 'm');
        assert_eq!(
            routes.route(there, &datagram(Request::Rendezvous, 1, 0)),
            Route::Connection('m')
        );
        routes.remove(7);
        assert_eq!(routes.route(there, &datagram(Request::Rendezvous, 1, 0)), Route::Listener);
        assert_eq!((routes.len(), routes.contains(4)), (1, true));
    }
}
