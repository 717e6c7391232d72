"""Signing secrets: ``whsec_`` and the base64 of 24 to 64 bytes."""

import base64
import binascii
from collections.abc import Iterable
from typing import Union

from .errors import SecretError

PREFIX = "whsec_"
#: The fewest bytes of a secret: 192 bits, as the specification wants it.
MIN_BYTES = 24
#: The most bytes of a secret: HMAC would shorten one that is longer than the block of the hash.
MAX_BYTES = 64

Secrets = Union[str, Iterable[str]]


def decode(secret: str) -> bytes:
    """The key that a secret stands for; blanks around it are no part of it.

    Raises ``SecretError``.
    """
    text = secret.strip()
    if not text.startswith(PREFIX):
        raise SecretError("prefix", f"a signing secret begins with {PREFIX}; copy all of it")
    encoded = text[len(PREFIX) :]
    key = _decode_base64(encoded)
    if len(key) < MIN_BYTES:
        raise SecretError(
            "too_short",
            f"a signing secret has at least {MIN_BYTES} bytes, this one has {len(key)}; copy all of it",
        )
    if len(key) > MAX_BYTES:
        raise SecretError(
            "too_long",
            f"a signing secret has at most {MAX_BYTES} bytes, this one has {len(key)}; are these two?",
        )
    return key


def decode_all(secrets: Secrets) -> list[bytes]:
    """The keys of one or several secrets, in their order. Raises ``SecretError``."""
    if isinstance(secrets, str):
        return [decode(secrets)]
    keys = [decode(secret) for secret in secrets]
    if not keys:
        # Every request would be refused, which looks like a fault of their sender.
        raise SecretError(
            "none",
            "no signing secret was given; pass the one that making the subscription showed",
        )
    return keys


def _decode_base64(encoded: str) -> bytes:
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = None
    # The decoder takes bits behind the last byte and padding that is not needed: two texts would be
    # one secret.
    if key is None or base64.b64encode(key).decode() != encoded:
        # Raised here, so that the decoder's error, which may quote, is not its cause.
        raise SecretError(
            "base64", f"what follows {PREFIX} is not base64 (standard alphabet, with padding)"
        )
    return key
