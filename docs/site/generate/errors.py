"""The tables of the page about errors: problems of the reseller API, and what a library says of a request.

Both come from where the product keeps them: the OpenAPI document, and the vectors that every library is tested with.
"""

import json
from pathlib import Path

from .api import keep_or_write
from .figures import read
from .markdown import Prose, table

# What to do about each; a kind that is missing here fails the build.
MEND = {
    "unauthorized": "Send your key: `Authorization: Bearer pr_…`.",
    "forbidden": "Use a key of the role reseller; one of the role reseller-viewer only looks. Ask the operators for one.",
    "not-found": "Nothing of yours has this identifier. List what there is.",
    "method-not-allowed": "Look the operation up in [the reference](api/index.md): the path has other methods.",
    "validation": "Change the fields that `errors` lists.",
    "malformed-body": "`detail` says where the JSON cannot be read.",
    "invalid-query": "`errors` names the parameter and what it accepts.",
    "request-timeout": "Send the body faster; nothing was stored.",
    "body-too-large": "Send less.",
    "unsupported-media-type": "Send `Content-Type: application/json`.",
    "too-many-requests": "Wait as long as `Retry-After` says.",
    "too-many-subscriptions": "Delete one that you do not need.",
    "subscription-state": "Look at the subscription; `detail` names the state it is in.",
    "notification-unfinished": "Wait: it will be sent anyhow.",
    "notification-cancelled": "Nothing: it is not sent any more. Its story says by whom it was cancelled.",
    "notification-beyond": "Nothing: it is being sent, or has ended.",
    "changed-meanwhile": "Read the subscription again, then change what it is now.",
    "too-many-match": "Narrow the time, or make a replay.",
    "code-void": "Have another code sent.",
    "last-secret": "Make a new secret first.",
    "too-many-secrets": "Revoke one, or wait until one has expired.",
    "quota-request-open": "Wait for the decision, or withdraw the earlier request.",
    "quota-request-decided": "Make another request.",
    "replay-running": "Wait for its end, or cancel it.",
    "replay-completed": "Nothing: it is done.",
    "internal": "Try again later; tell the operators when it lasts.",
    "unavailable": "Try again after `Retry-After` seconds.",
}


# No operation answers with these, so that the document has no example of them.
EVERYWHERE = {
    "method-not-allowed": (
        405,
        "The path exists, but not for this method; the Allow header lists those it has.",
    ),
}


def write(document: Path, vectors: Path, folder: Path) -> None:
    """Writes the tables into `folder`, to be included."""
    openapi = json.loads(document.read_text(encoding="utf-8"))
    folder.mkdir(exist_ok=True)
    prose = Prose(read(document.parents[2] / "config/default.yaml"))
    keep_or_write(folder / "problems.md", "\n".join(problems(openapi, prose)))
    check_page(openapi, json.loads(vectors.read_text(encoding="utf-8")), folder.parent)


def check_page(openapi: dict, vectors: dict, site: Path) -> None:
    """What pages tell by hand is complete, or the build fails: the codes of libraries, kinds of failures, statuses and states."""
    results = {
        entry["result"]
        for part in ("verify", "notifications")
        for entry in vectors.get(part, [])
        if "result" in entry
    }
    secrets = {entry["error"] for entry in vectors["secrets"] if "error" in entry}
    schemas = openapi["components"]["schemas"]
    expected = {
        "errors.md": (results - {"ok"}) | secrets | set(schemas["ErrorType"]["enum"]),
        "delivery.md": set(schemas["Status"]["enum"])
        | set(schemas["SubscriptionState"]["enum"]),
    }
    for page, words in expected.items():
        text = (site / page).read_text(encoding="utf-8")
        missing = sorted(word for word in words if f"`{word}`" not in text)
        if missing:
            raise ValueError(f"docs/site/{page}: say what these mean: {', '.join(missing)}")


def problems(openapi: dict, prose: Prose) -> list[str]:
    """A row for each kind of problem, by status."""
    found: dict[str, tuple[int, str]] = dict(EVERYWHERE)
    for item in openapi["paths"].values():
        for operation in item.values():
            for status, answer in operation["responses"].items():
                content = answer.get("content", {}).get("application/problem+json", {})
                for name, example in content.get("examples", {}).items():
                    # The description of an answer tells of every problem that has its status.
                    told = example["value"]
                    said = told["title"] if name in ("validation", "unavailable") else told["detail"]
                    found[name] = (int(status), said)
    unknown = sorted(set(found) ^ set(MEND))
    if unknown:
        raise ValueError(
            f"docs/site/generate/errors.py, MEND: say what to do about exactly the problems there are; wrong: {unknown}"
        )
    rows = [
        (f"[]{{#problem-{name}}}`{name}`", str(status), prose(said), MEND[name])
        for name, (status, said) in sorted(found.items(), key=lambda entry: (entry[1][0], entry[0]))
    ]
    return table(("`type`", "status", "when", "what to do"), rows)
