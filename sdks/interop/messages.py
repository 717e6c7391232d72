"""Random messages, and those of the vectors that a public library can have an opinion on."""

import json
import random
import secrets
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[1] / "vectors.json").read_text("utf-8")
)
CHANCE = random.SystemRandom()
# Letters of one to four bytes, and all that JSON escapes.
LETTERS = ((0, 0x7F), (0x80, 0x7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))


class Message:
    """One that is new each time, for secrets of every length."""

    def __init__(self, number: int) -> None:
        self.secret = "whsec_" + b64encode(secrets.token_bytes(CHANCE.randint(24, 64))).decode()
        self.id = f"evt_{number}"
        self.timestamp = int(time.time())
        self.body = json.dumps({"id": self.id, "text": text()}, ensure_ascii=CHANCE.random() < 0.5)

    def headers(self, signature: str) -> dict[str, str]:
        return {
            "webhook-id": self.id,
            "webhook-timestamp": str(self.timestamp),
            "webhook-signature": signature,
        }


def text() -> str:
    ranges = (CHANCE.choice(LETTERS) for _ in range(CHANCE.randint(0, 300)))
    return "".join(chr(CHANCE.randint(*bounds)) for bounds in ranges)


def tampered(message: Message, signature: str) -> list[tuple[str, dict[str, str], str]]:
    """What is changed, the headers and the body, for each way to change a message."""
    headers = message.headers(signature)
    return [
        ("body", headers, message.body + " "),
        ("id", {**headers, "webhook-id": "another"}, message.body),
        ("time", {**headers, "webhook-timestamp": str(message.timestamp + 7)}, message.body),
        (
            "version",
            {**headers, "webhook-signature": signature.replace("v1,", "v2,")},
            message.body,
        ),
    ]


def signed_vectors() -> list[dict[str, Any]]:
    """Those of the section ``sign`` whose body is text, which is all that the public libraries
    take.
    """
    return [vector for vector in VECTORS["sign"] if "body" in vector]


def verdict_vectors() -> list[dict[str, Any]]:
    """Those of the section ``verify``, as far as their body is text."""
    return [vector for vector in VECTORS["verify"] if "body" in vector]
