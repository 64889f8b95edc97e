# ruff: noqa: INP001
"""Test vectors for `src/secure/tests.rs`, computed without this crate.

Implements Noise_NNpsk0_25519_AESGCM_SHA256 and Noise_IKpsk2_25519_AESGCM_SHA256 (revision 34) and
the protocol in docs/udt.md under "Credentials" with the Python package `cryptography`. Prints the
datagrams in hexadecimal.
"""

import hashlib
import hmac

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

FILE = bytes(range(32))
CLIENT, SERVER = 0x01020304, 0x0A0B0C0D
PRIVATE = bytes([0x11] * 32), bytes([0x22] * 32)
# The static private keys of the client and the listener.
STATIC = bytes([0x33] * 32), bytes([0x44] * 32)
PLACE = b"here"
SHARED = b"Noise_NNpsk0_25519_AESGCM_SHA256"
PAIR = b"Noise_IKpsk2_25519_AESGCM_SHA256"


def expand(salt: bytes, secret: bytes, count: int) -> list[bytes]:
    """Noise's HKDF: `count` outputs of 32 bytes."""
    extracted = hmac.digest(salt, secret, "sha256")
    outputs, last = [], b""
    for number in range(1, count + 1):
        last = hmac.digest(extracted, last + bytes([number]), "sha256")
        outputs.append(last)
    return outputs


def aes(key: bytes, counter: int, text: bytes, extra: bytes) -> bytes:
    """AES-256-GCM with Noise's nonce."""
    return AESGCM(key).encrypt(bytes(4) + counter.to_bytes(8, "big"), text, extra)


class Symmetric:
    """Noise's symmetric state (section 5.2), sending only."""

    def __init__(self, name: bytes, prologue: bytes) -> None:
        self.h = self.ck = name  # not hashed, because it has 32 bytes
        self.k, self.n = b"", 0
        self.mix_hash(prologue)

    def mix_hash(self, data: bytes) -> None:
        """`MixHash`."""
        self.h = hashlib.sha256(self.h + data).digest()

    def mix_key(self, data: bytes) -> None:
        """`MixKey`."""
        self.ck, self.k = expand(self.ck, data, 2)
        self.n = 0

    def mix_key_and_hash(self, data: bytes) -> None:
        """`MixKeyAndHash`."""
        self.ck, temporary, self.k = expand(self.ck, data, 3)
        self.mix_hash(temporary)
        self.n = 0

    def public(self, key: bytes) -> bytes:
        """Process the token `e` of a handshake with a pre-shared key."""
        self.mix_hash(key)
        self.mix_key(key)
        return key

    def encrypt(self, text: bytes) -> bytes:
        """`EncryptAndHash`."""
        sealed = aes(self.k, self.n, text, self.h)
        self.n += 1
        self.mix_hash(sealed)
        return sealed


def derive(salt: bytes, secret: bytes, purpose: bytes) -> bytes:
    """Derive the key for one purpose."""
    return HKDF(hashes.SHA256(), 32, salt, purpose).derive(secret)


def head(kind: int) -> bytes:
    """Make the header of a handshake datagram."""
    return bytes([kind, 2, 0, 0]) + CLIENT.to_bytes(4, "big")


def private(secret: bytes) -> tuple[X25519PrivateKey, bytes]:
    """Load a private key and compute the bytes of its public key."""
    key = X25519PrivateKey.from_private_bytes(secret)
    return key, key.public_key().public_bytes_raw()


def agree(key: X25519PrivateKey, public: bytes) -> bytes:
    """Compute Noise's `DH`."""
    return key.exchange(X25519PublicKey.from_public_bytes(public))


def make_token(resets: bytes) -> bytes:
    """Make the token of the session's resets."""
    here = hmac.digest(resets, PLACE, "sha256")
    return hmac.digest(here, SERVER.to_bytes(4, "big"), "sha256")[:12]


def data(key: bytes, counter: int, to: int, text: bytes) -> bytes:
    """Make a sealed datagram."""
    header = b"\xf4" + counter.to_bytes(7, "big") + to.to_bytes(4, "big")
    return header + aes(key, counter, text, header)


def shared() -> dict[str, bytes]:
    """Make the datagrams of a session with a shared key."""
    salt = b"cwnd-udt key 1"
    (near, near_public), (_, far_public) = map(private, PRIVATE)
    state = Symmetric(SHARED, b"cwnd-udt sealed" + head(0xF1))
    state.mix_key_and_hash(derive(salt, FILE, b"noise psk"))
    question = state.public(near_public) + state.encrypt(b"")
    answer = head(0xF3) + state.public(far_public)
    state.mix_key(agree(near, far_public))
    token = make_token(derive(salt, FILE, b"resets"))
    answer += state.encrypt(SERVER.to_bytes(4, "big") + token)
    keys = expand(state.ck, b"", 2)
    rekeyed = aes(keys[0], 2**64 - 1, bytes(32), b"")[:32]
    there = data(keys[0], 0, SERVER, b"there")
    reset = b"\xf8" + there[1:12]
    return {
        "HELLO": head(0xF1) + bytes(16) + question,
        "ANSWER": answer,
        "THERE": there,
        "BACK": data(keys[1], 0, CLIENT, b"back"),
        "REKEYED": data(rekeyed, 1 << 28, SERVER, b"there"),
        "RESET": reset + hmac.digest(token, reset, "sha256")[:16],
    }


def pair() -> dict[str, bytes]:
    """Make the datagrams of a session with key pairs and no pre-shared key."""
    salt = b"cwnd-udt pair 1"
    (near, near_public), (far, far_public) = map(private, PRIVATE)
    (client, client_public), (_, listener_public) = map(private, STATIC)
    state = Symmetric(PAIR, b"cwnd-udt sealed" + head(0xF7))
    state.mix_hash(listener_public)
    question = state.public(near_public)
    state.mix_key(agree(near, listener_public))
    question += state.encrypt(client_public)
    state.mix_key(agree(client, listener_public))
    question += state.encrypt(b"")
    known = derive(salt, listener_public, b"mac1")
    mac = hmac.digest(known, head(0xF7) + question, "sha256")[:16]
    answer = head(0xF3) + state.public(far_public)
    state.mix_key(agree(near, far_public))
    state.mix_key(agree(far, client_public))
    state.mix_key_and_hash(bytes(32))
    token = make_token(derive(salt, STATIC[1], b"resets"))
    answer += state.encrypt(SERVER.to_bytes(4, "big") + token)
    keys = expand(state.ck, b"", 2)
    return {
        "PAIR_HELLO": head(0xF7) + bytes(16) + mac + question,
        "PAIR_ANSWER": answer,
        "PAIR_THERE": data(keys[0], 0, SERVER, b"there"),
    }


def main() -> None:
    """Print the test vectors."""
    for name, datagram in (shared() | pair()).items():
        print(name, datagram.hex())  # noqa: T201


main()
