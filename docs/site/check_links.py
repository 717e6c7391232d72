"""Checks the built site: every link within it leads to a file and an anchor that are there, and nothing is loaded from elsewhere.

Sphinx checks what it resolves itself. This looks at the result: links of the theme, of included pages and of raw HTML too.
usage: check_links.py FOLDER
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that make a browser load something.
LOADING = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("form", "action"),
}
# Of the portal, beside the site.
SERVED_ELSEWHERE = ("/openapi.json", "/openapi.html", "/.well-known/postrider-ips.json")


class Page(HTMLParser):
    """Where a page leads, and what can be led to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.anchors: set[str] = set()
        self.inline_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, "str | None"]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [
            (tag, name, given[name]) for name in ("href", "src", "action") if given.get(name)
        ]
        self.inline_script |= (
            tag == "script" and "src" not in given or any(name.startswith("on") for name in given)
        )


def faults(folder: Path) -> "list[str]":
    """What is wrong, a line each."""
    pages = {
        path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))
    }
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        if page.inline_script:
            found.append(
                f"{name}: has a script within the page, which the portal's Content-Security-Policy stops"
            )
        for tag, attribute, link in page.links:
            fault = judge(folder, pages, path, link, (tag, attribute) in LOADING)
            if fault:
                found.append(f"{name}: <{tag} {attribute}={link!r}> {fault}")
    return found


def judge(
    folder: Path, pages: "dict[Path, Page]", path: Path, link: str, loads: bool
) -> "str | None":
    """What is wrong with one link."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "is loaded from elsewhere" if loads and parts.scheme != "data" else None
    if parts.path in SERVED_ELSEWHERE:
        return None
    if parts.path.startswith("/"):
        return "is absolute, so it breaks where the site is not at the root"
    target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(folder):
        return "leads out of the site"
    if not target.is_file():
        return "leads to no file"
    anchor = unquote(parts.fragment)
    if (
        anchor
        and target in pages
        and anchor not in pages[target].anchors
        and anchor != "furo-main-content"
    ):
        return "leads to no anchor of that page"
    return None


def main(folder: Path) -> int:
    """Prints the faults; the exit status says whether there were any."""
    found = faults(folder)
    for fault in found:
        print(fault, file=sys.stderr)
    count = len(list(folder.rglob("*.html")))
    if not count:
        print(f"{folder} holds no page", file=sys.stderr)
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
