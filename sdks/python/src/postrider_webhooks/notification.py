"""What the body of a notification says.

Only the envelope is judged here: whether the data has the attributes that the catalogue lists for
its event type is the business of their users. Members that are not known are passed over,
since more may be added.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, NoReturn, Optional, Union

from .errors import BadBodyError, BadTimestampError

#: The challenge to a new or changed endpoint; see ``Notification.challenge``.
TYPE_VERIFICATION = "postrider.verification"

# RFC 3339 as every language reads it. `datetime.fromisoformat` takes less of it before Python 3.11
# and more since.
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Notification:
    """A request that was signed with one of your secrets."""

    id: str
    """The event: the same in every attempt, in every resend, and to each of your subscriptions."""
    type: str
    """The event type, such as ``domain.created``."""
    timestamp: datetime
    """When the event happened, in UTC. Notifications do not arrive in this order."""
    data: dict[str, Any]
    """What happened, as it was parsed."""
    idempotency_key: str
    """SHA-256 over the body, in hexadecimal.

    Computed here: the header of this name is not signed.
    """
    attempted_at: datetime
    """When this attempt began, in UTC and whole seconds. Another one in each attempt."""

    @property
    def challenge(self) -> Optional[str]:
        """What to answer a challenge with, as the whole body and status 200; ``None`` for
        everything else.
        """
        if self.type != TYPE_VERIFICATION:
            return None
        challenge = self.data.get("challenge")
        return challenge if isinstance(challenge, str) and challenge else None


def idempotency_key(body: Union[bytes, bytearray, memoryview]) -> str:
    """The value of the header ``idempotency-key``: SHA-256 over the exact bytes of the body, in
    hexadecimal.
    """
    return hashlib.sha256(body).hexdigest()


def read(
    message_id: str, attempted_at: int, body: Union[bytes, bytearray, memoryview]
) -> Notification:
    """Reads a body that arrived with these headers and whose signature was right.

    Raises ``BadBodyError``.
    """
    members = _parse(body)
    named = _text(members, "id")
    event_type = _text(members, "type")
    timestamp = _time(members)
    data = members.get("data")
    if not isinstance(data, dict):
        raise BadBodyError('the member "data" of the body is missing or is not an object')
    if named != message_id:
        raise BadBodyError('the member "id" of the body is not what the header webhook-id says')
    return Notification(
        id=named,
        type=event_type,
        timestamp=timestamp,
        data=data,
        idempotency_key=idempotency_key(body),
        attempted_at=_attempt_time(attempted_at),
    )


def _parse(body: Union[bytes, bytearray, memoryview]) -> dict[str, Any]:
    try:
        # Decoded here: the parser would guess, and take UTF-16 as well.
        text = str(body, "utf-8")
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
        is_json = False
    else:
        is_json = True
    # Raised outside, so that the parser's error, which holds the body, is not its cause.
    if not is_json:
        raise BadBodyError("the body is not JSON in UTF-8")
    if not isinstance(value, dict):
        raise BadBodyError("the body is JSON, but no object")
    return value


def _refuse_constant(_: str) -> NoReturn:
    """``NaN`` and ``Infinity``, which the parser takes and JSON does not have."""
    raise ValueError


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise BadBodyError(f'the member "{name}" of the body is missing or is not a text')
    return value


def _time(members: Mapping[str, Any]) -> datetime:
    value = members.get("timestamp")
    time = _read_time(value) if isinstance(value, str) else None
    if time is None:
        raise BadBodyError(
            'the member "timestamp" of the body is missing or is not a time as RFC 3339 has it'
        )
    return time


def _read_time(text: str) -> Optional[datetime]:
    """Cuts off what is below a microsecond, which Python has no room for."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    *calendar, fraction, sign, hours, minutes = found.groups()
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    year, month, day, hour, minute, second = map(int, calendar)
    microsecond = int((fraction or "").ljust(6, "0")[:6])
    try:
        local = datetime(year, month, day, hour, minute, second, microsecond, timezone.utc)
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        return None


def _attempt_time(seconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise BadTimestampError() from None
