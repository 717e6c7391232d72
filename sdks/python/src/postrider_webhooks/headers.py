"""Finding a header in whatever a framework has for headers.

Those of Flask, Django, Starlette, aiohttp and ``http.server`` disregard case themselves. Plain
dictionaries, lists of pairs, bytes as ASGI has them, and the environment of WSGI are searched.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Optional


def find(headers: Any, name: str) -> Optional[str]:
    """The value of a header, whose name is given in lower case; the first one of several.

    Raises ``TypeError`` for what cannot be headers.
    """
    lookup = getattr(headers, "get", None)
    if lookup is not None:
        value = lookup(name)
        if type(value) is str:
            return value
        if value is not None:
            return _text(value, name)
    return _search(headers, name)


def _search(headers: Any, name: str) -> Optional[str]:
    # How WSGI, and Django's request.META, spell it.
    wanted = {name, "http_" + name.replace("-", "_")}
    for known, value in _pairs(headers):
        if isinstance(known, (bytes, bytearray)):
            known = known.decode("latin-1")
        if isinstance(known, str) and known.lower() in wanted:
            return _text(value, name)
    return None


def _pairs(headers: Any) -> Iterable[tuple[Any, Any]]:
    items = getattr(headers, "items", None)
    if callable(items):
        return items()  # type: ignore[no-any-return]
    if isinstance(headers, Iterable) and not isinstance(headers, (str, bytes, Mapping)):
        return headers
    raise TypeError(
        f"headers must be a mapping or pairs of a name and a value, not {type(headers).__name__}"
    )


def _text(value: Any, name: str) -> Optional[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return value.decode("latin-1")
    # Some event formats give a list for each name. How many are in it is up to the sender of the
    # request, so that it is no error of the caller.
    if isinstance(value, (list, tuple)):
        return _text(value[0], name) if value else None
    raise TypeError(f"the header {name} must be a text, not {type(value).__name__}")
