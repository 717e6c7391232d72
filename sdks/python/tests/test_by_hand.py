"""The verification by hand that the documentation shows is as good as the library's."""

import importlib.util
import unittest
from typing import Any

from .samples import ROOT, VECTORS, body_of


def by_hand() -> Any:
    """The example, which is no part of any package."""
    path = ROOT.parent / "examples/python/by_hand.py"
    spec = importlib.util.spec_from_file_location("by_hand", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ByHandTest(unittest.TestCase):
    def test_it_accepts_and_refuses_what_every_vector_says(self) -> None:
        verify = by_hand().verify
        for vector in VECTORS["verify"]:
            with self.subTest(vector["name"]):
                found = verify(vector["secrets"], vector["headers"], body_of(vector), vector["now"])
                self.assertEqual(found, vector["result"] == "ok")

    def test_it_refuses_headers_that_are_no_unicode(self) -> None:
        verify = by_hand().verify
        vector = next(vector for vector in VECTORS["verify"] if vector["result"] == "ok")
        for name in ("webhook-id", "webhook-signature"):
            with self.subTest(name):
                headers = {**vector["headers"], name: vector["headers"][name] + "\udc80"}
                self.assertIs(verify(vector["secrets"], headers, body_of(vector), vector["now"]), False)
