"""The ``SqlStore`` on PostgreSQL, as far as SQLite cannot show it: two transactions at once, and one that failed.

DATABASE_URL says where; everything is in a schema of its own, which is dropped at the end.
"""

import contextlib
import os
import threading
import unittest
import uuid

import psycopg
from postrider_webhooks import Notification, SqlStore, process_once

from python.tests.samples import notification


class PostgresqlTest(unittest.TestCase):
    def setUp(self) -> None:
        self.schema = f"sdks_{uuid.uuid4().hex}"
        self.connection = self.connect()
        self.connection.execute(f"CREATE SCHEMA {self.schema}")
        self.addCleanup(self.drop)
        self.store(self.connection).create_table()
        self.connection.execute(f"CREATE TABLE {self.schema}.work (id TEXT)")
        self.connection.commit()

    def connect(self) -> psycopg.Connection:
        connection = psycopg.connect(os.environ["DATABASE_URL"])
        self.addCleanup(connection.close)
        return connection

    def drop(self) -> None:
        self.connection.rollback()
        self.connection.execute(f"DROP SCHEMA {self.schema} CASCADE")
        self.connection.commit()

    def store(self, connection: psycopg.Connection) -> SqlStore:
        return SqlStore(connection, "postgresql", table=f"{self.schema}.seen_notifications")

    def write(self, event: Notification) -> None:
        self.connection.execute(f"INSERT INTO {self.schema}.work VALUES (%s)", (event.id,))

    def test_a_repetition_waits_for_the_transaction_of_the_first_and_counts_if_that_fails(
        self,
    ) -> None:
        for outcome in ("commit", "rollback"):
            other = self.connect()
            self.assertTrue(self.store(self.connection).add(outcome))
            found: list[bool] = []
            thread = threading.Thread(target=lambda: found.append(self.store(other).add(outcome)))
            thread.start()
            self.until_waiting(other.info.backend_pid)
            self.assertEqual(found, [])
            getattr(self.connection, outcome)()
            thread.join()
            self.assertEqual(found, [outcome == "rollback"])
            other.commit()

    def until_waiting(self, process: int) -> None:
        """Until the other transaction waits for a lock; the limit of the statement is far beyond."""
        watcher = self.connect()
        watcher.autocommit = True
        asked = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
        for _ in range(24_000):
            if watcher.execute(asked, (process,)).fetchone() == (True,):
                return
            watcher.execute("SELECT pg_sleep(0.01)")
        self.fail("the other transaction never waits")

    def test_a_handler_keeps_its_key_after_an_error_that_it_caught_only_with_a_savepoint(
        self,
    ) -> None:
        def catch_without(event: Notification) -> None:
            with contextlib.suppress(psycopg.errors.DivisionByZero):
                self.connection.execute("SELECT 1 / 0")

        def catch_with(event: Notification) -> None:
            with contextlib.suppress(psycopg.errors.DivisionByZero):
                with self.connection.transaction():
                    self.connection.execute("SELECT 1 / 0")

        store = self.store(self.connection)
        for handler, is_kept in ((catch_without, False), (catch_with, True)):
            self.assertTrue(process_once(store, notification("a"), handler))
            # Says nothing, although it is a rollback without the savepoint.
            self.connection.commit()
            self.assertEqual(store.add("a"), not is_kept)
            self.connection.rollback()

    def test_a_failed_statement_of_the_handler_is_what_the_caller_hears_of(self) -> None:
        def fail(event: Notification) -> None:
            self.write(event)
            self.connection.execute("SELECT 1 / 0")

        store = self.store(self.connection)
        # The transaction takes no statement any more, so that the key cannot be removed from it; nor need it be.
        with self.assertLogs("postrider_webhooks", "WARNING"):
            with self.assertRaises(psycopg.errors.DivisionByZero):
                process_once(store, notification("a"), fail)
        self.connection.rollback()
        self.assertTrue(process_once(store, notification("a"), self.write))
        self.assertFalse(process_once(store, notification("a"), self.write))
        self.connection.commit()
        work = self.connection.execute(f"SELECT id FROM {self.schema}.work").fetchall()
        self.assertEqual(work, [("a",)])
        self.assertEqual(store.prune(), 0)
