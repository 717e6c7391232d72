"""What a verification costs, compared with a bare HMAC over the same content.

    python3 sdks/python/bench/verification.py

Both are measured in turns, many times, and the medians compared, so that a machine that is slower
for a while is so for both. Exits 1 when a verification of 1 KiB or more costs over twice an HMAC.
"""

import hmac
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from postrider_webhooks import Verifier, signed_headers  # noqa: E402
from postrider_webhooks.secret import decode  # noqa: E402

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIZES = (256, 1_024, 4_096, 16_384, 65_536)
ROUNDS = 101
SECONDS_OF_A_ROUND = 0.004
LIMIT = 2.0
LIMIT_FROM_BYTES = 1_024


def body_of(size: int) -> bytes:
    head = b'{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z","data":{"note":"'
    return head + b"x" * (size - len(head) - 3) + b'"}}'


def micros(call: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def measure(size: int) -> tuple[float, float, float]:
    """Microseconds of a bare HMAC, of a verified signature, and of a notification that was verified
    and read.
    """
    body, now, key = body_of(size), int(time.time()), decode(SECRET)
    headers = signed_headers(SECRET, "evt_1", now, body)
    content = f"evt_1.{now}.".encode() + body
    verifier = Verifier(SECRET)
    calls: list[Callable[[], object]] = [
        lambda: hmac.digest(key, content, "sha256"),
        lambda: verifier.verify_signature(headers, body),
        lambda: verifier.verify(headers, body),
    ]
    counts = [max(1, int(SECONDS_OF_A_ROUND * 1e6 / micros(call, 50))) for call in calls]
    rounds = [[micros(call, count) for call, count in zip(calls, counts)] for _ in range(ROUNDS)]
    bare, signature, whole = (statistics.median(column) for column in zip(*rounds))
    return bare, signature, whole


def main() -> int:
    print(f"Python {platform.python_version()}, microseconds, medians of {ROUNDS} rounds")
    print(f"{'body':>8} {'bare HMAC':>10} {'verify_signature':>17} {'times':>6} {'verify':>8}")
    too_slow = False
    for size in SIZES:
        bare, signature, whole = measure(size)
        ratio = signature / bare
        too_slow = too_slow or (size >= LIMIT_FROM_BYTES and ratio > LIMIT)
        print(f"{size:>8} {bare:>10.2f} {signature:>17.2f} {ratio:>6.2f} {whole:>8.2f}")
    if too_slow:
        print(f"error: a verification costs over {LIMIT} times a bare HMAC", file=sys.stderr)
    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
