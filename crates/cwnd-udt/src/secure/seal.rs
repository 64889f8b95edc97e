//! Sealing and opening: Noise's transport messages with explicit counters.

use super::Refused;
use super::window::Window;
use super::wire::{DATA, HEADER, OVERHEAD, TAG, counter, header};
use crate::Filled;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// The binary logarithm of the number of datagrams under one key, after which the key is replaced (Noise section 11.3).
/// With datagrams of up to 2 KiB an attacker's advantage is 2⁻⁵⁷ (RFC 9001 section 6.6).
const EPOCH: u32 = 28;
/// The number of datagrams in one direction of a connection.
const LAST: u64 = 1 << 40;

/// This direction has used up its counters, after 2⁴⁰ datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection has sent as many datagrams as its keys are good for: begin another")]
pub struct Exhausted;

/// A key of AES-256-GCM and its index in the chain of keys.
#[derive(Clone)]
struct Link {
    key: LessSafeKey,
    epoch: u64,
}

impl Link {
    fn new(key: &[u8; 32], epoch: u64) -> Self {
        // The length is the algorithm's.
        let key = UnboundKey::new(&AES_256_GCM, key).expect("a key of 32 bytes");
        Link { key: LessSafeKey::new(key), epoch }
    }

    /// Noise's `REKEY`.
    fn next(&self) -> Self {
        let mut key = [0; 32];
        let _tag = (self.key)
            .seal_in_place_separate_tag(nonce(u64::MAX), Aad::empty(), &mut key)
            .expect("32 bytes are not too long");
        Link::new(&key, self.epoch + 1)
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
    link: Link,
    /// The peer's session.
    to: u32,
    /// The next datagram's.
    counter: u64,
}

impl Sealer {
    pub(super) fn new(key: &[u8; 32], to: u32) -> Self {
        Sealer { link: Link::new(key, 0), to, counter: 0 }
    }

    /// The peer's session.
    pub fn to(&self) -> u32 {
        self.to
    }

    /// The number of sealed datagrams.
    pub fn sealed(&self) -> u64 {
        self.counter
    }

    /// Seals concatenated datagrams, each of `segment` bytes and the last of no more, and writes them concatenated to
    /// `out`, whose contents are replaced. Returns the size of a sealed datagram, `segment` + [`OVERHEAD`]. The input
    /// is that of [`Transmit`](crate::Transmit), the output that for `UDP_SEGMENT`. A retransmitted datagram is sealed
    /// again, with another counter.
    ///
    /// # Errors
    /// After 2⁴⁰ datagrams: nothing is sealed then.
    pub fn seal(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Exhausted> {
        let sealed = self.lay_out(datagrams, segment, out)?;
        self.finish(out, sealed);
        Ok(sealed)
    }

    /// The first, cheap half of [`seal`](Self::seal): copies the datagrams to `out`, each with its counter.
    /// [`finish`](Self::finish) must follow once.
    pub(crate) fn lay_out(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Exhausted> {
        let segment = segment.max(1);
        out.clear();
        let count = datagrams.len().div_ceil(segment);
        if self.counter + count as u64 > LAST {
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

    /// The second half of [`seal`](Self::seal): encrypts the copied datagrams, each of `sealed` bytes and the last of
    /// no more.
    pub(crate) fn finish(&mut self, out: &mut [u8], sealed: usize) {
        for datagram in out.chunks_mut(sealed) {
            let Some((header, rest)) = datagram.split_first_chunk_mut::<HEADER>() else { return };
            let Some((plain, tag)) = rest.split_last_chunk_mut::<TAG>() else { return };
            let counter = counter(header);
            if counter >> EPOCH != self.link.epoch {
                self.link = self.link.next();
            }
            let made = (self.link.key)
                .seal_in_place_separate_tag(nonce(counter), Aad::from(*header), plain)
                .expect("a datagram is not too long for AES-GCM");
            tag.copy_from_slice(made.as_ref());
        }
    }

    /// Continues as if `counter` datagrams had been sealed.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        while self.link.epoch < counter >> EPOCH {
            self.link = self.link.next();
        }
        self.counter = counter;
    }
}

/// Datagrams that were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Not sealed datagrams of this connection: [`Refused::Foreign`].
    pub foreign: u64,
    /// [`Refused::Replayed`].
    pub replayed: u64,
    /// [`Refused::Forged`].
    pub forged: u64,
}

/// Decrypts the datagrams that arrive at one end.
pub struct Opener {
    /// The keys before, of, and after the highest counter that has arrived.
    links: [Link; 3],
    id: u32,
    window: Window,
    refused: Refusals,
}

impl Opener {
    pub(super) fn new(key: &[u8; 32], id: u32) -> Self {
        let first = Link::new(key, 0);
        let links = [first.clone(), first.clone(), first.next()];
        Opener { links, id, window: Window::new(), refused: Refusals::default() }
    }

    /// This end's session.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The datagrams dropped so far.
    pub fn refused(&self) -> Refusals {
        self.refused
    }

    /// Opens one datagram in place.
    ///
    /// # Errors
    /// The reason to drop it. Its contents are lost then.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<&'a mut [u8], Refused> {
        let length = self.open_within(datagram, 0)?;
        Ok(&mut datagram[..length])
    }

    /// Opens concatenated datagrams, each of `segment` bytes and the last of no more, and moves the valid contents to
    /// the front. The input is that of `UDP_GRO`, the output that for
    /// [`handle_batch`](crate::Connection::handle_batch). Invalid datagrams are [counted](Self::refused).
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

    /// Opens the datagram that begins at `at` in `bytes`, and moves its contents to the front.
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
        if !self.window.is_new(counter) {
            return Err(Refused::Replayed);
        }
        let Some(link) = self.links.iter().find(|link| link.epoch == counter >> EPOCH) else {
            return Err(Refused::Forged);
        };
        let length = (link.key)
            .open_within(nonce(counter), Aad::from(header), bytes, at + HEADER..)
            .map_err(|_| Refused::Forged)?
            .len();
        self.window.mark(counter);
        if self.window.top() > (self.links[2].epoch << EPOCH) {
            self.links.rotate_left(1);
            self.links[2] = self.links[1].next();
        }
        debug_assert_eq!(length + OVERHEAD + at, bytes.len());
        Ok(length)
    }

    /// Continues as if all datagrams before `counter` had arrived.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        while self.links[1].epoch < counter >> EPOCH {
            self.links.rotate_left(1);
            self.links[2] = self.links[1].next();
        }
        self.window.mark(counter - 1);
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

const _: () = assert!(LAST < 1 << 56 && TAG == 16);
