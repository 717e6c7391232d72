"""Processing a notification once, although it may arrive several times."""

import inspect
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Optional, Protocol

from .notification import Notification

#: How long a store should remember: a replay reaches back 30 days, and retries come on top of that.
DEFAULT_SEEN_AGE = timedelta(days=35)

_log = logging.getLogger("postrider_webhooks")


class Store(Protocol):
    """Remembers the keys of notifications. Write one for what you have: two methods."""

    def add(self, key: str) -> bool:
        """Remembers a key and says whether it is new.

        Atomic: of several calls with one key, exactly one gets ``True``.
        """

    def remove(self, key: str) -> None:
        """Forgets a key; one that is not there is no error."""


def scoped_key(scope: str, notification: Notification) -> str:
    """The key of a notification within a scope, such as the name of a subscription.

    Two subscriptions that select the same event get it with the same id: give each its scope if
    both are to count. Without a scope the key is the id.
    """
    # An id holds no full stop, so that it stays clear where the scope ends.
    return f"{scope}.{notification.id}" if scope else notification.id


def process_once(
    store: Store,
    notification: Notification,
    handler: Callable[[Notification], object],
    *,
    key: Optional[str] = None,
) -> bool:
    """Calls the handler unless the notification was seen before; says whether it did. Answer 200
    either way.

    The key, ``notification.id`` unless given, is added first. When the handler raises, or is
    interrupted, the key is removed again and the exception goes on: answer 500, and the
    notification comes again. Raises ``TypeError`` for a handler that would have to be awaited.

    While the handler is at work the key counts as seen. A repetition that comes meanwhile is
    answered 200, and nothing comes after it when the handler fails then; and a process that is
    killed leaves the key behind. Where a notification must not be lost like this, use an
    ``SqlStore`` on the connection that the handler writes with, and commit afterwards: a repetition
    waits until that transaction has ended.
    """
    key = notification.id if key is None else key
    if not store.add(key):
        return False
    try:
        _refuse_coroutine(handler(notification))
    except BaseException:
        _forget(store, key)
        raise
    return True


def _refuse_coroutine(result: object) -> None:
    """No caller would await it: the notification would count as processed and never be."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(
            "the handler must not be an async function; in one, call"
            " await asyncio.to_thread(process_once, store, notification, handler)"
            " with a handler that is none"
        )


def _forget(store: Store, key: str) -> None:
    """What the handler raised counts for more than what is raised here, such as by a transaction
    that is beyond use.
    """
    try:
        store.remove(key)
    except Exception:
        _log.warning(
            "a notification failed and its key could not be removed; roll back, or its retry counts as a repetition",
            exc_info=True,
        )
