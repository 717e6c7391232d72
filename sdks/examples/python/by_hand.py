"""Verifying by hand, for developers who cannot use a library.

It accepts and refuses what every vector of sdks/vectors.json says.
"""

import base64
import binascii
import hashlib
import hmac
import re
import time

TOLERANCE_SECONDS = 300


# [verify]
def verify(secrets, headers, body, now=None):
    """Whether `body` (bytes, as they arrived) was signed with one of `secrets`.

    `headers` has lower-case names.
    """
    identifier = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "")
    if not (identifier and timestamp and signatures) or "." in identifier:
        return False
    if not re.fullmatch("[1-9][0-9]{0,14}", timestamp):
        return False
    now = time.time() if now is None else now
    if abs(int(now) - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    content = f"{identifier}.{timestamp}.".encode("utf-8", "surrogatepass") + body
    sent = signatures.encode("utf-8", "surrogatepass").split(b" ")
    for secret in secrets:
        key = base64.b64decode(secret[len("whsec_") :], validate=True)
        digest = hmac.new(key, content, hashlib.sha256).digest()
        expected = b"v1," + binascii.b2a_base64(digest, newline=False)
        for signature in sent:
            if hmac.compare_digest(expected, signature):
                return True
    return False


# [/verify]
