//! Noise's handshakes for each kind of credentials, and the keys beside them.

use super::code::Code;
use super::credentials::Credentials;
use super::key::{Key, derive};
use super::pair::{KeyPair, PublicKey};
use super::wire::{HELLO, MAC, MESSAGE, PAIR_HELLO, POINT, head};
use ring::hmac;
use snow::{Builder, HandshakeState};
use spake2::{Ed25519Group, Group, Identity, Password, Spake2};

/// The salt of what is derived for one-time codes.
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
    /// What a handshake is made with that has this secret.
    pub(super) fn proof(&self) -> Proof<'_> {
        Proof::Shared(&self.0)
    }
}

/// What a handshake is made with.
#[derive(Clone, Copy)]
pub(super) enum Proof<'a> {
    /// `NNpsk0`: a secret that both ends have, from a key or an exchange.
    Shared(&'a [u8; 32]),
    /// `IKpsk2`: this end's pair, the listener's public key at the client, and a secret besides.
    Pair(&'a KeyPair, Option<&'a PublicKey>, Option<&'a Key>),
}

/// Begins the handshake of the client `client`.
pub(super) fn noise(
    proof: Proof<'_>,
    client: u32,
    initiates: bool,
) -> Result<HandshakeState, snow::Error> {
    noise_with(proof, client, initiates, None)
}

/// The same, in tests with an ephemeral private key that is not random.
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
            // Without a secret the pattern takes zeros, as WireGuard does.
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

/// The key that cookies to clients are signed with. `listener` is a pair's listener. The signature covers the
/// client's question: who has not seen that cannot make a client show a wrong cookie.
pub(super) fn cookie_key(credentials: &Credentials, listener: &PublicKey) -> hmac::Key {
    match credentials {
        Credentials::Key(key) => key.cookies.clone(),
        Credentials::Pair { .. } => listener.known(b"cookies"),
        // Nothing here may depend on the code: it could be guessed from the signature, without end.
        Credentials::Code(_) => hmac::Key::new(hmac::HMAC_SHA256, &derive(SALT, b"", b"cookies")),
    }
}

/// The code by which a pair's hello shows that its client knows the listener's public key.
pub(super) fn hello_mac(key: &hmac::Key, hello: &[u8]) -> [u8; MAC] {
    let mut context = hmac::Context::with_key(key);
    context.update(&hello[..super::wire::HEAD]);
    context.update(&hello[MESSAGE + MAC..]);
    let mut mac = [0; MAC];
    mac.copy_from_slice(&context.sign().as_ref()[..MAC]);
    mac
}

/// One end of a key exchange by a code.
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
        // The crate puts a letter for the side before the point.
        point.copy_from_slice(&message[1..]);
        Exchange { spake, point, client }
    }

    /// Whether bytes are a point that an exchange can be finished with.
    pub(super) fn is_point(bytes: &[u8]) -> bool {
        bytes.len() == POINT && Ed25519Group::bytes_to_element(bytes).is_some()
    }

    /// The secret for Noise that comes out of the exchange of the client `id` with the peer's message. Both
    /// ends get the same if they have the same code; nothing else tells whether they do.
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
