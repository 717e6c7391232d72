"""Sends one message with pywebpush; what to send is JSON on standard input, the status of the answer goes to standard output."""

import json
import sys

from pywebpush import WebPushException, webpush

asked = json.load(sys.stdin)
try:
    answer = webpush(
        asked["subscription"],
        asked["message"],
        vapid_private_key=asked["key"],
        vapid_claims={"sub": asked["subject"]},
        content_encoding=asked["encoding"],
        ttl=600,
        timeout=60,
    )
except WebPushException as refused:
    if refused.response is None:
        raise
    answer = refused.response
print(answer.status_code)
