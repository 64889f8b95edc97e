//! TLS of a stack, whose keys copy the packets before they encrypt them. Compiled for each stack.

use super::tapped::{Client, Server};
use super::{Identifier, proto};
use crate::message::Tap;
use crate::tls;
use proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use proto::crypto::{
    self, ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    ServerConfig,
};
use proto::transport_parameters::TransportParameters;
use proto::{Side, TransportError};
use std::any::Any;
use std::error::Error;
use std::sync::Arc;

/// Returns the TLS of a client.
pub(super) fn client(tap: Tap) -> Result<Arc<dyn ClientConfig>, Box<dyn Error>> {
    let inner = Arc::new(QuicClientConfig::try_from(tls::client()?)?);
    Ok(Arc::new(Client { inner, tap }))
}

/// Returns the TLS of a server.
pub(super) fn server(tap: Tap) -> Result<Arc<dyn ServerConfig>, Box<dyn Error>> {
    let inner = Arc::new(QuicServerConfig::try_from(tls::server()?)?);
    Ok(Arc::new(Server { inner, tap }))
}

/// A key that copies packets before it encrypts them.
pub(super) struct Tapped {
    pub inner: Box<dyn PacketKey>,
    pub tap: Tap,
}

/// A session with such keys.
pub(super) struct Session {
    pub inner: Box<dyn crypto::Session>,
    pub tap: Tap,
}

impl Session {
    fn tapped(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let local = Box::new(Tapped { inner: keys.local, tap: self.tap.clone() });
        KeyPair { local, remote: keys.remote }
    }

    fn all_tapped(&self, keys: Keys) -> Keys {
        Keys { header: keys.header, packet: self.tapped(keys.packet) }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, id: Identifier, side: Side) -> Keys {
        self.all_tapped(self.inner.initial_keys(id, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        Some(self.all_tapped(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.tapped(keys))
    }

    fn is_valid_retry(&self, id: Identifier, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
