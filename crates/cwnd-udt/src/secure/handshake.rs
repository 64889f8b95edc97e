//! The Noise handshakes for each kind of credentials, and the keys derived in addition.

use super::code::Code;
use super::credentials::Credentials;
use super::key::{Key, derive};
use super::pair::{KeyPair, PublicKey};
use super::wire::{HELLO, MAC, MESSAGE, PAIR_HELLO, POINT, head};
use ring::hmac;
use snow::{Builder, HandshakeState};
use spake2::{Ed25519Group, Group, Identity, Password, Spake2};

/// The salt of keys derived for one-time codes.
const SALT: &[u8] = b"cwnd-udt code 1";

/// A secret for Noise.
#[derive(Clone)]
pub(super) struct Secret([u8; 32]);

/// Keeps the secret out of logs.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// The parameters of a handshake with this secret.
    pub(super) fn proof(&self) -> Proof<'_> {
        Proof::Shared(&self.0)
    }
}

/// The parameters of a handshake.
#[derive(Clone, Copy)]
pub(super) enum Proof<'a> {
    /// `NNpsk0`: a shared secret, from a key or an exchange.
    Shared(&'a [u8; 32]),
    /// `IKpsk2`: this end's pair, at the client the listener's public key, and an additional secret.
    Pair(&'a KeyPair, Option<&'a PublicKey>, Option<&'a Key>),
}

/// Begins the handshake of client id `client`.
pub(super) fn noise(
    proof: Proof<'_>,
    client: u32,
    initiates: bool,
) -> Result<HandshakeState, snow::Error> {
    noise_with(proof, client, initiates, None)
}

/// Begins the handshake; tests pass a fixed ephemeral private key.
pub(super) fn noise_with(
    proof: Proof<'_>,
    client: u32,
    initiates: bool,
    fixed: Option<&[u8; 32]>,
) -> Result<HandshakeState, snow::Error> {
    let (pattern, kind) = match proof {
        Proof::Shared(_) => ("Noise_NNpsk0_25519_AESGCM_SHA256", HELLO),
        Proof::Pair(..) => ("Noise_IKpsk2_25519_AESGCM_SHA256", PAIR_HELLO),
    };
    let mut prologue = b"cwnd-udt sealed".to_vec();
    prologue.extend_from_slice(&head(kind, client));
    let builder = Builder::new(pattern.parse()?).prologue(&prologue)?;
    let mut builder = match proof {
        Proof::Shared(psk) => builder.psk(0, psk)?,
        Proof::Pair(own, _, psk) => {
            // Without a secret it is all zeros, as in WireGuard.
            let psk = psk.map_or(&[0; 32], |key| &key.psk);
            builder.psk(2, psk)?.local_private_key(&own.private)?
        }
    };
    if let Proof::Pair(_, Some(listener), _) = proof {
        builder = builder.remote_public_key(&listener.0)?;
    }
    if let Some(private) = fixed {
        builder = builder.fixed_ephemeral_key_for_testing_only(private);
    }
    if initiates { builder.build_initiator() } else { builder.build_responder() }
}

/// The key that signs cookies to clients. `listener` is the listener's public key, with key pairs. The signature covers
/// the client's request: an attacker that has not seen the request cannot make a client return a wrong cookie.
pub(super) fn cookie_key(credentials: &Credentials, listener: &PublicKey) -> hmac::Key {
    match credentials {
        Credentials::Key(key) => key.cookies.clone(),
        Credentials::Pair { .. } => listener.known(b"cookies"),
        // This key must not depend on the code: the signature would allow an offline search for the code.
        Credentials::Code(_) => hmac::Key::new(hmac::HMAC_SHA256, &derive(SALT, b"", b"cookies")),
    }
}

/// The authentication code with which a hello proves knowledge of the listener's public key.
pub(super) fn hello_mac(key: &hmac::Key, hello: &[u8]) -> [u8; MAC] {
    let mut context = hmac::Context::with_key(key);
    context.update(&hello[..super::wire::HEAD]);
    context.update(&hello[MESSAGE + MAC..]);
    let mut mac = [0; MAC];
    mac.copy_from_slice(&context.sign().as_ref()[..MAC]);
    mac
}

/// One end of a key exchange with a one-time code.
pub(super) struct Exchange {
    spake: Spake2<Ed25519Group>,
    /// This end's message.
    pub point: [u8; POINT],
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
        let mut point = [0; POINT];
        // The crate prefixes the point with a letter for the side.
        point.copy_from_slice(&message[1..]);
        Exchange { spake, point, client }
    }

    /// Whether the bytes are a point with which an exchange can be finished.
    pub(super) fn is_point(bytes: &[u8]) -> bool {
        bytes.len() == POINT && Ed25519Group::bytes_to_element(bytes).is_some()
    }

    /// Finishes the exchange of client `id` with the peer's message and returns the secret for Noise. Both ends get the
    /// same secret if and only if they have the same code.
    pub(super) fn finish(self, id: u32, theirs: &[u8]) -> Option<Secret> {
        let own = self.point;
        let side = if self.client { b'B' } else { b'A' };
        let key = self.spake.finish(&[&[side], theirs].concat()).ok()?;
        let (x, y) = if self.client { (&own[..], theirs) } else { (theirs, &own[..]) };
        let transcript = [b"noise psk", &head(HELLO, id)[..], x, y].concat();
        Some(Secret(derive(SALT, &key, &transcript)))
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exchange(..)")
    }
}
