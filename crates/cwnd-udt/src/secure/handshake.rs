//! The Noise handshakes, the SPAKE2 exchange, and the MAC keys for each kind of credentials.

use super::credentials::Credentials;
use super::key_pair::{KeyPair, PublicKey};
use super::one_time_code::Code;
use super::shared_key::{Key, derive};
use super::wire::{HELLO, MAC_LEN, MESSAGE_OFFSET, PAIR_HELLO, POINT_LEN, handshake_header};
use ring::hmac;
use snow::{Builder, HandshakeState};
use spake2::{Ed25519Group, Group, Identity, Password, Spake2};

/// The salt of keys derived for one-time codes.
const SALT: &[u8] = b"cwnd-udt code 1";

/// A pre-shared key for Noise, from a key exchange.
#[derive(Clone)]
pub(super) struct Psk([u8; 32]);

opaque_debug!(Psk);

impl Psk {
    /// The parameters of a handshake with this key.
    pub(super) fn params(&self) -> NoiseParams<'_> {
        NoiseParams::Shared(&self.0)
    }
}

/// The parameters of a Noise handshake.
#[derive(Clone, Copy)]
pub(super) enum NoiseParams<'a> {
    /// `NNpsk0`: a pre-shared key.
    Shared(&'a [u8; 32]),
    /// `IKpsk2`: this end's key pair, the listener's public key (client only), and an optional
    /// pre-shared key.
    Pair(&'a KeyPair, Option<&'a PublicKey>, Option<&'a Key>),
}

/// Starts a handshake with the client id `client`.
pub(super) fn noise(
    params: NoiseParams<'_>,
    client: u32,
    initiates: bool,
) -> Result<HandshakeState, snow::Error> {
    noise_with(params, client, initiates, None)
}

/// As [`noise`], with an optional fixed ephemeral private key for tests.
pub(super) fn noise_with(
    params: NoiseParams<'_>,
    client: u32,
    initiates: bool,
    fixed: Option<&[u8; 32]>,
) -> Result<HandshakeState, snow::Error> {
    let (pattern, kind) = match params {
        NoiseParams::Shared(_) => ("Noise_NNpsk0_25519_AESGCM_SHA256", HELLO),
        NoiseParams::Pair(..) => ("Noise_IKpsk2_25519_AESGCM_SHA256", PAIR_HELLO),
    };
    let mut prologue = b"cwnd-udt sealed".to_vec();
    prologue.extend_from_slice(&handshake_header(kind, client));
    let builder = Builder::new(pattern.parse()?).prologue(&prologue)?;
    let mut builder = match params {
        NoiseParams::Shared(psk) => builder.psk(0, psk)?,
        NoiseParams::Pair(own, _, psk) => {
            // Without a pre-shared key, all zeros, as in WireGuard.
            let psk = psk.map_or(&[0; 32], |key| &key.psk);
            builder.psk(2, psk)?.local_private_key(&own.private)?
        }
    };
    if let NoiseParams::Pair(_, Some(listener), _) = params {
        builder = builder.remote_public_key(&listener.0)?;
    }
    if let Some(private) = fixed {
        builder = builder.fixed_ephemeral_key_for_testing_only(private);
    }
    if initiates { builder.build_initiator() } else { builder.build_responder() }
}

/// The key that signs cookies for clients. `listener` is the listener's public key and is used with
/// key pairs only. The signature covers the client's request: an attacker who has not seen the
/// request cannot make a client return a wrong cookie.
pub(super) fn cookie_key(credentials: &Credentials, listener: &PublicKey) -> hmac::Key {
    match credentials {
        Credentials::Key(key) => key.cookies.clone(),
        Credentials::Pair { .. } => listener.derive_key(b"cookies"),
        // Must not depend on the code: otherwise the signature would allow an offline search for
        // the code.
        Credentials::Code(_) => hmac::Key::new(hmac::HMAC_SHA256, &derive(SALT, b"", b"cookies")),
    }
}

/// The MAC by which a hello proves knowledge of the listener's public key.
pub(super) fn hello_mac(key: &hmac::Key, hello: &[u8]) -> [u8; MAC_LEN] {
    let mut context = hmac::Context::with_key(key);
    context.update(&hello[..super::wire::HANDSHAKE_HEADER]);
    context.update(&hello[MESSAGE_OFFSET + MAC_LEN..]);
    let mut mac = [0; MAC_LEN];
    mac.copy_from_slice(&context.sign().as_ref()[..MAC_LEN]);
    mac
}

/// One end of a SPAKE2 key exchange with a one-time code.
pub(super) struct Exchange {
    spake: Spake2<Ed25519Group>,
    /// This end's message.
    pub point: [u8; POINT_LEN],
    client: bool,
}

impl Exchange {
    pub(super) fn new(code: &Code, client: bool) -> Self {
        let password = Password::new(code.as_bytes());
        let names = (Identity::new(b"cwnd client"), Identity::new(b"cwnd listener"));
        let (spake, message) = if client {
            Spake2::start_a(&password, &names.0, &names.1)
        } else {
            Spake2::start_b(&password, &names.0, &names.1)
        };
        let mut point = [0; POINT_LEN];
        // Skip the side's letter, which the crate prepends.
        point.copy_from_slice(&message[1..]);
        Exchange { spake, point, client }
    }

    /// Whether the bytes encode a point on the curve.
    pub(super) fn is_point(bytes: &[u8]) -> bool {
        bytes.len() == POINT_LEN && Ed25519Group::bytes_to_element(bytes).is_some()
    }

    /// Finishes the exchange with the peer's message and returns the pre-shared key for Noise. `id`
    /// is the client's. Both ends get the same key if and only if they have the same code.
    pub(super) fn finish(self, id: u32, peer_point: &[u8]) -> Option<Psk> {
        let own = self.point;
        let side = if self.client { b'B' } else { b'A' };
        let key = self.spake.finish(&[&[side], peer_point].concat()).ok()?;
        let (x, y) = if self.client { (&own[..], peer_point) } else { (peer_point, &own[..]) };
        let transcript = [b"noise psk", &handshake_header(HELLO, id)[..], x, y].concat();
        Some(Psk(derive(SALT, &key, &transcript)))
    }
}

opaque_debug!(Exchange);
