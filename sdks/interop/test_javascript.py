"""The npm package ``standardwebhooks`` accepts what we sign and nothing else, and we accept what it
signs and nothing else.
"""

import json
import subprocess
import unittest
from pathlib import Path
from typing import Any

from postrider_webhooks import NoMatchError, Verifier, sign

from .messages import Message, signed_vectors, tampered, verdict_vectors

MESSAGES = 200
JUDGE = Path(__file__).resolve().parent / "javascript/judge.cjs"


def ask(questions: list[dict[str, Any]]) -> list[str]:
    """What the package answers, one for each question, all of them asked at once."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    finished = subprocess.run(
        ["node", str(JUDGE)], input=lines, stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    answers = [json.loads(line) for line in finished.stdout.splitlines()]
    assert len(answers) == len(questions), finished.stdout
    return answers


def verification(secrets: list[str], headers: dict[str, str], body: str) -> dict[str, Any]:
    return {"verify": {"secrets": secrets, "headers": headers, "body": body}}


def signing(message: Message) -> dict[str, Any]:
    fields = ("secret", "id", "timestamp", "body")
    return {"sign": {field: getattr(message, field) for field in fields}}


class JavaScriptTest(unittest.TestCase):
    def test_it_accepts_what_we_sign(self) -> None:
        questions = []
        for number in range(MESSAGES):
            one = Message(number)
            ours = sign(one.secret, one.id, one.timestamp, one.body.encode())
            questions.append(verification([one.secret], one.headers(ours), one.body))
        self.assertEqual(ask(questions), ["ok"] * MESSAGES)

    def test_we_accept_what_it_signs_and_both_refuse_what_was_changed(self) -> None:
        messages = [Message(number) for number in range(MESSAGES)]
        changed = []
        for message, signature in zip(messages, ask([signing(message) for message in messages])):
            verifier = Verifier(message.secret)
            verifier.verify_signature(message.headers(signature), message.body.encode())
            for what, headers, body in tampered(message, signature):
                with self.subTest(what), self.assertRaises(NoMatchError):
                    verifier.verify_signature(headers, body.encode())
                changed.append(verification([message.secret], headers, body))
        verdicts = set(ask(changed))
        self.assertEqual(verdicts, {"WebhookVerificationError: No matching signature found"})

    def test_it_agrees_with_the_vectors(self) -> None:
        signed = signed_vectors()
        questions = [
            {"sign": {**vector, "secret": secret}}
            for vector in signed
            for secret in vector["secrets"]
        ]
        wanted = [one for vector in signed for one in vector["signature"].split(" ")]
        self.assertEqual(ask(questions), wanted)
        judged = verdict_vectors()
        verdicts = ask([{"verify": vector} for vector in judged])
        for vector, verdict in zip(judged, verdicts):
            self.assertEqual(
                verdict == "ok", vector["result"] == "ok", f"{vector['name']}: {verdict}"
            )
