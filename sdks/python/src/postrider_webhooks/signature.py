"""Making signatures: HMAC-SHA256 over ``{id}.{timestamp}.{body}``."""

import binascii
import hashlib
from collections.abc import Sequence
from typing import Union

from .notification import idempotency_key
from .secret import Secrets, decode_all

HEADER_ID = "webhook-id"
HEADER_TIMESTAMP = "webhook-timestamp"
HEADER_SIGNATURE = "webhook-signature"

Bytes = Union[bytes, bytearray, memoryview]

_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Signer:
    """Signs with one key. Never changes, so that threads can share it.

    HMAC begins by hashing two blocks that depend on nothing but the key (RFC 2104, section 4,
    suggests to keep what comes of that). With them kept, a signature costs less than
    ``hmac.digest``, which pays for the rest of a verification.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        # A secret is never longer than a block, so that no key needs to be shortened.
        block = key.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def sign(self, prefix: bytes, body: Bytes) -> bytes:
        """The signature with its version; ``prefix`` is what ``content_prefix`` gives."""
        # The body is not put behind the prefix first: that would copy it.
        inner = self._inner.copy()
        inner.update(prefix)
        inner.update(body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return b"v1," + binascii.b2a_base64(outer.digest(), newline=False)


def content_prefix(message_id: str, timestamp: str) -> bytes:
    """What is signed before the body.

    Half a character of UTF-16, which no header holds, must not become another id.
    """
    return f"{message_id}.{timestamp}.".encode("utf-8", "surrogatepass")


def sign(secrets: Secrets, message_id: str, timestamp: int, body: Bytes) -> str:
    """The value of the header ``webhook-signature``: one signature for each secret, with a blank
    between them.

    ``timestamp`` is in seconds since 1970. Raises ``SecretError`` for a bad secret or none, ``ValueError``
    for an id that holds a full stop, since receivers refuse it, and ``TypeError`` for a body that
    is no bytes.
    """
    if not message_id or "." in message_id:
        raise ValueError("an id is not empty and holds no full stop")
    body = as_bytes(body)
    prefix = content_prefix(message_id, str(timestamp))
    signatures: Sequence[bytes] = [Signer(key).sign(prefix, body) for key in decode_all(secrets)]
    return b" ".join(signatures).decode("ascii")


def signed_headers(
    secrets: Secrets, message_id: str, timestamp: int, body: Bytes
) -> dict[str, str]:
    """All headers that Postrider sends with a body, for tests of your endpoint.

    Raises what ``sign`` raises.
    """
    return {
        "content-type": "application/json",
        HEADER_ID: message_id,
        HEADER_TIMESTAMP: str(timestamp),
        HEADER_SIGNATURE: sign(secrets, message_id, timestamp, body),
        "event-id": message_id,
        "idempotency-key": idempotency_key(as_bytes(body)),
    }


def as_bytes(body: object) -> Bytes:
    """The body, if it is one that can be signed. Raises ``TypeError`` with what to do."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return body
    raise TypeError(
        f"the body must be bytes as they arrived, not {type(body).__name__}: request.get_data() in Flask,"
        " request.body in Django, await request.body() in Starlette and FastAPI"
    )
