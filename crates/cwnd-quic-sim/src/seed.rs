//! Random numbers of a connection, from the seed of the run.

use cwnd_sim::rng::Rng;

/// Bytes of a connection identifier.
pub(crate) const CID: usize = 8;

/// Returns random bytes.
pub(crate) fn bytes<const N: usize>(rng: &mut Rng) -> [u8; N] {
    let mut all = [0; N];
    for part in all.chunks_mut(8) {
        part.copy_from_slice(&rng.bits().to_le_bytes()[..part.len()]);
    }
    all
}

/// Makes connection identifiers: random numbers in a fixed order.
#[derive(Clone)]
pub(crate) struct Identifiers(u64);

impl Identifiers {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Identifiers(rng.bits())
    }

    /// Returns the next identifier: a bijection of a counter (the finalizer of MurmurHash3), so that
    /// none occurs twice.
    pub(crate) fn next(&mut self) -> [u8; CID] {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0).to_be_bytes()
    }
}

/// Returns the token of an identifier, for stateless resets.
pub(crate) fn token(key: u64, identifier: &[u8]) -> [u8; 32] {
    let mut state = key;
    for &byte in identifier {
        state = mixed(state ^ u64::from(byte));
    }
    let mut token = [0; 32];
    for part in token.chunks_exact_mut(8) {
        state = mixed(state.wrapping_add(1));
        part.copy_from_slice(&state.to_be_bytes());
    }
    token
}

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}
