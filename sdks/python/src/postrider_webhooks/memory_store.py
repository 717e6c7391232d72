"""Seen keys in the memory of one process."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta

from .once import DEFAULT_SEEN_AGE


class MemoryStore:
    """Remembers keys until the process ends: for tests, and for handlers that do no harm when they
    run twice.

    At most ``max_entries`` keys, then the oldest is forgotten; and none for longer than
    ``max_age``. Threads can share one; processes cannot, so with several workers use an
    ``SqlStore``. ``clock`` gives seconds of any beginning.
    """

    def __init__(
        self,
        max_entries: int = 100_000,
        max_age: timedelta = DEFAULT_SEEN_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_entries < 1:
            raise ValueError("max_entries must be at least 1")
        if max_age <= timedelta(0):
            raise ValueError("max_age must be more than nothing; 35 days are usual")
        self._max_entries = max_entries
        self._max_age = max_age.total_seconds()
        self._clock = clock
        self._lock = threading.Lock()
        # When each key was added, the oldest first.
        self._seen: OrderedDict[str, float] = OrderedDict()

    def add(self, key: str) -> bool:
        """Remembers a key and says whether it is new."""
        with self._lock:
            now = self._clock()
            self._forget_until(now - self._max_age)
            if key in self._seen:
                return False
            if len(self._seen) >= self._max_entries:
                self._seen.popitem(last=False)
            self._seen[key] = now
            return True

    def remove(self, key: str) -> None:
        """Forgets a key; one that is not there is no error."""
        with self._lock:
            self._seen.pop(key, None)

    def __len__(self) -> int:
        """How many keys are remembered."""
        with self._lock:
            return len(self._seen)

    def _forget_until(self, oldest: float) -> None:
        while self._seen:
            key, added = next(iter(self._seen.items()))
            if added >= oldest:
                return
            del self._seen[key]
