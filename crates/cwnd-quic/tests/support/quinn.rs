//! quinn's endpoints.

stack!(quinn_proto, &ConnectionId, Arc<Self>, ());

use quinn_proto::Transmit;
use quinn_proto::crypto::{AeadKey, HandshakeTokenKey};

impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(PLAIN)
    }
}

impl AeadKey for Plain {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

fn server_config() -> quinn_proto::ServerConfig {
    quinn_proto::ServerConfig::new(Arc::new(PLAIN), Arc::new(PLAIN))
}

fn endpoint(
    config: Arc<EndpointConfig>,
    server: Option<Arc<quinn_proto::ServerConfig>>,
) -> Endpoint {
    Endpoint::new(config, server, true, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
) -> Option<DatagramEvent> {
    endpoint.handle(now, address(), None, ecn, data, &mut Vec::new())
}

fn poll_transmit(connection: &mut Connection, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, 1, buf)
}

fn counts(connection: &mut Connection) -> (u64, u64) {
    let stats = connection.stats();
    (stats.udp_tx.datagrams, stats.path.lost_packets)
}
