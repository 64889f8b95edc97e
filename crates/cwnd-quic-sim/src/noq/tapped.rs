//! Configurations and keys that copy packets.

use super::proto;
use super::tls::{Session, Tapped};
use crate::message::Tap;
use bytes::BytesMut;
use proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use proto::crypto::{self, CryptoError, Keys, PacketKey, UnsupportedVersion};
use proto::transport_parameters::TransportParameters;
use proto::{ConnectError, ConnectionId, PathId};
use std::sync::Arc;

pub(super) struct Client {
    pub inner: Arc<QuicClientConfig>,
    pub tap: Tap,
}

impl crypto::ClientConfig for Client {
    fn start_session(
        &self,
        version: u32,
        name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let inner = self.inner.start_session(version, name, params)?;
        Ok(Box::new(Session { inner, tap: self.tap.clone() }))
    }
}

pub(super) struct Server {
    pub inner: Arc<QuicServerConfig>,
    pub tap: Tap,
}

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, version: u32, id: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }

    fn start_session(
        &self,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let inner = self.inner.start_session(version, params);
        Box::new(Session { inner, tap: self.tap.clone() })
    }
}

impl PacketKey for Tapped {
    fn encrypt(&self, path: PathId, number: u64, buf: &mut [u8], header: usize) {
        self.tap.copy(buf, number);
        self.inner.encrypt(path, number, buf, header);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(path, number, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
