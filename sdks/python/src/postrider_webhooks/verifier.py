"""Telling notifications that were signed with a known secret from everything else."""

import hmac
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Optional, Union

from .errors import (
    AmbiguousIdError,
    BadTimestampError,
    MissingHeaderError,
    NoMatchError,
    TooNewError,
    TooOldError,
)
from .headers import find
from .notification import Notification, read
from .secret import Secrets, decode_all
from .signature import (
    HEADER_ID,
    HEADER_SIGNATURE,
    HEADER_TIMESTAMP,
    Bytes,
    Signer,
    as_bytes,
    content_prefix,
)

#: How far ``webhook-timestamp`` may be away from now, unless a verifier is told otherwise.
DEFAULT_TOLERANCE = timedelta(minutes=5)

#: Headers as frameworks have them: any mapping, a WSGI environment, or pairs of a name and a value.
Headers = Union[Mapping[Any, Any], Iterable[tuple[Any, Any]]]

_LARGEST = 2**63 - 1
_DIGITS_OF_LARGEST = 19


class Verifier:
    """Verifies requests with one or more secrets. Never changes, so that threads can share one.

    ``secrets`` is a secret or several, each as it was shown: ``whsec_`` and base64. While a secret
    is being replaced, give the old and the new one. They are decoded here, once. ``tolerance`` is
    how far ``webhook-timestamp`` may be away from now, a ``timedelta`` or seconds; exactly as far
    is accepted. ``clock`` gives the seconds since 1970, for tests.

    Raises ``SecretError`` for a bad secret or none, and ``ValueError`` for a negative tolerance.
    """

    __slots__ = ("_clock", "_signers", "_tolerance")

    def __init__(
        self,
        secrets: Secrets,
        *,
        tolerance: Union[timedelta, float] = DEFAULT_TOLERANCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signers = [Signer(key) for key in decode_all(secrets)]
        seconds = tolerance.total_seconds() if isinstance(tolerance, timedelta) else tolerance
        if not seconds >= 0:
            raise ValueError("the tolerance must not be negative; five minutes are usual")
        self._tolerance = seconds
        self._clock = clock

    def verify(self, headers: Headers, body: Bytes) -> Notification:
        """Verifies a request and reads its body.

        ``headers`` is what your framework has: names are found in any case. ``body`` must be the
        bytes as they arrived; JSON that was parsed and written again is another message.

        Raises a ``VerificationError`` whose ``code`` says what is wrong, and ``TypeError`` for a
        body that is no bytes. Only a body whose signature is right is looked into.
        """
        message_id, attempted_at = self._accept(headers, body)
        return read(message_id, attempted_at, body)

    def verify_signature(self, headers: Headers, body: Bytes) -> None:
        """Verifies the signature alone and parses nothing; raises as ``verify`` does, except for
        ``BadBodyError``.
        """
        self._accept(headers, body)

    def _accept(self, headers: Headers, body: Bytes) -> tuple[str, int]:
        # An iterator would be at its end after the first header.
        if hasattr(headers, "__next__"):
            headers = list(headers)
        message_id = _present(headers, HEADER_ID)
        timestamp = _present(headers, HEADER_TIMESTAMP)
        signatures = _present(headers, HEADER_SIGNATURE)
        if "." in message_id:
            raise AmbiguousIdError()
        signed_at = _seconds(timestamp)
        self._check_time(signed_at)
        if type(body) is not bytes:
            body = as_bytes(body)
        prefix = content_prefix(message_id, timestamp)
        candidates = signatures.encode("utf-8", "surrogatepass").split(b" ")
        for signer in self._signers:
            expected = signer.sign(prefix, body)
            for candidate in candidates:
                # A signature has one spelling only: comparing texts is comparing what they stand
                # for.
                if hmac.compare_digest(expected, candidate):
                    return message_id, signed_at
        raise NoMatchError()

    def _check_time(self, signed_at: int) -> None:
        # In whole seconds, as the header has them. Both ends of the tolerance belong to it.
        age = int(self._clock()) - signed_at
        if age > self._tolerance:
            raise TooOldError()
        if -age > self._tolerance:
            raise TooNewError()


def _present(headers: Headers, name: str) -> str:
    value: Optional[str] = find(headers, name)
    if not value:
        raise MissingHeaderError(name)
    return value


def _seconds(text: str) -> int:
    """Takes only the one way to write a number, since the text is what was signed."""
    if not (text.isdigit() and text.isascii()) or len(text) > _DIGITS_OF_LARGEST:
        raise BadTimestampError()
    if text[0] == "0" and text != "0":
        raise BadTimestampError()
    seconds = int(text)
    if seconds > _LARGEST:
        raise BadTimestampError()
    return seconds
