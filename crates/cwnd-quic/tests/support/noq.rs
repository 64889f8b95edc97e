//! noq's endpoints.

stack!(noq_proto, ConnectionId, &Self, (noq_proto::PathId));

use noq_proto::{FourTuple, Transmit};
use std::num::NonZeroUsize;

impl noq_proto::crypto::HandshakeTokenKey for Plain {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Ok(())
    }
    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Ok(data)
    }
}

fn server_config() -> noq_proto::ServerConfig {
    noq_proto::ServerConfig::new(Arc::new(PLAIN), Arc::new(PLAIN))
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<noq_proto::ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(address(), None), ecn, data, &mut Vec::new())
}

fn poll_transmit(connection: &mut Connection, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::MIN, buf)
}

fn counts(connection: &mut Connection) -> (u64, u64) {
    let stats = connection.stats();
    (stats.udp_tx.datagrams, stats.lost_packets)
}
