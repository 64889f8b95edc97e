//! Keys that do not encrypt.

use super::proto;
use super::session::{Session, keys};
use crate::handshake::{TAG, seal, unseal};
use bytes::BytesMut;
use proto::crypto::{
    ClientConfig, CryptoError, HandshakeTokenKey, Keys, PacketKey, ServerConfig, UnsupportedVersion,
};
use proto::transport_parameters::TransportParameters;
use proto::{ConnectError, ConnectionId, PathId, Side};

/// A key of any kind, and the configuration of both ends.
#[derive(Clone, Copy, Default)]
pub(super) struct Plain {
    /// The number of updates before this key.
    pub phase: u8,
}

impl PacketKey for Plain {
    fn encrypt(&self, _: PathId, number: u64, buf: &mut [u8], _: usize) {
        seal(buf, self.phase, number);
    }

    fn decrypt(
        &self,
        _: PathId,
        number: u64,
        _: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        if unseal(payload, self.phase, number) { Ok(()) } else { Err(CryptoError) }
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    /// That of AES-GCM (RFC 9001 section 6.6).
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

impl HandshakeTokenKey for Plain {
    fn seal(&self, _: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend([0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&data[..length])
    }
}

impl ClientConfig for Plain {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn proto::crypto::Session>, ConnectError> {
        Ok(Session::new(Side::Client, params))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        &self,
        _: u32,
        params: &TransportParameters,
    ) -> Box<dyn proto::crypto::Session> {
        Session::new(Side::Server, params)
    }
}
