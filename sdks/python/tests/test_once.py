"""A notification is processed once, and again when that failed."""

import asyncio
import contextlib
import sqlite3
import tempfile
import threading
import unittest
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from postrider_webhooks import MemoryStore, Notification, SqlStore, process_once, scoped_key

from .samples import notification


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Failed(Exception):
    """Of a handler."""


def fail(_: Notification) -> None:
    raise Failed


class ProcessOnceTest(unittest.TestCase):
    def test_a_repetition_is_not_processed_again(self) -> None:
        store = MemoryStore()
        seen: list[Notification] = []
        for wanted in (True, False, False):
            self.assertEqual(process_once(store, notification("a"), seen.append), wanted)
        self.assertTrue(process_once(store, notification("b"), seen.append))
        self.assertEqual([one.id for one in seen], ["a", "b"])

    def test_a_handler_that_fails_is_called_again(self) -> None:
        store = MemoryStore()
        seen: list[Notification] = []
        with self.assertRaises(Failed):
            process_once(store, notification("a"), fail)
        self.assertTrue(process_once(store, notification("a"), seen.append))

    def test_two_subscriptions_can_have_the_same_event(self) -> None:
        store, event = MemoryStore(), notification("a")
        keys = [scoped_key(scope, event) for scope in ("", "billing", "dns", "billing")]
        self.assertEqual(keys[0], "a")
        results = [process_once(store, event, lambda _: None, key=key) for key in keys]
        self.assertEqual(results, [True, True, True, False])

    def test_a_key_that_cannot_be_removed_does_not_hide_why_the_handler_failed(self) -> None:
        class Broken(MemoryStore):
            def remove(self, key: str) -> None:
                raise RuntimeError("the transaction is aborted")

        with self.assertLogs("postrider_webhooks", "WARNING"), self.assertRaises(Failed):
            process_once(Broken(), notification("a"), fail)

    def test_an_interrupted_handler_is_called_again(self) -> None:
        for interruption in (KeyboardInterrupt, SystemExit, asyncio.CancelledError):

            def interrupted(_: Notification, kind: type[BaseException] = interruption) -> None:
                raise kind

            store = MemoryStore()
            with self.assertRaises(interruption):
                process_once(store, notification("a"), interrupted)
            self.assertEqual(len(store), 0)

    def test_a_handler_that_no_caller_would_await_is_refused(self) -> None:
        async def handler(_: Notification) -> None:
            self.fail("it is not awaited")

        store = MemoryStore()
        with self.assertRaises(TypeError) as caught:
            process_once(store, notification("a"), handler)
        self.assertIn("to_thread", str(caught.exception))
        self.assertEqual(len(store), 0)

    def test_exactly_one_of_many_threads_processes(self) -> None:
        store, barrier = MemoryStore(), threading.Barrier(8)
        seen: list[Notification] = []

        def work() -> None:
            barrier.wait()
            for number in range(200):
                process_once(store, notification(str(number)), seen.append)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), 200)


class MemoryStoreTest(unittest.TestCase):
    def test_the_oldest_key_makes_room(self) -> None:
        store = MemoryStore(max_entries=2)
        for key in ("a", "b", "c"):
            self.assertTrue(store.add(key))
        self.assertEqual(len(store), 2)
        self.assertFalse(store.add("c"))
        self.assertTrue(store.add("a"))

    def test_keys_are_forgotten_with_age_and_not_before(self) -> None:
        clock = Clock()
        store = MemoryStore(max_age=timedelta(days=35), clock=clock)
        store.add("a")
        clock.now += 35 * 86_400
        self.assertFalse(store.add("a"))
        clock.now += 1
        self.assertTrue(store.add("a"))

    def test_removing_what_is_not_there_is_no_error(self) -> None:
        MemoryStore().remove("a")

    def test_a_store_without_room_is_an_error_of_configuration(self) -> None:
        with self.assertRaises(ValueError):
            MemoryStore(max_entries=0)
        for age in (timedelta(0), timedelta(days=-1)):
            with self.assertRaises(ValueError):
                MemoryStore(max_age=age)


class SqlStoreTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "seen.db"
        self.connection = self.connect()
        self.store = SqlStore(self.connection, "sqlite")
        self.store.create_table()
        self.connection.execute("CREATE TABLE work (id TEXT)")
        self.connection.commit()

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, timeout=240, check_same_thread=False)
        self.addCleanup(connection.close)
        return connection

    @contextlib.contextmanager
    def restarted(self) -> Iterator[SqlStore]:
        """The same file, as another process would find it: with what was committed."""
        connection = sqlite3.connect(self.file, timeout=240)
        try:
            yield SqlStore(connection, "sqlite")
            connection.commit()
        finally:
            connection.close()

    def write(self, event: Notification) -> None:
        self.connection.execute("INSERT INTO work VALUES (?)", (event.id,))

    def work(self) -> list[str]:
        return [row[0] for row in self.connection.execute("SELECT id FROM work")]

    def test_work_and_key_are_committed_together(self) -> None:
        for wanted in (True, False):
            with self.connection:
                self.assertEqual(process_once(self.store, notification("a"), self.write), wanted)
        with self.restarted() as store:
            self.assertFalse(store.add("a"))
        self.assertEqual(self.work(), ["a"])

    def test_a_failure_rolls_back_work_and_key(self) -> None:
        def write_and_fail(event: Notification) -> None:
            self.write(event)
            raise Failed

        with self.assertRaises(Failed), self.connection:
            process_once(self.store, notification("a"), write_and_fail)
        self.assertEqual(self.work(), [])
        with self.connection:
            self.assertTrue(process_once(self.store, notification("a"), self.write))

    def test_nothing_is_committed_by_the_store(self) -> None:
        self.store.add("a")
        self.connection.rollback()
        with self.restarted() as store:
            self.assertTrue(store.add("a"))

    def test_of_several_connections_one_adds_a_key(self) -> None:
        new: list[str] = []
        barrier = threading.Barrier(4)

        def work() -> None:
            connection = self.connect()
            store = SqlStore(connection, "sqlite")
            barrier.wait()
            for number in range(25):
                with connection:
                    if store.add(str(number)):
                        new.append(str(number))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(new, key=int), [str(number) for number in range(25)])

    def test_old_keys_are_pruned(self) -> None:
        clock = Clock()
        store = SqlStore(self.connection, "sqlite", clock=clock)
        store.add("old")
        clock.now += 35 * 86_400 + 1
        store.add("new")
        self.assertEqual(store.prune(), 1)
        self.assertTrue(store.add("old"))
        self.assertFalse(store.add("new"))

    def test_names_of_tables_dialects_and_keys_are_checked(self) -> None:
        SqlStore(self.connection, "postgresql", table="hooks.seen")
        for table in ("", "a b", "a;drop table work", "1a", "a.b.c", 'a"', "é", "a\n"):
            with self.subTest(table), self.assertRaises(ValueError):
                SqlStore(self.connection, "sqlite", table=table)
        with self.assertRaises(ValueError) as caught:
            SqlStore(self.connection, "oracle")
        self.assertIn("mysql, postgresql, sqlite", str(caught.exception))
        with self.assertRaises(ValueError):
            self.store.add("x" * 256)

    def test_another_table_can_be_used(self) -> None:
        store = SqlStore(self.connection, "sqlite", table="other")
        store.create_table()
        store.create_table()
        self.assertTrue(store.add("a"))
        self.assertTrue(self.store.add("a"))
