"""The notification types, a page for each family, from the catalogue that comes with the product.

Each type has its attributes, and the whole body of a notification for the example and for every variant. A body is what
an endpoint gets, save for line breaks; its members stand in the order of the attributes.

What it deliberately does not do: sign. Needs nothing but Python's own library, so that the pages can be made and compared
without the generator of the site.
usage, in docs/site: python3 -m generate.event_types [--check] [FOLDER]
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from .markdown import Prose, table

SITE = Path(__file__).resolve().parents[1]
CATALOGUE = SITE.parents[1] / "sdks/catalogue.json"
FOLDER = SITE / "types"

TIMESTAMP = "2026-11-21T12:00:00.000Z"
# The same in milliseconds since 1970, as the identifiers of events begin with it.
MILLIS = 1_795_262_400_000
# What a family is called, and what its types are about; one that is missing here is called by its first word.
FAMILIES = {
    "contact": ("Contacts", "Owners and other contacts, and whether their data was confirmed."),
    "domain": ("Domains", "From registration to deletion, transfers, name servers, DNSSEC, locks."),
    "host": ("Hosts", "Name servers below your domains that are registered themselves (glue)."),
    "order": ("Orders", "What became of what you ordered."),
}
# How the catalogue calls what JSON has no name for.
KINDS = {
    "time": "string, a time as in RFC 3339",
    "texts": "array of strings",
    "objects": "array of objects",
}
# A meaning that lists the values there are: "in or out.", "Which of admin, tech and billing changed."
VALUES = re.compile(r"(?:Which of )?([a-z_]+(?:, [a-z_]+)* (?:or|and) [a-z_]+)(?: changed)?\.")
PROSE = Prose({})


def pages(catalogue: list) -> dict[str, str]:
    """Each family's page."""
    families: dict[str, list] = {}
    for event_type in sorted(catalogue, key=lambda entry: entry["name"]):
        families.setdefault(event_type["name"].split(".")[0], []).append(event_type)
    return {family: "\n".join(page(family, types)) for family, types in sorted(families.items())}


def page(family: str, types: list) -> Iterator[str]:
    """A page in lines."""
    title, about = FAMILIES.get(family, (family.replace("_", " ").capitalize(), ""))
    # The list at the side would hold every variant otherwise.
    yield from ("---", "tocdepth: 2", "---", f"# {title}", "")
    if about:
        yield from (about, "")
    yield from (
        "Bodies are shown with line breaks; they arrive without. Attributes that are not always there are left out, and never "
        "null. More may be added to `data`: ignore those that you do not know.",
        "",
    )
    rows = [(f"[`{entry['name']}`](#{anchor(entry['name'])})", PROSE(entry["description"])) for entry in types]
    yield from table(("type", "when"), rows)
    for event_type in types:
        yield from section(event_type)


def section(event_type: dict) -> Iterator[str]:
    """A type: what it holds, and every form of it."""
    name = event_type["name"]
    yield from (f"({anchor(name)})=", f"## {name}", "", PROSE(event_type["description"]), "")
    rows = [attribute_row(attribute) for attribute in event_type["attributes"]]
    yield from table(("attribute of `data`", "type", "", "meaning"), rows)
    yield from (f"(example-{anchor(name)})=", "### Example", "", *fence(event_type, "", event_type["example"]))
    for variant in event_type["variants"]:
        yield from (f"(variant-{anchor(name)}-{variant['name']})=", f"### Variant `{variant['name']}`", "")
        yield from (PROSE(variant["description"]), "", *fence(event_type, variant["name"], variant["data"]))


def attribute_row(attribute: dict) -> tuple:
    """What an attribute is, as a row of the table."""
    need = "always" if attribute["required"] else "not always"
    kind = KINDS.get(attribute["type"], attribute["type"])
    return f"`{attribute['name']}`", PROSE(kind), need, PROSE(with_values(attribute["description"]))


def with_values(meaning: str) -> str:
    """A meaning whose values, when it lists them, are marked as code."""
    listed = VALUES.fullmatch(meaning)
    if not listed:
        return meaning
    marked = re.sub(r"(?!or\b|and\b)\b[a-z_]+", r"`\g<0>`", listed.group(1))
    return meaning.replace(listed.group(1), marked)


def fence(event_type: dict, variant: str, data: dict) -> tuple:
    """The body of a notification as a block of code. The example is the variant without a name."""
    return "```json", json.dumps(body(event_type, variant, data), indent=2, ensure_ascii=False), "```", ""


def body(event_type: dict, variant: str, data: dict) -> dict:
    """The whole body of a notification."""
    return {
        "id": event_id(event_type["name"], variant),
        "type": event_type["name"],
        "timestamp": TIMESTAMP,
        "data": ordered(data, [attribute["name"] for attribute in event_type["attributes"]]),
    }


def ordered(data: dict, attributes: list) -> dict:
    """`data` with its members in the order in which the attributes name them; others come last."""

    def place(path: str) -> int:
        places = (at for at, name in enumerate(attributes) if name == path or name.startswith(f"{path}."))
        return next(places, len(attributes))

    def arranged(value: dict, within: str) -> dict:
        return {
            name: arranged(value[name], f"{within}{name}.") if isinstance(value[name], dict) else value[name]
            for name in sorted(value, key=lambda name: place(within + name))
        }

    return arranged(data, "")


def event_id(name: str, variant: str) -> str:
    """A UUID of version 7, as events get when their callers name none; always the same for the same variant."""
    rest = int.from_bytes(hashlib.sha256(f"{name} {variant}".encode()).digest()[:10], "big")
    number = MILLIS << 80 | rest
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0b11 << 62) | 0b10 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def anchor(name: str) -> str:
    """The name of the place of an event type, which other pages can lead to."""
    return f"event-{name.replace('.', '-').replace('_', '-')}"


def read(catalogue: Path) -> dict[str, str]:
    """The pages of the catalogue in this file."""
    return pages(json.loads(catalogue.read_text(encoding="utf-8")))


def write(catalogue: Path, folder: Path) -> None:
    """Writes the pages into `folder`, and only what has changed, so that nothing is read again in vain."""
    made = read(catalogue)
    folder.mkdir(parents=True, exist_ok=True)
    for family, text in made.items():
        path = folder / f"{family}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.glob("*.md"):
        if path.stem not in made:
            path.unlink()


def differences(catalogue: Path, folder: Path) -> list:
    """The pages in `folder` that are not what would be written, each with what is wrong."""
    made = read(catalogue)
    present = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    wrong = {family: "is missing" for family in made.keys() - present.keys()}
    wrong.update((family, "should not be there") for family in present.keys() - made.keys())
    both = made.keys() & present.keys()
    wrong.update((family, "is out of date") for family in both if made[family] != present[family])
    return [f"{folder / family}.md {what}" for family, what in sorted(wrong.items())]


def main(arguments: list) -> int:
    """The exit code: 1 when pages differ that should not."""
    parser = argparse.ArgumentParser(prog="generate.event_types", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is not up to date")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER", help=f"default: {FOLDER}")
    given = parser.parse_args(arguments)
    if not given.check:
        write(CATALOGUE, given.folder)
        return 0
    wrong = differences(CATALOGUE, given.folder)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print("generate them again: in docs/site, python3 -m generate.event_types", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
