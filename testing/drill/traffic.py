"""Hands in pushes and events, and writes down what was accepted: the callers of a drill or a fail-over, and their book.

usage: traffic.py send BOOK PREFIX PER_SECOND     until SIGTERM
       traffic.py again BOOK GAP                  once more what GAP names, a line each: push or event, and the name

The book has a line of JSON for each push and event that was answered with 202: what it is, its name, when that was, and the body that was
handed in. A push is known by its pushKey, which is the user at Swrve, and an event by its eventId, which is its webhook-id. INGEST_URL,
INGEST_KEY and RESELLER_ID say where and whose; of several URLs, with commas between them, one after the other is asked.
"""

import itertools
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request

INGEST, KEY, RESELLER = (os.environ[name] for name in ("INGEST_URL", "INGEST_KEY", "RESELLER_ID"))
URLS = itertools.cycle(INGEST.split(","))
stopped = False


def stop(*_):
    global stopped
    stopped = True


def window(minutes):
    """A sending window that begins with the minute in so many minutes, and lasts for a quarter of an hour."""
    first = time.gmtime(time.time() + 60 * minutes).tm_min
    return f"* {','.join(str((first + n) % 60) for n in range(15))} * * * ?"


def push(number, prefix):
    kind, cron = "plain", None
    if number % 10 == 3:
        kind = "failing"
    elif number % 10 == 6:
        kind, cron = "window", window(1)
    elif number % 25 == 9:
        kind, cron = "later", window(35)
    body = {"platform": "IOS", "messagePrototypeKey": "Hello", "pushKey": f"{kind}-{prefix}-{number}", "message": "drill"}
    return body | ({"cronExpression": cron} if cron else {})


def event(number, prefix):
    name = f"event-{prefix}-{number}"
    body = {"resellerId": RESELLER, "eventId": name}
    if number % 8 == 5:
        times = {"createdAt": "2026-11-21T12:00:00Z", "expiresAt": "2027-11-21T12:00:00Z"}
        return body | {"type": "domain.created", "data": {"domain": {"name": f"{name}.example"} | times}}
    return body | {"type": "contact.deleted", "data": {"contact": {"id": name}}}


def accepted(what, body):
    """Whether it was answered with 202. What is not answered was perhaps stored; nothing was promised of it."""
    path = "/push" if what == "push" else "/events"
    request = urllib.request.Request(
        next(URLS) + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status == 202
    except urllib.error.HTTPError as error:
        if error.code < 500:
            sys.exit(f"{path} answered {error.code}: {error.read().decode()}")
    except OSError:
        pass
    return False


def send(book, prefix, per_second):
    number = 0
    begun = time.monotonic()
    with open(book, "a", buffering=1, encoding="utf-8") as lines:
        while not stopped:
            number += 1
            for what, body in (("push", push(number, prefix)), ("event", event(number, prefix))):
                if accepted(what, body):
                    name = body["pushKey"] if what == "push" else body["eventId"]
                    lines.write(json.dumps({"what": what, "name": name, "at": time.time(), "body": body}) + "\n")
            time.sleep(max(0, begun + number / per_second - time.monotonic()))


def again(book, gap):
    with open(gap, encoding="utf-8") as lines:
        wanted = {tuple(line.split()) for line in lines}
    with open(book, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if (line["what"], line["name"]) in wanted:
                # Its window may have gone by.
                line["body"].pop("cronExpression", None)
                while not accepted(line["what"], line["body"]):
                    time.sleep(0.5)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    if sys.argv[1] == "send":
        send(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    else:
        again(sys.argv[2], sys.argv[3])
