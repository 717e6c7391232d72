"""Words of the product as Markdown."""

import re
from collections.abc import Iterable

KEY = re.compile(r"\b(?:reseller|portal)(?:\.[a-z][A-Za-z]*)+\b")
SPECIAL = re.compile(r"([\\*_\[\]<>{}#|])")


class Prose:
    """Writes plain text as Markdown that shows exactly this text. Keys of the configuration, which are the
    operators' affair, are shown as their defaults."""

    def __init__(self, config: dict[str, object]) -> None:
        self.config = config

    def __call__(self, text: str) -> str:
        """`text` in one line; what stands between backticks stays code."""
        parts = " ".join(text.split()).split("`")
        return "`".join(part if turn % 2 else self._plain(part) for turn, part in enumerate(parts))

    def _plain(self, text: str) -> str:
        written, end = [], 0
        for found in KEY.finditer(text):
            if found.group() in self.config:
                written.append(SPECIAL.sub(r"\\\1", text[end : found.start()]))
                setting = _setting(found.group(), self.config[found.group()])
                # Its comma closes what goes on; the sentence may end here.
                written.append(setting if text.startswith(" ", found.end()) else setting.removesuffix(","))
                end = found.end()
        return "".join(written) + SPECIAL.sub(r"\\\1", text[end:])


# What a key ends with says what its number counts.
UNITS = {"InDays": " days", "InHours": " hours", "InSeconds": " seconds", "PerSecond": " a second", "Bytes": " bytes"}


def _setting(key: str, value: object) -> str:
    """A setting of the operators as a reseller reads it: what it is unless they have changed it."""
    if isinstance(value, bool):
        return f"the operators' setting, {'on' if value else 'off'} by default,"
    unit = next((unit for end, unit in UNITS.items() if key.lower().endswith(end.lower())), "")
    number = f"{value:,}" if isinstance(value, int) else f"{value}"
    return f"{number}{unit} (by default)"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A table, and an empty line after it; nothing when there are no rows."""
    head, rows = list(head), [list(row) for row in rows]
    if not rows:
        return []
    lines = [head, ["---"] * len(head), *rows]
    return [*("| " + " | ".join(line) + " |" for line in lines), ""]


def badge(method: str) -> str:
    """An HTTP method in its colour; the word itself says the same without one."""
    return f"[{method}]{{.method .{method.lower()}}}"


def slug(name: str) -> str:
    """createSubscription gives create-subscription."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.replace(" ", "-")).lower()
