"""An endpoint with Flask: each notification once into SQLite, and the newest state of each domain.

    pip install flask ./sdks/python
    WEBHOOK_SECRETS="whsec_…" python3 sdks/examples/python/flask_app.py

Under a server for production: ``gunicorn flask_app:app``. While a secret is replaced,
WEBHOOK_SECRETS holds both with a blank between them. DATABASE names the file, notifications.db
unless it is set.
"""

import json
import os
import sqlite3

import flask
from werkzeug.serving import make_server

from postrider_webhooks import SqlStore, VerificationError, Verifier, process_once

DATABASE = os.environ.get("DATABASE", "notifications.db")

app = flask.Flask(__name__)
# Far more than a notification has; it keeps a stranger from filling the memory. Flask answers 413.
app.config["MAX_CONTENT_LENGTH"] = 1 << 20
verifier = Verifier(os.environ["WEBHOOK_SECRETS"].split())


def database():
    """One connection for each request."""
    if "database" not in flask.g:
        flask.g.database = sqlite3.connect(DATABASE, timeout=30)
    return flask.g.database


@app.teardown_appcontext
def close_database(_):
    connection = flask.g.pop("database", None)
    if connection is not None:
        connection.close()


def create_tables():
    with database() as connection:
        SqlStore(connection, "sqlite").create_table()
        connection.execute(
            "CREATE TABLE IF NOT EXISTS inbox (id TEXT PRIMARY KEY, type TEXT, data TEXT)"
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS domains (name TEXT PRIMARY KEY, state TEXT, changed_at TEXT)"
        )


# [hook]
@app.post("/hooks")
def hook():
    try:
        # The body as it arrived: what request.get_json() gives is another message.
        notification = verifier.verify(flask.request.headers, flask.request.get_data())
    except VerificationError as error:
        print("refused", error.code, flush=True)
        return {"error": error.code}, 400 if error.code == "bad_body" else 401
    if notification.challenge:
        print("challenge", notification.id, flush=True)
        return notification.challenge
    # One transaction for the work and for the note that it is done. An exception rolls back both,
    # and Flask answers 500.
    with database() as connection:
        is_new = process_once(SqlStore(connection, "sqlite"), notification, store)
    print("new" if is_new else "seen", notification.type, notification.id, flush=True)
    return {}


# [/hook]


# [order]
def store(notification):
    """Whatever takes long is done later, from the inbox: the answer should not wait for it."""
    database().execute(
        "INSERT INTO inbox VALUES (?, ?, ?)",
        (notification.id, notification.type, json.dumps(notification.data)),
    )
    domain = notification.data.get("domain")
    if domain is None:
        return
    # A late notification changes nothing. Texts of one length and one offset sort as the times do.
    changed_at = notification.timestamp.isoformat(timespec="milliseconds")
    database().execute(
        "INSERT INTO domains VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET state = excluded.state, changed_at = excluded.changed_at"
        " WHERE changed_at <= excluded.changed_at",
        (domain["name"], notification.type, changed_at),
    )


# [/order]


with app.app_context():
    create_tables()

if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ.get("PORT", "8000")), app, threaded=True)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
