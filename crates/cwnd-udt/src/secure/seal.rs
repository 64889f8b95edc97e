//! Sealing and opening of datagrams: Noise transport messages with explicit counters.

use super::Refused;
use super::replay_window::ReplayWindow;
use super::wire::{DATA, HEADER, OVERHEAD, TAG, counter, header};
use crate::Filled;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// The binary logarithm of the number of datagrams encrypted with one key. The next key follows
/// (Noise section 11.3). With datagrams of up to 2 KiB, an attacker's advantage is 2⁻⁵⁷ (RFC 9001
/// section 6.6).
const EPOCH_BITS: u32 = 28;
/// The largest number of datagrams in one direction of a connection.
const MAX_DATAGRAMS: u64 = 1 << 40;

/// The counters of one direction are exhausted, after 2⁴⁰ datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection has reached the limit of 2^40 datagrams: open a new connection")]
pub struct Exhausted;

/// The AES-256-GCM key of an epoch.
#[derive(Clone)]
struct EpochKey {
    key: LessSafeKey,
    epoch: u64,
}

impl EpochKey {
    fn new(key: &[u8; 32], epoch: u64) -> Self {
        // The key has the length of the algorithm.
        let key = UnboundKey::new(&AES_256_GCM, key).expect("a key of 32 bytes");
        EpochKey { key: LessSafeKey::new(key), epoch }
    }

    /// The key of the next epoch, by Noise's `REKEY`.
    fn next(&self) -> Self {
        let mut key = [0; 32];
        let _tag = (self.key)
            .seal_in_place_separate_tag(nonce(u64::MAX), Aad::empty(), &mut key)
            .expect("32 bytes are not too long");
        EpochKey::new(&key, self.epoch + 1)
    }
}

/// Noise's nonce for AES-GCM (section 12.4).
fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Encrypts the datagrams that one end sends.
pub struct Sealer {
    epoch_key: EpochKey,
    /// The id of the peer's end of the session.
    to: u32,
    /// The counter of the next datagram.
    counter: u64,
}

impl Sealer {
    pub(super) fn new(key: &[u8; 32], to: u32) -> Self {
        Sealer { epoch_key: EpochKey::new(key, 0), to, counter: 0 }
    }

    /// The id of the peer's end of the session.
    pub fn to(&self) -> u32 {
        self.to
    }

    /// The number of sealed datagrams.
    pub fn sealed(&self) -> u64 {
        self.counter
    }

    /// Seals concatenated datagrams of `segment` bytes, of which the last may be shorter, and
    /// replaces the contents of `out` by the concatenated sealed datagrams. Returns the size of a
    /// sealed datagram, `segment` + [`OVERHEAD`]. The input is as in [`Transmit`](crate::Transmit);
    /// the output can be sent with `UDP_SEGMENT`. A retransmitted datagram is sealed again, with
    /// another counter.
    ///
    /// # Errors
    /// After 2⁴⁰ datagrams. Nothing is sealed then.
    pub fn seal(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Exhausted> {
        let sealed = self.copy_unsealed(datagrams, segment, out)?;
        self.seal_in_place(out, sealed);
        Ok(sealed)
    }

    /// The first, cheap step of [`seal`](Self::seal): copies the datagrams to `out`, each with
    /// header and room for the tag. [`seal_in_place`](Self::seal_in_place) must follow once.
    pub(crate) fn copy_unsealed(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Exhausted> {
        let segment = segment.max(1);
        out.clear();
        let count = datagrams.len().div_ceil(segment);
        if self.counter + count as u64 > MAX_DATAGRAMS {
            return Err(Exhausted);
        }
        out.reserve(datagrams.len() + count * OVERHEAD);
        for datagram in datagrams.chunks(segment) {
            out.extend_from_slice(&header(self.counter, self.to));
            out.extend_from_slice(datagram);
            out.extend_from_slice(&[0; TAG]);
            self.counter += 1;
        }
        Ok(segment + OVERHEAD)
    }

    /// The second step of [`seal`](Self::seal): encrypts the copied datagrams of `sealed` bytes, of
    /// which the last may be shorter.
    pub(crate) fn seal_in_place(&mut self, out: &mut [u8], sealed: usize) {
        for datagram in out.chunks_mut(sealed) {
            let Some((header, rest)) = datagram.split_first_chunk_mut::<HEADER>() else { return };
            let Some((plain, tag)) = rest.split_last_chunk_mut::<TAG>() else { return };
            let counter = counter(header);
            if counter >> EPOCH_BITS != self.epoch_key.epoch {
                self.epoch_key = self.epoch_key.next();
            }
            let made = (self.epoch_key.key)
                .seal_in_place_separate_tag(nonce(counter), Aad::from(*header), plain)
                .expect("a datagram is not too long for AES-GCM");
            tag.copy_from_slice(made.as_ref());
        }
    }

    /// Sets the counter of the next datagram.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        while self.epoch_key.epoch < counter >> EPOCH_BITS {
            self.epoch_key = self.epoch_key.next();
        }
        self.counter = counter;
    }
}

