"""A message that is in order, and the file of vectors."""

import base64
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from postrider_webhooks import Notification, Verifier, signed_headers

ROOT = Path(__file__).resolve().parents[1]
VECTORS: dict[str, Any] = json.loads((ROOT.parent / "vectors.json").read_text("utf-8"))

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
NOW = 1753000000
BODY = (
    b'{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z",'
    b'"data":{"domain":"example.org"}}'
)


def verifier(*secrets: str, now: float = NOW) -> Verifier:
    """One with a clock that stands still."""
    return Verifier(secrets or (SECRET,), clock=lambda: now)


def headers() -> dict[str, str]:
    """Of ``BODY``, signed with ``SECRET``."""
    return signed_headers(SECRET, "evt_1", NOW, BODY)


def body_of(vector: dict[str, Any]) -> bytes:
    """The bytes of a vector's body."""
    if "bodyBase64" in vector:
        return base64.b64decode(vector["bodyBase64"], validate=True)
    body: str = vector["body"]
    return body.encode("utf-8")


def notification(identifier: str, second: int = 0) -> Notification:
    """One of many that differ in id and time."""
    return Notification(
        id=identifier,
        type="domain.created",
        timestamp=datetime(2026, 11, 21, 12, 0, second, tzinfo=timezone.utc),
        data={},
        idempotency_key="",
        attempted_at=datetime(2026, 11, 21, 12, 1, tzinfo=timezone.utc),
    )
