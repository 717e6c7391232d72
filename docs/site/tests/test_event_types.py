"""The pages of notification types hold everything that the catalogue has, and can be compared with it."""

import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
import unittest
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from generate import event_types  # noqa: E402

BODY = re.compile(r"^```json\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^\(([a-z0-9-]+)\)=$", re.MULTILINE)


def catalogue() -> list:
    return json.loads(event_types.CATALOGUE.read_text(encoding="utf-8"))


def run(*arguments: str) -> tuple:
    """The exit code of the program, and what it complains about."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = event_types.main(list(arguments))
    return code, said.getvalue()


class Pages(unittest.TestCase):
    def setUp(self) -> None:
        self.catalogue = catalogue()
        self.pages = event_types.pages(self.catalogue)
        self.bodies = [json.loads(body) for page in self.pages.values() for body in BODY.findall(page)]

    def test_there_is_a_page_for_each_family(self) -> None:
        self.assertEqual(set(self.pages), {"contact", "domain", "host", "order"})
        for family, page in self.pages.items():
            names = [entry["name"] for entry in self.catalogue if entry["name"].startswith(f"{family}.")]
            self.assertEqual(re.findall(r"^## (.*)$", page, re.MULTILINE), names)

    def test_the_example_and_every_variant_are_shown_as_whole_bodies(self) -> None:
        shown = [(body["type"], body["data"]) for body in self.bodies]
        expected = [
            (entry["name"], data)
            for entry in self.catalogue
            for data in [entry["example"], *(variant["data"] for variant in entry["variants"])]
        ]
        self.assertGreater(len(expected), 2 * len(self.catalogue))
        self.assertEqual(shown, expected)
        for body in self.bodies:
            self.assertEqual(list(body), ["id", "type", "timestamp", "data"])

    def test_every_attribute_and_every_variant_is_explained(self) -> None:
        for entry in self.catalogue:
            page = self.pages[entry["name"].split(".")[0]]
            page = re.sub(r"\\(.)", r"\1", page)
            part = page.split(f"\n## {entry['name']}\n")[1].split("\n## ")[0]
            for attribute in entry["attributes"]:
                need = "always" if attribute["required"] else "not always"
                row = next(line for line in part.splitlines() if line.startswith(f"| `{attribute['name']}` |"))
                self.assertIn(f"| {need} |", row)
                self.assertIn(attribute["description"], row.replace("`", ""))
            for variant in entry["variants"]:
                self.assertIn(f"### Variant `{variant['name']}`\n\n{variant['description']}\n", part)

    def test_no_two_bodies_have_one_id_and_no_two_places_one_name(self) -> None:
        ids = [body["id"] for body in self.bodies]
        self.assertEqual(len(set(ids)), len(ids))
        for one in map(uuid.UUID, ids):
            self.assertEqual((one.version, one.variant), (7, uuid.RFC_4122))
        labels = [label for page in self.pages.values() for label in LABEL.findall(page)]
        self.assertEqual(len(set(labels)), len(labels))
        self.assertEqual(len(labels), len(ids) + len(self.catalogue))

    def test_ids_begin_with_the_time_that_bodies_tell(self) -> None:
        self.assertEqual({body["timestamp"] for body in self.bodies}, {"2026-11-21T12:00:00.000Z"})
        self.assertEqual({uuid.UUID(body["id"]).int >> 80 for body in self.bodies}, {event_types.MILLIS})

    def test_what_is_a_sign_of_markdown_is_shown_as_it_is(self) -> None:
        entry = {
            "name": "thing.happened",
            "description": "A *thing* | <happened>.",
            "attributes": [{"name": "a", "type": "string", "description": "x | y_z", "required": False}],
            "example": {"a": "ä"},
            "variants": [],
        }
        page = event_types.pages([entry])["thing"]
        self.assertIn("# Thing\n", page)
        self.assertIn(r"A \*thing\* \| \<happened\>.", page)
        self.assertIn(r"| `a` | string | not always | x \| y\_z |", page)
        self.assertIn('"a": "ä"', page)

    def test_values_that_a_meaning_lists_are_marked(self) -> None:
        for meaning, marked in (
            ("in or out.", "`in` or `out`."),
            ("verification, court_order or registry.", "`verification`, `court_order` or `registry`."),
            ("Which of admin, tech and billing changed.", "Which of `admin`, `tech` and `billing` changed."),
            ("Why, in words.", "Why, in words."),
            ("When it was registered.", "When it was registered."),
        ):
            self.assertEqual(event_types.with_values(meaning), marked)

    def test_members_stand_in_the_order_of_the_attributes(self) -> None:
        data = {"a": 1, "other": 2, "z": {"b": 3, "a": 4}}
        ordered = event_types.ordered(data, ["z.b", "z.a", "a"])
        self.assertEqual(json.dumps(ordered), '{"z": {"b": 3, "a": 4}, "a": 1, "other": 2}')


class Example(unittest.TestCase):
    """The request on the page of what arrives."""

    def setUp(self) -> None:
        page = (event_types.SITE / "notifications.md").read_text(encoding="utf-8")
        request = re.search(r"^```http\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL).group(1)
        self.head, self.text = request.split("\n\n")
        self.body = json.loads(self.text)

    def test_its_data_has_what_the_catalogue_requires(self) -> None:
        entry = next(entry for entry in catalogue() if entry["name"] == self.body["type"])
        for attribute in entry["attributes"]:
            if attribute["required"]:
                value = self.body["data"]
                for name in attribute["name"].split("."):
                    self.assertIn(name, value, attribute["name"])
                    value = value[name]

    def test_its_key_is_that_of_its_body(self) -> None:
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        self.assertIn(f"idempotency-key: {digest}", self.head)


class Comparing(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "types"
        self.assertEqual(run(str(self.folder)), (0, ""))

    def test_what_was_written_is_up_to_date(self) -> None:
        self.assertEqual(run("--check", str(self.folder)), (0, ""))

    def test_what_is_up_to_date_is_not_written_again(self) -> None:
        before = {path: path.stat().st_mtime_ns for path in self.folder.iterdir()}
        run(str(self.folder))
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.folder.iterdir()}, before)

    def test_what_differs_is_named_and_written_again(self) -> None:
        (self.folder / "host.md").write_text("# Hosts\n", encoding="utf-8")
        (self.folder / "order.md").unlink()
        (self.folder / "thing.md").write_text("# Thing\n", encoding="utf-8")
        code, said = run("--check", str(self.folder))
        self.assertEqual(code, 1)
        for wrong in ("host.md is out of date", "order.md is missing", "thing.md should not be there"):
            self.assertIn(wrong, said)
        self.assertIn("python3 -m generate.event_types", said)
        run(str(self.folder))
        self.assertEqual(run("--check", str(self.folder)), (0, ""))


if __name__ == "__main__":
    unittest.main()
