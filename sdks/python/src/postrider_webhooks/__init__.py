"""Receive Postrider's notifications.

Verify the signature of a request, read its body, process it once, and keep events in order:

>>> from postrider_webhooks import Verifier, signed_headers
>>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
>>> body = b'{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z","data":{}}'
>>> headers = signed_headers(secret, "evt_1", 1753000000, body)
>>> notification = Verifier(secret, clock=lambda: 1753000002).verify(headers, body)
>>> notification.type
'domain.created'

Signatures are those of Standard Webhooks, symmetric, version ``v1``. The package does no I/O of its
own and knows no web framework: it takes whatever your framework has for headers.
"""

from .errors import (
    AmbiguousIdError,
    BadBodyError,
    BadTimestampError,
    MalformedHeaderError,
    MissingHeaderError,
    NoMatchError,
    SecretError,
    TooNewError,
    TooOldError,
    VerificationError,
)
from .memory_store import MemoryStore
from .newest import Newest
from .notification import Notification, idempotency_key
from .once import DEFAULT_SEEN_AGE, Store, process_once, scoped_key
from .reorderer import Reorderer, ReordererFull
from .signature import sign, signed_headers
from .sql_store import SqlStore
from .verifier import DEFAULT_TOLERANCE, Verifier

__all__ = [
    "DEFAULT_SEEN_AGE",
    "DEFAULT_TOLERANCE",
    "AmbiguousIdError",
    "BadBodyError",
    "BadTimestampError",
    "MalformedHeaderError",
    "MemoryStore",
    "MissingHeaderError",
    "Newest",
    "NoMatchError",
    "Notification",
    "Reorderer",
    "ReordererFull",
    "SecretError",
    "SqlStore",
    "Store",
    "TooNewError",
    "TooOldError",
    "VerificationError",
    "Verifier",
    "idempotency_key",
    "process_once",
    "scoped_key",
    "sign",
    "signed_headers",
]
