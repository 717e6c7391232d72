"""What the check of the built pages finds, and what it lets pass."""

import tempfile
import unittest
from pathlib import Path

import check_links

PAGES = {
    "index.html": '<a href="types/domain.html#created">types</a><a href="#top">top</a><p id="top"><a href="https://example.org/">away</a>'
    '<script src="_static/site.js?v=1"></script><a href="/openapi.html">API</a>',
    "types/index.html": '<a href="../index.html">back</a>',
    "types/domain.html": '<h2 id="created">created</h2><a href="./">types</a><img src="data:image/png;base64,AA==">',
    "_static/site.js": "1",
}


def faults(**changed: str) -> "list[str]":
    """Of the pages above, with something put at the end of the first one or at the end of the page that is named."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent).resolve() / "site"
        for name, text in {
            **PAGES,
            "index.html": PAGES["index.html"] + changed.get("more", ""),
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        (Path(parent) / "outside.html").write_text("", encoding="utf-8")
        return check_links.faults(folder)


class CheckLinks(unittest.TestCase):
    def test_pages_that_lead_somewhere_pass(self) -> None:
        self.assertEqual(faults(), [])

    def test_links_that_lead_nowhere_are_named_with_their_page(self) -> None:
        for link, fault in (
            ('<a href="none.html">', "leads to no file"),
            ('<a href="types/domain.html#deleted">', "leads to no anchor"),
            ('<a href="#nothing">', "leads to no anchor"),
            ('<a href="../outside.html">', "leads out of the site"),
            ('<a href="_static/">', "leads to no file"),
            ('<a href="/types/domain.html">', "is absolute"),
            ('<img src="none.png">', "leads to no file"),
        ):
            found = faults(more=link)
            self.assertEqual(len(found), 1, found)
            self.assertIn(fault, found[0])
            self.assertTrue(found[0].startswith("index.html: "), found)

    def test_nothing_is_loaded_from_elsewhere(self) -> None:
        for tag in (
            '<script src="https://cdn.example/a.js">',
            '<link rel="stylesheet" href="//fonts.example/a.css">',
            '<img src="http://example.org/a.png">',
            '<form action="https://example.org/search">',
        ):
            found = faults(more=tag)
            self.assertEqual(len(found), 1, found)
            self.assertIn("is loaded from elsewhere", found[0])

    def test_scripts_stand_in_files(self) -> None:
        for tag in ("<script>alert(1)</script>", '<p onclick="alert(1)">'):
            self.assertIn("has a script within the page", faults(more=tag)[0])

    def test_a_folder_without_pages_is_no_site(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(check_links.main(Path(folder)), 1)


if __name__ == "__main__":
    unittest.main()
