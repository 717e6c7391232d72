"""Events are put in order, as far as they come in time."""

import random
import unittest
from datetime import datetime, timedelta, timezone

from postrider_webhooks import Newest, Reorderer, ReordererFull

from .samples import notification

START = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


class NewestTest(unittest.TestCase):
    def test_what_is_older_than_the_newest_of_its_subject_is_not_accepted(self) -> None:
        newest = Newest()
        for subject, timestamp, wanted in (
            ("a", START, True),
            ("a", START + SECOND, True),
            ("a", START, False),
            ("a", START + SECOND, True),
            ("b", START, True),
            ("a", START + timedelta(milliseconds=999), False),
        ):
            self.assertEqual(newest.accept(subject, timestamp), wanted)

    def test_the_subject_that_was_quiet_for_longest_is_forgotten(self) -> None:
        newest = Newest(max_subjects=2)
        for subject in ("a", "b", "a", "c"):
            newest.accept(subject, START)
        self.assertEqual(len(newest), 2)
        self.assertFalse(newest.accept("a", START - SECOND))
        self.assertTrue(newest.accept("b", START - SECOND))

    def test_without_room_it_is_an_error_of_configuration(self) -> None:
        with self.assertRaises(ValueError):
            Newest(max_subjects=0)


class ReordererTest(unittest.TestCase):
    def test_what_has_waited_comes_out_by_time_and_then_id(self) -> None:
        reorderer = Reorderer(timedelta(seconds=5))
        for identifier, second in (("b", 2), ("c", 1), ("a", 2), ("d", 3)):
            reorderer.push(notification(identifier, second), now=10)
        self.assertEqual(reorderer.ready(now=14.9), [])
        self.assertEqual([one.id for one in reorderer.ready(now=15)], ["c", "a", "b", "d"])
        self.assertEqual(len(reorderer), 0)

    def test_what_happened_before_comes_along_and_what_happened_after_waits(self) -> None:
        reorderer = Reorderer(timedelta(seconds=5))
        reorderer.push(notification("second", 2), now=0)
        reorderer.push(notification("first", 1), now=4)
        reorderer.push(notification("third", 3), now=4)
        self.assertEqual([one.id for one in reorderer.ready(now=5)], ["first", "second"])
        self.assertEqual([one.id for one in reorderer.ready(now=9)], ["third"])

    def test_every_order_of_arrival_within_the_delay_ends_in_the_same_order(self) -> None:
        chance = random.Random(6)
        events = [notification(f"e{number:02}", number // 3) for number in range(60)]
        for _ in range(20):
            shuffled = chance.sample(events, len(events))
            reorderer, found = Reorderer(timedelta(seconds=1)), []
            for event in shuffled:
                reorderer.push(event, now=0)
            found.extend(reorderer.ready(now=1))
            self.assertEqual(found, events)

    def test_it_is_full_and_says_so_until_something_was_taken(self) -> None:
        reorderer = Reorderer(timedelta(0), max_waiting=1)
        reorderer.push(notification("a"), now=0)
        with self.assertRaises(ReordererFull):
            reorderer.push(notification("b"), now=0)
        self.assertEqual([one.id for one in reorderer.drain()], ["a"])
        reorderer.push(notification("b"), now=0)

    def test_limits_that_are_none_are_errors_of_configuration(self) -> None:
        with self.assertRaises(ValueError):
            Reorderer(timedelta(seconds=-1))
        with self.assertRaises(ValueError):
            Reorderer(timedelta(0), max_waiting=0)
