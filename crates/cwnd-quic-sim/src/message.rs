//! A datagram in flight, and its packets before their encryption.

use bytes::BytesMut;
use std::sync::{Arc, Mutex, PoisonError};

/// A datagram.
#[derive(Clone, Default)]
pub(crate) struct Message {
    /// What the other end receives.
    pub datagram: BytesMut,
    /// Its packets without encryption, if it is encrypted.
    plain: Option<Box<[u8]>>,
}

impl Message {
    pub(crate) fn new(datagram: &[u8], plain: Option<Box<[u8]>>) -> Self {
        Message { datagram: datagram.into(), plain }
    }

    /// Returns the packets without encryption.
    pub(crate) fn plain(&self) -> &[u8] {
        self.plain.as_deref().unwrap_or(&self.datagram)
    }
}

/// Copies of the packets that an end encrypts, as the keys without encryption leave them.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<Mutex<Vec<u8>>>);

impl Tap {
    /// Copies a packet that is about to be encrypted.
    #[cfg(feature = "tls")]
    pub(crate) fn copy(&self, packet: &[u8], number: u64) {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        copies.extend_from_slice(packet);
        crate::handshake::seal(&mut copies, 0, number);
    }

    /// Takes the copies.
    pub(crate) fn take(&self) -> Box<[u8]> {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *copies).into()
    }
}
