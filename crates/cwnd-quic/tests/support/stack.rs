//! What the sources of noq and quinn have in common, which is nearly all.

/// Implements the plaintext session of a stack and [`Peer`](super::link::Peer).
///
/// The parameters are the crate, the type of connection identifiers in arguments, the receiver of
/// `start_session`, the argument of packet keys that names a path, and the arguments of functions
/// that differ.
macro_rules! stack {
    ($proto:ident, $cid:ty, $config:ty, ($($path:ty)?)) => {
        use super::handshake::Handshake;
        use super::link::{Datagram, Peer};
        use bytes::BytesMut;
        use std::any::Any;
        use std::net::SocketAddr;
        use std::sync::Arc;
        use std::time::Instant;
        use $proto::crypto::{
            ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair,
            Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
        };
        use $proto::transport_parameters::TransportParameters;
        use $proto::{
            ConnectError, Connection, ConnectionHandle, ConnectionId, DatagramEvent, Dir,
            EcnCodepoint, Endpoint, EndpointConfig, Event, Side, StreamId, TransportConfig,
            TransportError,
        };

        /// No encryption; also its own configuration and keys. The last byte of a tag is the number
        /// of the keys, so that those of another phase fail.
        #[derive(Clone, Copy)]
        struct Plain {
            phase: u8,
        }

        /// The keys before any update, and whatever needs none.
        const PLAIN: Plain = Plain { phase: 0 };

        /// Bytes of the tag of a packet, as those of AES-GCM.
        const TAG: usize = 16;

        fn packet_keys(key: Plain) -> KeyPair<Box<dyn PacketKey>> {
            KeyPair { local: Box::new(key), remote: Box::new(key) }
        }

        fn keys() -> Keys {
            let header = KeyPair { local: Box::new(PLAIN) as _, remote: Box::new(PLAIN) as _ };
            Keys { header, packet: packet_keys(PLAIN) }
        }

        impl HeaderKey for Plain {
            fn decrypt(&self, _: usize, _: &mut [u8]) {}
            fn encrypt(&self, _: usize, _: &mut [u8]) {}
            fn sample_size(&self) -> usize {
                TAG
            }
        }

        impl PacketKey for Plain {
            fn encrypt(&self, $(_: $path,)? _: u64, packet: &mut [u8], _: usize) {
                if let Some(last) = packet.last_mut() {
                    *last = self.phase;
                }
            }
            fn decrypt(
                &self,
                $(_: $path,)?
                _: u64,
                _: &[u8],
                payload: &mut BytesMut,
            ) -> Result<(), CryptoError> {
                let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
                if payload.last() != Some(&self.phase) {
                    return Err(CryptoError);
                }
                payload.truncate(length);
                Ok(())
            }
            fn tag_len(&self) -> usize {
                TAG
            }
            fn confidentiality_limit(&self) -> u64 {
                u64::MAX
            }
            fn integrity_limit(&self) -> u64 {
                u64::MAX
            }
        }

        impl HmacKey for Plain {
            fn sign(&self, _: &[u8], out: &mut [u8]) {
                // Unlike a tag, or each packet would be a stateless reset.
                out.fill(1);
            }
            fn signature_len(&self) -> usize {
                TAG
            }
            fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
                Ok(())
            }
        }

        fn session(client: bool, params: &TransportParameters) -> Box<dyn Session> {
            let mut own = Vec::new();
            params.write(&mut own);
            let side = if client { Side::Client } else { Side::Server };
            Box::new(PlainSession { side, handshake: Handshake::new(client, own), phase: 0 })
        }

        impl ClientConfig for Plain {
            fn start_session(
                self: $config,
                _: u32,
                _: &str,
                params: &TransportParameters,
            ) -> Result<Box<dyn Session>, ConnectError> {
                Ok(session(true, params))
            }
        }

        impl ServerConfig for Plain {
            fn initial_keys(&self, _: u32, _: $cid) -> Result<Keys, UnsupportedVersion> {
                Ok(keys())
            }
            fn retry_tag(&self, _: u32, _: $cid, _: &[u8]) -> [u8; 16] {
                [0; 16]
            }
            fn start_session(self: $config, _: u32, params: &TransportParameters) -> Box<dyn Session> {
                session(false, params)
            }
        }

        struct PlainSession {
            side: Side,
            handshake: Handshake,
            phase: u8,
        }

        impl Session for PlainSession {
            fn initial_keys(&self, _: $cid, _: Side) -> Keys {
                keys()
            }
            fn handshake_data(&self) -> Option<Box<dyn Any>> {
                None
            }
            fn peer_identity(&self) -> Option<Box<dyn Any>> {
                None
            }
            fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
                None
            }
            fn early_data_accepted(&self) -> Option<bool> {
                None
            }
            fn is_handshaking(&self) -> bool {
                !self.handshake.is_over()
            }
            fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
                Ok(self.handshake.read(buf))
            }
            fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
                let read = |mut peer: &[u8]| TransportParameters::read(self.side, &mut peer);
                self.handshake.peer().map(read).transpose().map_err(Into::into)
            }
            fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
                self.handshake.write(buf).then(keys)
            }
            fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
                self.phase = self.phase.wrapping_add(1);
                Some(packet_keys(Plain { phase: self.phase }))
            }
            fn is_valid_retry(&self, _: $cid, _: &[u8], _: &[u8]) -> bool {
                false
            }
            fn export_keying_material(
                &self,
                _: &mut [u8],
                _: &[u8],
                _: &[u8],
            ) -> Result<(), ExportKeyingMaterialError> {
                Err(ExportKeyingMaterialError)
            }
        }

        /// An endpoint with one connection: a client that sends on one stream, or a server that
        /// reads.
        pub(crate) struct Host {
            endpoint: Endpoint,
            connection: Option<(ConnectionHandle, Connection)>,
            stream: Option<StreamId>,
            /// Bytes still to be written, and those read.
            to_write: u64,
            read: u64,
            closed: Option<String>,
            buffer: Vec<u8>,
        }

        static DATA: [u8; 1 << 14] = [0; 1 << 14];

        /// The address of the peer, whichever it is.
        fn address() -> SocketAddr {
            SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 4433))
        }

        fn endpoint_config(seed: u8) -> Arc<EndpointConfig> {
            let mut config = EndpointConfig::new(Arc::new(PLAIN));
            config.rng_seed(Some([seed; 32]));
            Arc::new(config)
        }

        impl Host {
            fn new(endpoint: Endpoint) -> Self {
                let (stream, closed, buffer) = (None, None, Vec::new());
                Host { endpoint, connection: None, stream, to_write: 0, read: 0, closed, buffer }
            }

            /// A client that connects at `now` and sends `bytes` bytes.
            pub(crate) fn client(now: Instant, bytes: u64, transport: TransportConfig) -> Self {
                let mut host = Host::new(endpoint(endpoint_config(1), None));
                let mut config = $proto::ClientConfig::new(Arc::new(PLAIN));
                config.transport_config(Arc::new(transport));
                let connection = host.endpoint.connect(now, config, address(), "localhost");
                host.connection = Some(connection.expect("the configuration is valid"));
                host.to_write = bytes;
                host
            }

            pub(crate) fn server(transport: TransportConfig) -> Self {
                let mut config = server_config();
                config.transport_config(Arc::new(transport));
                Host::new(endpoint(endpoint_config(2), Some(Arc::new(config))))
            }

            /// The datagrams that were sent, and the packets that were lost.
            pub(crate) fn counts(&mut self) -> (u64, u64) {
                self.connection.as_mut().map_or((0, 0), |(_, connection)| counts(connection))
            }

            /// What the application and the endpoint do after each change.
            fn act(&mut self) {
                let Some((handle, connection)) = &mut self.connection else { return };
                while let Some(event) = connection.poll() {
                    match event {
                        Event::ConnectionLost { reason } => self.closed = Some(reason.to_string()),
                        Event::Connected if self.to_write > 0 => {
                            self.stream = connection.streams().open(Dir::Uni);
                        }
                        _ => {}
                    }
                }
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(*handle, event) {
                        connection.handle_event(event);
                    }
                }
                if let Some(stream) = self.stream.filter(|_| self.to_write > 0) {
                    while self.to_write > 0 {
                        let length = DATA.len().min(self.to_write as usize);
                        match connection.send_stream(stream).write(&DATA[..length]) {
                            Ok(written) => self.to_write -= written as u64,
                            Err(_) => break,
                        }
                    }
                }
                if self.stream.is_none() {
                    self.stream = connection.streams().accept(Dir::Uni);
                }
                if let Some(stream) = self.stream.filter(|_| connection.side() == Side::Server) {
                    let mut incoming = connection.recv_stream(stream);
                    if let Ok(mut chunks) = incoming.read(true) {
                        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                            self.read += chunk.bytes.len() as u64;
                        }
                        let _ = chunks.finalize();
                    }
                }
            }
        }

        impl Peer for Host {
            fn transmit(&mut self, now: Instant) -> Option<Datagram> {
                self.act();
                let (_, connection) = self.connection.as_mut()?;
                self.buffer.clear();
                let transmit = poll_transmit(connection, now, &mut self.buffer)?;
                let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
                Some(Datagram { bytes: self.buffer[..transmit.size].to_vec(), ecn })
            }

            fn receive(&mut self, now: Instant, datagram: Datagram) {
                let ecn = EcnCodepoint::from_bits(datagram.ecn);
                let data = BytesMut::from(&datagram.bytes[..]);
                match handle(&mut self.endpoint, now, ecn, data) {
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        let mut buffer = Vec::new();
                        let accepted = self.endpoint.accept(incoming, now, &mut buffer, None);
                        self.connection = accepted.ok();
                    }
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        if let Some((_, connection)) = &mut self.connection {
                            connection.handle_event(event);
                        }
                    }
                    _ => {}
                }
                self.act();
            }

            fn wake(&mut self) -> Option<Instant> {
                self.connection.as_mut()?.1.poll_timeout()
            }

            fn expire(&mut self, now: Instant) {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_timeout(now);
                }
            }

            fn closed(&self) -> Option<String> {
                self.closed.clone()
            }

            fn received(&self) -> u64 {
                self.read
            }
        }
    };
}
