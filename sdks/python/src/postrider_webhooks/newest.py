"""Telling what is new from what came late."""

import threading
from collections import OrderedDict
from datetime import datetime


class Newest:
    """Tells what is newer than everything before it from what came late, for each subject apart: a
    domain, a contact, …

    Use it when only the present state of an object counts, so that a late notification can be
    ignored. It forgets everything when the process ends; better still, keep the time with the
    object: ``UPDATE … WHERE changed_at <= timestamp``.

    At most ``max_subjects`` are remembered. Beyond that the one that has been quiet for longest is
    forgotten, and whatever comes next for it is accepted. Threads can share one.
    """

    def __init__(self, max_subjects: int = 100_000) -> None:
        if max_subjects < 1:
            raise ValueError("max_subjects must be at least 1")
        self._max_subjects = max_subjects
        self._lock = threading.Lock()
        # What was accepted last is at the end.
        self._newest: OrderedDict[str, datetime] = OrderedDict()

    def accept(self, subject: str, timestamp: datetime) -> bool:
        """Says whether nothing newer has been accepted for the subject, and remembers the timestamp
        if so.

        Two events of the same moment are both accepted.
        """
        with self._lock:
            known = self._newest.get(subject)
            if known is not None and timestamp < known:
                return False
            if known is None and len(self._newest) >= self._max_subjects:
                self._newest.popitem(last=False)
            self._newest[subject] = timestamp
            self._newest.move_to_end(subject)
            return True

    def __len__(self) -> int:
        """How many subjects are remembered."""
        with self._lock:
            return len(self._newest)
