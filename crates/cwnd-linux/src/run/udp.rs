//! Flows of UDP datagrams without acknowledgements, sent at the simulator's times.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cwnd_sim::network::Traffic;
use cwnd_sim::traffic::Departures;
use cwnd_udt::packet::IP_UDP_HEADERS;
use rustix::net::sockopt;

use super::flow_config::FlowConfig;
use super::measurement::Snapshot;
use super::threads::{FlowThreads, PORT, Side};

/// A flow of datagrams.
pub(super) struct UdpFlow {
    packet_size: u64,
    sent: Arc<AtomicU64>,
    /// The socket of the sink, whose receive buffer is never read. Without a socket the kernel
    /// would answer with ICMP errors.
    _sink: UdpSocket,
}

impl UdpFlow {
    /// Starts the source of a flow.
    pub(super) fn new(
        threads: &mut FlowThreads,
        flow: &FlowConfig,
        traffic: &Traffic,
        seed: u64,
    ) -> io::Result<Self> {
        let sent = Arc::new(AtomicU64::new(0));
        let [local, peer] = flow.addresses;
        let (local, peer) = (SocketAddrV4::new(local, 0), SocketAddrV4::new(peer, PORT));
        let sink = threads.namespace(Side::Sink).run(|| {
            let socket = UdpSocket::bind(peer)?;
            sockopt::set_socket_recv_buffer_size(&socket, 0)?;
            io::Result::Ok(socket)
        })??;
        let departures = Departures::new(traffic, seed, flow.index, flow.start);
        let payload = vec![0; flow.packet_size as usize - IP_UDP_HEADERS];
        let (count, stop) = (Arc::clone(&sent), flow.stop);
        threads.spawn(Side::Source, &flow.name, move |state| {
            let socket = UdpSocket::bind(local)?;
            socket.connect(peer)?;
            for at in departures {
                if at >= stop || !state.wait_until(at) {
                    break;
                }
                socket.send(&payload)?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(UdpFlow { packet_size: flow.packet_size.into(), sent, _sink: sink })
    }

    /// Returns the current state.
    pub(super) fn snapshot(&self) -> Snapshot {
        // Only the links count delivered packets.
        let sent = self.sent.load(Ordering::Relaxed);
        Snapshot { sent, bytes_sent: sent * self.packet_size, ..Snapshot::default() }
    }
}
