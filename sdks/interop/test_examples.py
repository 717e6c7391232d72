"""The examples in Python, as far as deliveries cannot show it: a stranger does not fill their memory."""

import contextlib
import http.client
import importlib
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from postrider_webhooks import signed_headers

EXAMPLES = Path(__file__).resolve().parents[1] / "examples/python"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#: More than the examples take, and a notification otherwise.
TOO_LARGE = (
    b'{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z","data":{}}'
    + b" " * (1 << 20)
)


def signed() -> dict[str, str]:
    return signed_headers(SECRET, "evt_1", int(time.time()), TOO_LARGE)


class ExamplesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        added = {
            "DATABASE": str(Path(folder.name) / "seen.db"),
            "PORT": "0",
            "WEBHOOK_SECRETS": SECRET,
        }
        patched = mock.patch.dict(os.environ, added)
        patched.start()
        self.addCleanup(patched.stop)

    def test_the_smallest_one_does_not_read_a_body_without_an_end(self) -> None:
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "minimal.py")], stdout=subprocess.PIPE, text=True
        )
        with process, contextlib.ExitStack() as at_the_end:
            at_the_end.callback(process.kill)
            assert process.stdout is not None
            address = process.stdout.readline().strip().split("//")[1]
            connection = http.client.HTTPConnection(address, timeout=240)
            # It may be answered, and closed, before all of it is sent.
            with contextlib.closing(connection), contextlib.suppress(OSError):
                connection.request("POST", "/", TOO_LARGE, signed())
                connection.getresponse()
            self.assertEqual(process.stdout.readline(), "refused no_match\n")

    def test_the_one_with_flask_answers_413_to_a_large_body(self) -> None:
        with mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]):
            app = importlib.import_module("flask_app").app
        answer = app.test_client().post("/hooks", data=TOO_LARGE, headers=signed())
        self.assertEqual(answer.status_code, 413)
