"""The package keeps its word: Python 3.9, nothing but the standard library, examples that are true."""

import ast
import doctest
import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import postrider_webhooks

from .samples import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))
EXAMPLES = sorted((ROOT.parent / "examples" / "python").rglob("*.py"))


def imported(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


class PackageTest(unittest.TestCase):
    def test_everything_is_in_the_syntax_of_python_3_9(self) -> None:
        self.assertTrue(SOURCES and EXAMPLES)
        for source in SOURCES + EXAMPLES:
            ast.parse(source.read_text("utf-8"), str(source), feature_version=(3, 9))

    def test_nothing_but_the_standard_library_is_imported(self) -> None:
        # Python 3.9 has no list of its own modules.
        known = getattr(sys, "stdlib_module_names", None)
        if known is None:
            self.skipTest("needs Python 3.10")
        for source in SOURCES:
            for module in imported(source):
                self.assertIn(module.split(".")[0], known, str(source))

    def test_what_is_exported_exists_and_is_documented(self) -> None:
        for name in postrider_webhooks.__all__:
            exported = getattr(postrider_webhooks, name)
            if callable(exported):
                self.assertTrue(exported.__doc__, name)

    def test_the_examples_of_the_documentation_are_true(self) -> None:
        self.assertEqual(doctest.testmod(postrider_webhooks).failed, 0)
        readme = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
        self.assertGreater(readme.attempted, 5)
        self.assertEqual(readme.failed, 0)

    def test_the_smallest_example_has_at_most_40_lines(self) -> None:
        smallest = ROOT.parent / "examples/python/minimal.py"
        self.assertLessEqual(len(smallest.read_text("utf-8").splitlines()), 40)

    def test_the_package_is_marked_as_typed_and_has_no_dependencies(self) -> None:
        self.assertTrue((ROOT / "src/postrider_webhooks/py.typed").exists())
        project = (ROOT / "pyproject.toml").read_text("utf-8")
        self.assertRegex(project, re.compile(r"^dependencies = \[\]$", re.MULTILINE))
        self.assertRegex(project, re.compile(r'^requires-python = ">=3\.9"$', re.MULTILINE))
