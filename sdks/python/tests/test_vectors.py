"""Agrees with every line of ``sdks/vectors.json``, as the libraries for all languages do."""

import unittest
from typing import Any

from postrider_webhooks import (
    Notification,
    SecretError,
    VerificationError,
    Verifier,
    idempotency_key,
    sign,
)
from postrider_webhooks.secret import decode

from .samples import VECTORS, body_of


def verifier_of(vector: dict[str, Any]) -> Verifier:
    return Verifier(
        vector["secrets"],
        tolerance=vector["toleranceSeconds"],
        clock=lambda: float(vector["now"]),
    )


def as_vector(notification: Notification) -> dict[str, Any]:
    """A notification as the file has it, its time in whole milliseconds."""
    whole_seconds = notification.timestamp.replace(microsecond=0).timestamp()
    return {
        "id": notification.id,
        "type": notification.type,
        "timestampMillis": int(whole_seconds) * 1000 + notification.timestamp.microsecond // 1000,
        "data": notification.data,
        "idempotencyKey": notification.idempotency_key,
        "attemptedAt": int(notification.attempted_at.timestamp()),
    }


class VectorsTest(unittest.TestCase):
    maxDiff = None

    def test_the_file_has_the_format_that_is_known_here(self) -> None:
        self.assertEqual(VECTORS["format"], 2)
        for section, fewest in (
            ("secrets", 14),
            ("sign", 20),
            ("verify", 51),
            ("notifications", 65),
        ):
            self.assertGreaterEqual(len(VECTORS[section]), fewest, section)

    def test_every_secret_is_read_as_the_file_says(self) -> None:
        for vector in VECTORS["secrets"]:
            with self.subTest(vector["name"]):
                if "keyHex" in vector:
                    self.assertEqual(decode(vector["secret"]).hex(), vector["keyHex"])
                    continue
                with self.assertRaises(SecretError) as caught:
                    Verifier(vector["secret"])
                self.assertEqual(caught.exception.code, vector["error"])

    def test_every_signature_of_the_file_is_made(self) -> None:
        for vector in VECTORS["sign"]:
            with self.subTest(vector["name"]):
                body = body_of(vector)
                signature = sign(vector["secrets"], vector["id"], vector["timestamp"], body)
                self.assertEqual(signature, vector["signature"])
                self.assertEqual(idempotency_key(body), vector["idempotencyKey"])

    def test_every_message_of_the_file_gets_its_verdict(self) -> None:
        for vector in VECTORS["verify"]:
            with self.subTest(vector["name"]):
                if not vector["secrets"]:
                    # This library goes one further: no verifier is made without a secret.
                    with self.assertRaises(SecretError) as caught:
                        verifier_of(vector)
                    self.assertEqual(caught.exception.code, "none")
                    continue
                result = "ok"
                try:
                    verifier_of(vector).verify_signature(vector["headers"], body_of(vector))
                except VerificationError as error:
                    result = error.code
                self.assertEqual(result, vector["result"])

    def test_every_notification_of_the_file_is_read_or_refused(self) -> None:
        for vector in VECTORS["notifications"]:
            with self.subTest(vector["name"]):
                try:
                    notification = verifier_of(vector).verify(vector["headers"], body_of(vector))
                except VerificationError as error:
                    self.assertEqual(error.code, vector["result"])
                else:
                    self.assertEqual("ok", vector["result"])
                    self.assertEqual(as_vector(notification), vector["notification"])