/// The number of dropped datagrams by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// [`Refused::Foreign`].
    pub foreign: u64,
    /// [`Refused::Replayed`].
    pub replayed: u64,
    /// [`Refused::Forged`].
    pub forged: u64,
}

/// Decrypts the datagrams that arrive at one end.
pub struct Opener {
    /// The keys of the epochs before, of and after the highest counter that has arrived.
    epoch_keys: [EpochKey; 3],
    id: u32,
    replay_window: ReplayWindow,
    refused: Refusals,
}

impl Opener {
    pub(super) fn new(key: &[u8; 32], id: u32) -> Self {
        let first = EpochKey::new(key, 0);
        let epoch_keys = [first.clone(), first.clone(), first.next()];
        Opener { epoch_keys, id, replay_window: ReplayWindow::new(), refused: Refusals::default() }
    }

    /// The id of this end of the session.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The number of dropped datagrams by reason.
    pub fn refused(&self) -> Refusals {
        self.refused
    }

    /// Opens one datagram in place.
    ///
    /// # Errors
    /// The reason why the datagram is dropped. Its contents are undefined then.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<&'a mut [u8], Refused> {
        let length = self.open_within(datagram, 0)?;
        Ok(&mut datagram[..length])
    }

    /// Opens concatenated datagrams of `segment` bytes, of which the last may be shorter, and moves
    /// the plaintexts of the valid ones to the front. The input is as received with `UDP_GRO`; the
    /// output is for [`handle_batch`](crate::Connection::handle_batch). Invalid datagrams are
    /// [counted](Self::refused).
    pub fn open_batch(&mut self, datagrams: &mut [u8], segment: usize) -> Filled {
        let segment = segment.max(1);
        let (mut from, mut to) = (0, 0);
        while from < datagrams.len() {
            let end = datagrams.len().min(from + segment);
            to += self.open_within(&mut datagrams[to..end], from - to).unwrap_or(0);
            from = end;
        }
        Filled { length: to, segment: segment.saturating_sub(OVERHEAD).max(1) }
    }

    /// Opens the datagram at the offset `at` of `bytes`, and moves its plaintext to the front.
    /// Returns its length.
    fn open_within(&mut self, bytes: &mut [u8], at: usize) -> Result<usize, Refused> {
        let result = self.try_open(bytes, at);
        match result {
            Ok(_) => {}
            Err(Refused::Replayed) => self.refused.replayed += 1,
            Err(Refused::Forged) => self.refused.forged += 1,
            Err(_) => self.refused.foreign += 1,
        }
        result
    }

    fn try_open(&mut self, bytes: &mut [u8], at: usize) -> Result<usize, Refused> {
        let Some(header) = bytes.get(at..).and_then(|datagram| datagram.first_chunk::<HEADER>())
        else {
            return Err(Refused::Foreign);
        };
        let header = *header;
        let counter = counter(&header);
        if header[0] != DATA || header[8..] != self.id.to_be_bytes() || bytes.len() - at < OVERHEAD
        {
            return Err(Refused::Foreign);
        }
        if !self.replay_window.is_new(counter) {
            return Err(Refused::Replayed);
        }
        let Some(epoch_key) =
            self.epoch_keys.iter().find(|epoch_key| epoch_key.epoch == counter >> EPOCH_BITS)
        else {
            return Err(Refused::Forged);
        };
        let length = (epoch_key.key)
            .open_within(nonce(counter), Aad::from(header), bytes, at + HEADER..)
            .map_err(|_| Refused::Forged)?
            .len();
        self.replay_window.mark(counter);
        if self.replay_window.end() > (self.epoch_keys[2].epoch << EPOCH_BITS) {
            self.epoch_keys.rotate_left(1);
            self.epoch_keys[2] = self.epoch_keys[1].next();
        }
        debug_assert_eq!(length + OVERHEAD + at, bytes.len());
        Ok(length)
    }

    /// Advances the replay window as if the datagram before `counter` had arrived.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        while self.epoch_keys[1].epoch < counter >> EPOCH_BITS {
            self.epoch_keys.rotate_left(1);
            self.epoch_keys[2] = self.epoch_keys[1].next();
        }
        self.replay_window.mark(counter - 1);
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("to", &self.to).field("sealed", &self.counter).finish()
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("id", &self.id).field("refused", &self.refused).finish()
    }
}

const _: () = assert!(MAX_DATAGRAMS < 1 << 56 && TAG == 16);
