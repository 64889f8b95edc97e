//! A client that sends single handshake packets over a UDP socket.

use super::local;
use crate::common::{Random, encoded, request};
use cwnd_udt::Seq;
use cwnd_udt::handshake::{Handshake, Request};
use cwnd_udt::packet::{Body, Control, Packet};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

pub(crate) struct RawClient {
    socket: UdpSocket,
    handshake: Handshake,
}

impl RawClient {
    pub(crate) fn new(to: SocketAddr, random: &mut Random) -> Self {
        let socket = UdpSocket::bind(local()).unwrap();
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut raw_client = RawClient { socket, handshake: request() };
        raw_client.change_identity(random);
        raw_client
    }

    /// Continues as a new UDT socket at the same address.
    pub(crate) fn change_identity(&mut self, random: &mut Random) {
        self.handshake.socket = 1 + random.below((1 << 31) - 1) as u32;
        self.handshake.initial = Seq::new(random.next() as u32);
    }

    pub(crate) fn send(&self, request: Request, cookie: u32) {
        let request = Control::Handshake(Handshake { request, cookie, ..self.handshake });
        // A full socket buffer of the listener is not an error.
        let _ = self.socket.send(&encoded(request, 0));
    }

    pub(crate) fn answer(&self) -> Option<Handshake> {
        let mut bytes = [0; 2000];
        let length = self.socket.recv(&mut bytes).ok()?;
        match Packet::parse(&bytes[..length]).ok()?.body {
            Body::Control(Control::Handshake(answer)) => Some(answer),
            _ => None,
        }
    }

    pub(crate) fn cookie(&self) -> u32 {
        for _ in 0..20 {
            self.send(Request::Connect, 0);
            if let Some(answer) = self.answer() {
                return answer.cookie;
            }
        }
        panic!("no cookie")
    }
}
