"""Seen keys in a table of your database, through any driver that follows PEP 249 (DB-API 2.0)."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .once import DEFAULT_SEEN_AGE

#: What the column takes. MySQL may cut a longer key short instead of refusing it.
_MAX_KEY_CHARACTERS = 255
_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?", re.ASCII)


@dataclass(frozen=True)
class _Dialect:
    """How a database spells what it is asked.

    ``{table}`` and ``{parameter}`` stand for the table and for a parameter.
    """

    parameter: str
    create: str = (
        "CREATE TABLE IF NOT EXISTS {table}"
        " (notification_key VARCHAR(255) PRIMARY KEY, seen_at BIGINT NOT NULL)"
    )
    add: str = (
        "INSERT INTO {table} (notification_key, seen_at) VALUES ({parameter}, {parameter})"
        " ON CONFLICT DO NOTHING"
    )
    remove: str = "DELETE FROM {table} WHERE notification_key = {parameter}"
    prune: str = "DELETE FROM {table} WHERE seen_at < {parameter}"


_DIALECTS = {
    # From 3.24.
    "sqlite": _Dialect("?"),
    # From 9.5, with psycopg, psycopg2 or pg8000.
    "postgresql": _Dialect("%s"),
    # MySQL from 5.7, and MariaDB, with mysqlclient, PyMySQL or mysql-connector-python.
    "mysql": _Dialect(
        "%s",
        # By default it would compare without regard to case.
        create=(
            "CREATE TABLE IF NOT EXISTS {table} (notification_key VARCHAR(255)"
            " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, seen_at BIGINT NOT NULL)"
        ),
        add=(
            "INSERT IGNORE INTO {table} (notification_key, seen_at)"
            " VALUES ({parameter}, {parameter})"
        ),
    ),
}


class SqlStore:
    """Remembers keys in a table::

        CREATE TABLE seen_notifications (
            notification_key VARCHAR(255) PRIMARY KEY,
            seen_at          BIGINT NOT NULL  -- seconds since 1970
        )

    It works on a connection of yours and **never commits**: what is remembered and what you do
    because of it are one transaction, and this is the one way to process a notification exactly
    once::

        with connection:  # commits, or rolls back when anything is raised
            process_once(SqlStore(connection, "sqlite"), notification, handler)

    Another transaction that adds the same key waits until this one has ended. With PostgreSQL, a
    handler that catches an error of the database must have set a savepoint and roll back to it: if
    not, the commit undoes everything, the key included, and says nothing. A store is as safe to
    share between threads as its connection is. ``dialect`` is ``sqlite``, ``postgresql`` or
    ``mysql``; ``table`` is a name of letters, digits and underscores, with a schema and a full stop
    before it if need be; ``clock`` gives the seconds since 1970.
    """

    def __init__(
        self,
        connection: Any,
        dialect: str,
        *,
        table: str = "seen_notifications",
        clock: Callable[[], float] = time.time,
    ) -> None:
        if dialect not in _DIALECTS:
            raise ValueError(f"no dialect {dialect!r}; there are {', '.join(sorted(_DIALECTS))}")
        # It becomes a part of statements, where no parameter can stand.
        if _TABLE_NAME.fullmatch(table) is None:
            raise ValueError(
                f"{table!r} is no name of a table; use letters, digits and underscores"
            )
        self._connection = connection
        self._dialect = _DIALECTS[dialect]
        self._table = table
        self._clock = clock

    def create_table(self) -> None:
        """Makes the table unless it is there."""
        self._execute(self._dialect.create)

    def add(self, key: str) -> bool:
        """Remembers a key of at most 255 characters and says whether it is new."""
        if len(key) > _MAX_KEY_CHARACTERS:
            raise ValueError(
                f"a key has {len(key)} characters, more than {_MAX_KEY_CHARACTERS}; use a shorter scope"
            )
        return self._execute(self._dialect.add, key, int(self._clock())) == 1

    def remove(self, key: str) -> None:
        """Forgets a key.

        In a transaction that has failed there is nothing to forget: roll it back.
        """
        self._execute(self._dialect.remove, key)

    def prune(self, age: timedelta = DEFAULT_SEEN_AGE) -> int:
        """Forgets the keys that are older than this and says how many.

        Call it once a day, and commit.
        """
        return self._execute(self._dialect.prune, int(self._clock() - age.total_seconds()))

    def _execute(self, statement: str, *parameters: object) -> int:
        text = statement.format(table=self._table, parameter=self._dialect.parameter)
        cursor = self._connection.cursor()
        try:
            cursor.execute(text, parameters)
            return int(cursor.rowcount)
        finally:
            cursor.close()
