# ruff: noqa: INP001
"""The known answers in `src/secure/tests.rs`, made without this crate.

Noise_NNpsk0_25519_AESGCM_SHA256 (revision 34 of the specification) and what docs/udt.md says under
"With a key", by the Python package `cryptography`. Prints the datagrams in hexadecimal.
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
NAME = b"Noise_NNpsk0_25519_AESGCM_SHA256"


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

    def __init__(self, prologue: bytes) -> None:
        self.h = self.ck = NAME  # 32 bytes: as it is
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
        """Do the token `e` of a handshake with a shared key."""
        self.mix_hash(key)
        self.mix_key(key)
        return key

    def encrypt(self, text: bytes) -> bytes:
        """`EncryptAndHash`."""
        sealed = aes(self.k, self.n, text, self.h)
        self.n += 1
        self.mix_hash(sealed)
        return sealed


def derive(purpose: bytes) -> bytes:
    """Make the key of one purpose from the key file."""
    return HKDF(hashes.SHA256(), 32, b"cwnd-udt key 1", purpose).derive(FILE)


def main() -> None:
    """Print the known answers."""
    near, far = map(X25519PrivateKey.from_private_bytes, PRIVATE)
    publics = [key.public_key().public_bytes_raw() for key in (near, far)]
    hello = bytes([0xF1, 1, 0, 0]) + CLIENT.to_bytes(4, "big")
    state = Symmetric(b"cwnd-udt sealed" + hello)
    state.mix_key_and_hash(derive(b"noise psk"))
    question = state.public(publics[0]) + state.encrypt(b"")
    answer = bytes([0xF3, 1, 0, 0]) + CLIENT.to_bytes(4, "big") + state.public(publics[1])
    state.mix_key(near.exchange(X25519PublicKey.from_public_bytes(publics[1])))
    answer += state.encrypt(SERVER.to_bytes(4, "big"))
    keys = expand(state.ck, b"", 2)

    def data(key: bytes, counter: int, to: int, text: bytes) -> bytes:
        header = b"\xf4" + counter.to_bytes(7, "big") + to.to_bytes(4, "big")
        return header + aes(key, counter, text, header)

    rekeyed = aes(keys[0], 2**64 - 1, bytes(32), b"")[:32]
    for name, datagram in {
        "HELLO": hello + bytes(16) + question,
        "ANSWER": answer,
        "THERE": data(keys[0], 0, SERVER, b"there"),
        "BACK": data(keys[1], 0, CLIENT, b"back"),
        "REKEYED": data(rekeyed, 1 << 28, SERVER, b"there"),
    }.items():
        print(name, datagram.hex())  # noqa: T201


main()
