//! A source that nobody answers: UDP at the simulator's times.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cwnd_sim::network::Traffic;
use cwnd_sim::traffic::Departures;
use cwnd_udt::packet::IP_UDP_HEADERS;

use super::meter::Reading;
use super::plan::Flow;
use super::stage::{Side, Stage};
use super::sys;

const PORT: u16 = 9;

pub(super) struct Ends {
    sent: Arc<AtomicU64>,
    /// Takes what comes, and drops it: without a socket the kernel would answer.
    _sink: UdpSocket,
}

impl Ends {
    pub(super) fn new(
        stage: &mut Stage,
        flow: &Flow,
        traffic: &Traffic,
        seed: u64,
    ) -> io::Result<Self> {
        let sent = Arc::new(AtomicU64::new(0));
        let [local, peer] = flow.ends;
        let (local, peer) = (SocketAddrV4::new(local, 0), SocketAddrV4::new(peer, PORT));
        let sink = stage.space(Side::Sink).run(|| {
            let socket = UdpSocket::bind(peer)?;
            sys::set_number(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 0)?;
            io::Result::Ok(socket)
        })??;
        let departures = Departures::new(traffic, seed, flow.index, flow.start);
        let payload = vec![0; flow.wire as usize - IP_UDP_HEADERS];
        let (count, stop) = (Arc::clone(&sent), flow.stop);
        stage.spawn(Side::Source, &flow.name, move |scene| {
            let socket = UdpSocket::bind(local)?;
            socket.connect(peer)?;
            for at in departures {
                if at >= stop || !scene.wait_until(at) {
                    break;
                }
                socket.send(&payload)?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(Ends { sent, _sink: sink })
    }

    pub(super) fn read(&self) -> Reading {
        // What arrived, the links know.
        Reading { sent: self.sent.load(Ordering::Relaxed), ..Reading::default() }
    }
}
