"""The PyPI package ``standardwebhooks`` accepts what we sign and nothing else, and we accept what
it signs and nothing else.
"""

import unittest
from datetime import datetime, timezone
from typing import Any
from unittest import mock

from postrider_webhooks import NoMatchError, Verifier, sign
from standardwebhooks import Webhook, WebhookVerificationError, webhooks

from .messages import Message, signed_vectors, tampered, verdict_vectors

MESSAGES = 200


def at(moment: int) -> type[datetime]:
    """A clock that stands still."""

    class Frozen(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(moment, tz=timezone.utc)

    return Frozen


def theirs(message: Message) -> str:
    when = datetime.fromtimestamp(message.timestamp, tz=timezone.utc)
    return str(Webhook(message.secret).sign(message.id, when, message.body))


class PythonTest(unittest.TestCase):
    def test_it_accepts_what_we_sign_and_makes_the_same_signature(self) -> None:
        for number in range(MESSAGES):
            message = Message(number)
            ours = sign(message.secret, message.id, message.timestamp, message.body.encode())
            self.assertEqual(ours, theirs(message))
            Webhook(message.secret).verify(message.body, message.headers(ours))

    def test_we_accept_what_it_signs(self) -> None:
        for number in range(MESSAGES):
            message = Message(number)
            headers = message.headers(theirs(message))
            Verifier(message.secret).verify_signature(headers, message.body.encode())

    def test_both_refuse_what_was_changed(self) -> None:
        for number in range(MESSAGES // 4):
            message = Message(number)
            for what, headers, body in tampered(message, theirs(message)):
                with self.subTest(what):
                    with self.assertRaises(NoMatchError):
                        Verifier(message.secret).verify_signature(headers, body.encode())
                    with self.assertRaises(WebhookVerificationError):
                        Webhook(message.secret).verify(body, headers)

    def test_it_agrees_with_the_vectors(self) -> None:
        for vector in signed_vectors():
            when = datetime.fromtimestamp(vector["timestamp"], tz=timezone.utc)
            made = [
                Webhook(one).sign(vector["id"], when, vector["body"]) for one in vector["secrets"]
            ]
            self.assertEqual(" ".join(made), vector["signature"], vector["name"])
        for vector in verdict_vectors():
            accepted = any(self.accepts(secret, vector) for secret in vector["secrets"])
            self.assertEqual(accepted, vector["result"] == "ok", vector["name"])

    def accepts(self, secret: str, vector: dict[str, Any]) -> bool:
        with mock.patch.object(webhooks, "datetime", at(vector["now"])):
            try:
                Webhook(secret).verify(vector["body"], vector["headers"], json_parse=False)
            except Exception:  # Rubbish makes the package raise more than its own errors.
                return False
            return True
