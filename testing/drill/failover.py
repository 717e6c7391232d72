"""Accounts for every push and event of a fail-over, as Markdown: the callers' book, the receivers' books and what the database holds.

usage: failover.py FOLDER [PAGE]     exits 1 when something is wrong with the books. Else a PAGE has them between its marks, dated

FOLDER has accepted.jsonl (what was answered with 202, and when), ended.tsv (what the database holds at the end: lane, name, path of the
endpoint, status), attempts.tsv (lane, name, path, when it began, how it ended: OK, or UNKNOWN where the request may have arrived), and
faults.tsv (when, and what was done). SWRVE_SIM_URL and RECEIVER_URL are the receivers.
"""

import collections
import datetime
import itertools
import pathlib
import re
import sys

from books import Books, arrivals, handed_in, judge

MARKS = re.compile(r"(<!-- books -->\n).*(<!-- /books -->)", re.DOTALL)


def pause(times, begin, end):
    """The longest part of the time between two moments that had none."""
    inside = [begin, *(time for time in sorted(times) if begin < time < end), end]
    return max(after - before for before, after in itertools.pairwise(inside))


class Failover(Books):
    def __init__(self, folder):
        super().__init__(folder)
        self.faults = [(float(at), what) for at, what in self.table("faults.tsv")]
        self.ended = self.rows("ended.tsv")
        self.attempts = collections.defaultdict(list)
        for lane, name, path, at, end in self.table("attempts.tsv"):
            self.attempts[lane, name, path].append((float(at), end))
        self.taken = arrivals()

    def wrong(self):
        waits = {unit for unit, status in self.ended.items() if status == "SCHEDULED"}
        return {
            "was accepted, and is not there": self.accepted - handed_in(self.ended),
            "was never taken by its receiver": {unit for unit in set(self.ended) - waits if unit not in self.taken},
            "is neither SENT nor waits for its window": {unit for unit, status in self.ended.items() if status != "SENT"} - waits,
            "was taken more often than its attempts explain": {
                unit for unit, numbers in self.taken.items() if len(numbers) > len(self.attempts[unit])
            },
        }

    def twice(self):
        return sorted(unit for unit, numbers in self.taken.items() if len(numbers) > 1)

    def pauses(self):
        """Of each fault the longest time in which nothing was accepted, in which no push and in which no notification was sent."""
        accepted = [line["at"] for line in self.lines]
        sent = {"push": [], "reseller": []}
        for (lane, _, _), made in self.attempts.items():
            sent[lane] += [at for at, end in made if end == "OK"]
        ends = [at for at, _ in self.faults[1:]] + [max(accepted)]
        for (begin, what), end in zip(self.faults, ends, strict=True):
            yield what, [pause(times, begin, end) for times in (accepted, sent["push"], sent["reseller"])]

    def markdown(self):
        yield "| what was done | nothing accepted for | no push sent for | no notification sent for |"
        yield "|---|---|---|---|"
        for what, times in self.pauses():
            yield f"| {what} | " + " | ".join(f"{time:.1f} s" for time in times) + " |"
        yield ""
        yield "| count | of |"
        yield "|---|---|"
        stored = handed_in(self.ended)
        for count, what in (
            (len(self.accepted), "pushes and events that were answered with 202"),
            (len(stored - self.accepted), "that were stored, although their callers had no answer"),
            (len(self.ended), "pushes and notifications that the database holds"),
            (len(self.taken), "that their receivers took"),
            (sum(1 for status in self.ended.values() if status == "SCHEDULED"), "pushes that wait for their window"),
            (len(self.twice()), "that their receivers took twice" + (", named below" if self.twice() else "")),
            (len(self.accepted - stored), "lost"),
        ):
            yield f"| {count:,} | {what} |"
        if self.twice():
            yield ""
            yield "| taken twice | attempts |"
            yield "|---|---|"
            for unit in self.twice():
                yield f"| `{' '.join(filter(None, unit))}` | {self.story(unit)} |"

    def story(self, unit):
        made = sorted(self.attempts[unit])
        return ", ".join(f"{'delivered' if end == 'OK' else 'outcome not known'} {self.after(at)}" for at, end in made)

    def after(self, moment):
        """How long after which fault."""
        before = [(at, what) for at, what in self.faults if at <= moment]
        return f"{moment - before[-1][0]:.1f} s after: {before[-1][1]}" if before else "before any of it"


def keep(page, lines):
    text = page.read_text(encoding="utf-8")
    dated = "\n".join([f"On {datetime.date.today()}:", "", *lines, ""])
    page.write_text(MARKS.sub(lambda marks: marks[1] + dated + marks[2], text), encoding="utf-8")


def main():
    books = Failover(sys.argv[1])
    lines = list(books.markdown())
    print("\n".join(lines), end="\n\n")
    if judge(books.wrong(), lambda unit: (books.ended.get(unit, ""), books.taken.get(unit, ""))):
        return 1
    if len(sys.argv) > 2:
        keep(pathlib.Path(sys.argv[2]), lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
