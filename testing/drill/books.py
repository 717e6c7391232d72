"""Accounts for every push and event of a drill: the callers' book, the receivers' books and what the database held.

usage: books.py FOLDER [--released]     the books; exits 1 when something is wrong with them. Before the release without --released
       books.py FOLDER --gap            names what was accepted and is not in the restored database, a line each

FOLDER has accepted.jsonl (what was answered with 202), restored.tsv (what the restored database held: lane, name, path of the endpoint,
status), possibly-sent.tsv (lane, name, path), ended.tsv (as restored.tsv, at the end), gap.txt, and marks.json: how many requests each
receiver had when the services were started again, and when the release began. SWRVE_SIM_URL and RECEIVER_URL are the receivers.
"""

import collections
import json
import os
import pathlib
import sys
import urllib.request

PAGE = 10_000
ENDED = {"SENT", "FAILED", "GIVEN_UP"}


def fetched(url):
    """All requests that a receiver has had."""
    after, items = 0, []
    while True:
        with urllib.request.urlopen(f"{url}?after={after}&limit={PAGE}", timeout=30) as answer:
            page = json.load(answer)
        if not page["items"]:
            return items
        items += page["items"]
        after = page["nextAfter"]


def arrivals():
    """Of each push and notification the numbers of the requests that its receiver took: those answered with 2xx, and those whose sender
    went away before the answer, which the receiver may have worked on."""
    taken = collections.defaultdict(list)
    for one in fetched(os.environ["SWRVE_SIM_URL"] + "/received"):
        if took(one):
            taken["push", one["user"], ""].append(one["number"])
    for one in fetched(os.environ["RECEIVER_URL"] + "/_received"):
        if took(one) and one["id"].startswith("event-"):
            taken["reseller", one["id"], one["path"]].append(one["number"])
    return taken


def took(one):
    return one["outcome"] == "abandoned" or 200 <= (one["status"] or 0) < 300


def handed_in(units):
    """What the callers had to hand in for these pushes and notifications."""
    return {("push" if lane == "push" else "event", name) for lane, name, _ in units}


def judge(wrong, told):
    """Tells how much is wrong in which way, with a few of them; whether anything is."""
    for what, found in wrong.items():
        print(f"{len(found):6} WRONG {what}" if found else f"{0:6} {what}")
        for unit in sorted(found)[:5]:
            print("        ", *unit, *told(unit))
    return any(wrong.values())


class Books:
    """The callers' book, and tables that a script has written beside it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        lines = (self.folder / "accepted.jsonl").read_text(encoding="utf-8").splitlines()
        self.lines = list(map(json.loads, lines))
        self.accepted = {(line["what"], line["name"]) for line in self.lines}

    def table(self, name):
        text = (self.folder / name).read_text(encoding="utf-8")
        return [line.split("\t") for line in text.splitlines()]

    def rows(self, name):
        """Rows by lane, name and path."""
        return {tuple(row[:3]): row[3] if len(row) > 3 else "" for row in self.table(name)}


class Drill(Books):
    def __init__(self, folder):
        super().__init__(folder)
        self.restored = self.rows("restored.tsv")

    def gap(self):
        return sorted(self.accepted - handed_in(self.restored))

    def account(self, released):
        marks = json.loads((self.folder / "marks.json").read_text(encoding="utf-8"))
        listed = set(self.rows("possibly-sent.tsv"))
        ended = self.rows("ended.tsv")
        text = (self.folder / "gap.txt").read_text(encoding="utf-8")
        gap = {tuple(line.split()) for line in text.splitlines()}
        taken = arrivals()

        def is_in_gap(unit):
            return not gap.isdisjoint(handed_in({unit}))

        def early(unit, numbers):
            begin, end = marks["start"][unit[0]], marks["release"][unit[0]]
            return any(begin < number <= end for number in numbers)

        units = set(taken) | set(ended)
        twice = {unit for unit in units if len(taken.get(unit, ())) > 1}
        unfinished = {unit for unit, status in self.restored.items() if status not in ENDED}
        wrong = {
            "came before its release": {unit for unit in listed if early(unit, taken.get(unit, ()))},
            "came twice, and was neither listed nor handed in again": {
                unit for unit in twice if unit not in listed and not is_in_gap(unit)
            },
            "had not ended, and is neither listed nor waits for its window": {
                unit for unit in unfinished - listed if ended.get(unit) != "SCHEDULED"
            },
        }
        waits = {unit for unit, status in ended.items() if status == "SCHEDULED"}
        if released:
            wrong["was accepted, and is not there"] = self.accepted - handed_in(ended)
            wrong["was never taken by its receiver"] = {unit for unit in set(ended) - waits if not taken.get(unit)}
            wrong["is not SENT"] = {unit for unit, status in ended.items() if status != "SENT"} - waits
        self.tell(listed, gap, taken, twice, unfinished, waits)
        return judge(wrong, lambda unit: (ended.get(unit, ""), taken.get(unit, "")))

    def tell(self, listed, gap, taken, twice, unfinished, waits):
        sent_before = sum(1 for unit in listed if unit in twice)
        for count, what in (
            (len(self.accepted), "pushes and events were answered with 202"),
            (len(self.restored), "pushes and notifications were held by the restored database"),
            (len(unfinished), "of them had not ended"),
            (len(listed), "were held as possibly sent"),
            (len(gap), "pushes and events were accepted in the gap, and handed in again"),
            (len(taken), "pushes and notifications were taken by their receivers"),
            (len(twice), "of them twice, knowingly or not"),
            (sent_before, "of those were listed as possibly sent and released"),
            (len(waits), "wait for a sending window"),
        ):
            print(f"{count:6} {what}")


def main():
    books = Drill(sys.argv[1])
    if "--gap" in sys.argv:
        for what, name in books.gap():
            print(what, name)
        return 0
    return 1 if books.account("--released" in sys.argv) else 0


if __name__ == "__main__":
    sys.exit(main())
