//! The handshake, and packets without encryption, in place of a stack's TLS. Compiled for each stack.

use super::keys::Plain;
use super::{Identifier, proto};
use crate::handshake::Handshake;
use crate::seed::token;
use proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
};
use proto::transport_parameters::TransportParameters;
use proto::{Side, TransportError};
use std::any::Any;

/// Returns the keys of any encryption level.
pub(super) fn keys() -> Keys {
    let key = Plain::default();
    Keys {
        header: KeyPair { local: Box::new(key), remote: Box::new(key) },
        packet: packet_keys(key),
    }
}

fn packet_keys(key: Plain) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(key), remote: Box::new(key) }
}

/// One end of a handshake.
pub(super) struct Session {
    side: Side,
    handshake: Handshake,
    /// Whether the end of the handshake was announced.
    announced: bool,
    /// The last keys for data.
    key: Plain,
}

impl Session {
    pub(super) fn new(side: Side, params: &TransportParameters) -> Box<Self> {
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let handshake = Handshake::new(side == Side::Client, encoded);
        Box::new(Session { side, handshake, announced: false, key: Plain::default() })
    }
}

impl proto::crypto::Session for Session {
    fn initial_keys(&self, _: Identifier, _: Side) -> Keys {
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
        self.handshake.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.handshake.read(buf);
        Ok(!self.handshake.is_handshaking() && !std::mem::replace(&mut self.announced, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut encoded) = self.handshake.peer_params() else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side, &mut encoded)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.handshake.write(buf).then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.key.phase = self.key.phase.wrapping_add(1);
        Some(packet_keys(self.key))
    }

    fn is_valid_retry(&self, _: Identifier, _: &[u8], _: &[u8]) -> bool {
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

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// That of AES and ChaCha20.
    fn sample_size(&self) -> usize {
        16
    }
}

/// The key of the tokens of stateless resets.
pub(super) struct ResetKey(pub u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let token = token(self.0, data);
        signature.copy_from_slice(&token[..signature.len()]);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if token(self.0, data).starts_with(signature) { Ok(()) } else { Err(CryptoError) }
    }
}
