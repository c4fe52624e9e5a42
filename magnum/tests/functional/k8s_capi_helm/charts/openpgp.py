# SPDX-License-Identifier: Apache-2.0
"""A throw-away OpenPGP key, as a keyring that Helm reads (RFC 4880), without GnuPG."""

from __future__ import annotations

import hashlib
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

BITS = 2048
#: 1 January 2026: the key is older than everything that it signs.
CREATED = 1767225600

RSA, SHA256 = 1, 8
SECRET_KEY, USER_ID, SIGNATURE = 5, 13, 2
POSITIVE_CERTIFICATION = 0x13
CREATION_TIME, ISSUER, KEY_FLAGS = 2, 16, 27
MAY_CERTIFY_AND_SIGN = 0x03


def keyring(name: str) -> bytes:
    """A new key of somebody, with its secret part and without a passphrase."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
    numbers = key.private_numbers()
    public = struct.pack(">BIB", 4, CREATED, RSA)
    public += _number(numbers.public_numbers.n) + _number(numbers.public_numbers.e)
    p, q = sorted((numbers.p, numbers.q))
    parts = b"".join(map(_number, (numbers.d, p, q, pow(p, -1, q))))
    secret = public + b"\0" + parts + struct.pack(">H", sum(parts) % 65536)
    user = name.encode()
    return (
        _packet(SECRET_KEY, secret)
        + _packet(USER_ID, user)
        + _packet(SIGNATURE, _certification(key, public, user))
    )


def _certification(key: rsa.RSAPrivateKey, public: bytes, user: bytes) -> bytes:
    """That the key is the user's, said by the key itself."""
    framed = b"\x99" + struct.pack(">H", len(public)) + public
    identity = hashlib.sha1(framed, usedforsecurity=False).digest()[-8:]
    said = _said(CREATION_TIME, struct.pack(">I", CREATED))
    said += _said(KEY_FLAGS, bytes([MAY_CERTIFY_AND_SIGN]))
    head = struct.pack(">BBBBH", 4, POSITIVE_CERTIFICATION, RSA, SHA256, len(said)) + said
    signed = framed + b"\xb4" + struct.pack(">I", len(user)) + user
    signed += head + b"\x04\xff" + struct.pack(">I", len(head))
    signature = int.from_bytes(key.sign(signed, padding.PKCS1v15(), hashes.SHA256()), "big")
    unsigned = _said(ISSUER, identity)
    start = hashlib.sha256(signed).digest()[:2]
    return head + struct.pack(">H", len(unsigned)) + unsigned + start + _number(signature)


def _said(kind: int, body: bytes) -> bytes:
    return bytes([len(body) + 1, kind]) + body


def _number(value: int) -> bytes:
    return struct.pack(">H", value.bit_length()) + value.to_bytes((value.bit_length() + 7) // 8)


def _packet(kind: int, body: bytes) -> bytes:
    return bytes([0xC0 | kind, 0xFF]) + struct.pack(">I", len(body)) + body
