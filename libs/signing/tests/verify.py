"""Asks the PyPI package standardwebhooks, an implementation that shares nothing with ours.

Reads one JSON object per line: {"secrets": [...], "headers": {...}, "bodyBase64": "...", "now": seconds or null}, and answers
each with one line: "ok", or what the package says against it. A message is accepted when one of the secrets is.
"""

import base64
import json
import sys
from datetime import datetime, timezone
from unittest import mock

from standardwebhooks import Webhook, webhooks


class Frozen(datetime):
    """A clock that stands still, so that recorded messages can be judged as of their own time."""

    moment = None

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(cls.moment, tz=tz or timezone.utc)


def judge(message):
    body = base64.b64decode(message["bodyBase64"])
    verdict = "no secret"
    for secret in message["secrets"]:
        try:
            Webhook(secret).verify(body, message["headers"], json_parse=False)
            return "ok"
        except Exception as error:  # Rubbish makes the package raise more than its own errors.
            verdict = f"{type(error).__name__}: {error}".replace("\n", " ")
    return verdict


def main():
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8")
    for line in sys.stdin:
        message = json.loads(line)
        Frozen.moment = message.get("now")
        if Frozen.moment is None:
            print(judge(message))
        else:
            with mock.patch.object(webhooks, "datetime", Frozen):
                print(judge(message))


main()
