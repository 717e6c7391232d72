"""Holding notifications back for a while, to give them out in order."""

import threading
from bisect import insort
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from .notification import Notification


class ReordererFull(Exception):
    """No more notifications can wait. Answer 503, and this one comes again."""


@dataclass(order=True)
class _Waiting:
    timestamp: datetime
    id: str
    due: float = field(compare=False)
    notification: Notification = field(compare=False)


class Reorderer:
    """Holds notifications back for ``delay`` and gives them out in the order in which things
    happened.

    What comes later than the delay still comes out of order; a retry can be minutes late, so prefer
    ``Newest`` wherever it will do. At most ``max_waiting`` notifications wait. They are lost when
    the process ends: store notifications before you answer 200, and push what is stored. Threads
    can share one.

    ``now`` is in seconds of any beginning, always the same: ``time.monotonic()`` will do.
    """

    def __init__(self, delay: timedelta, max_waiting: int = 10_000) -> None:
        if delay < timedelta(0):
            raise ValueError("the delay must not be negative")
        if max_waiting < 1:
            raise ValueError("max_waiting must be at least 1")
        self._delay = delay.total_seconds()
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []

    def push(self, notification: Notification, now: float) -> None:
        """Takes a notification that came now. Raises ``ReordererFull``."""
        with self._lock:
            if len(self._waiting) >= self._max_waiting:
                raise ReordererFull(
                    f"{self._max_waiting} notifications wait; call ready() more often, or answer 503"
                )
            insort(
                self._waiting,
                _Waiting(notification.timestamp, notification.id, now + self._delay, notification),
            )

    def ready(self, now: float) -> list[Notification]:
        """Gives out what has waited for the delay, ordered by timestamp and then id.

        What happened before such a notification comes along with it, however short its wait: to
        hold it back would put it out of order for certain.
        """
        with self._lock:
            count = len(self._waiting)
            while count > 0 and self._waiting[count - 1].due > now:
                count -= 1
            return self._take(count)

    def drain(self) -> list[Notification]:
        """Gives out everything, in the same order, for instance before the process ends."""
        with self._lock:
            return self._take(len(self._waiting))

    def __len__(self) -> int:
        """How many wait."""
        with self._lock:
            return len(self._waiting)

    def _take(self, count: int) -> list[Notification]:
        taken = [entry.notification for entry in self._waiting[:count]]
        del self._waiting[:count]
        return taken
