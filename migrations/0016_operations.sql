-- What operators do: bulk work on dead letters as durable jobs, and the audit log of everything that they changed.
SET LOCAL lock_timeout = '5s';

CREATE TABLE dead_letter_jobs (
    id          uuid        PRIMARY KEY,
    action      text        NOT NULL,
    status      text        NOT NULL DEFAULT 'RUNNING',
    filter      jsonb       NOT NULL,
    note        text,
    per_second  integer     NOT NULL,
    -- Letters that come later are not meant: whoever started the job has not seen them.
    until       timestamptz NOT NULL,
    cursor_at   timestamptz,
    cursor_id   uuid,
    matching    bigint      NOT NULL,
    examined    bigint      NOT NULL DEFAULT 0,
    done        bigint      NOT NULL DEFAULT 0,
    skipped     jsonb       NOT NULL DEFAULT '{}',
    created_by  text        NOT NULL,
    created_at  timestamptz NOT NULL,
    paced_to    timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    finished_at timestamptz,
    CONSTRAINT action_is_known CHECK (action IN ('REPLAY', 'DISCARD')),
    CONSTRAINT status_is_known CHECK (status IN ('RUNNING', 'PAUSED', 'COMPLETED', 'CANCELLED')),
    CONSTRAINT an_end_has_a_time CHECK ((status IN ('COMPLETED', 'CANCELLED')) = (finished_at IS NOT NULL)),
    CONSTRAINT discarding_has_a_reason CHECK (action <> 'DISCARD' OR coalesce(btrim(note), '') <> ''),
    CONSTRAINT rate_is_positive CHECK (per_second > 0),
    CONSTRAINT cursor_is_whole CHECK ((cursor_at IS NULL) = (cursor_id IS NULL))
) WITH (fillfactor = 50);

COMMENT ON COLUMN dead_letter_jobs.filter IS 'Which letters: the identifiers, or the filter as the API takes it.';
COMMENT ON COLUMN dead_letter_jobs.skipped IS 'Letters that were left alone, counted by reason.';
COMMENT ON COLUMN dead_letter_jobs.paced_to IS 'Up to when its rate is used up.';

CREATE INDEX dead_letter_jobs_unfinished ON dead_letter_jobs (id) WHERE finished_at IS NULL;

CREATE TABLE audit_log (
    id      uuid        PRIMARY KEY,
    at      timestamptz NOT NULL,
    actor   text        NOT NULL,
    action  text        NOT NULL,
    subject text        NOT NULL,
    note    text,
    details jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT actor_is_given CHECK (btrim(actor) <> ''),
    CONSTRAINT action_is_given CHECK (btrim(action) <> '')
);

COMMENT ON TABLE audit_log IS 'Who changed what, when and why. Written in the transaction of the change; never updated.';
COMMENT ON COLUMN audit_log.id IS 'A version 7 UUID: the log is read in its order.';
COMMENT ON COLUMN audit_log.actor IS 'The name and identifier of the API key, or of the command line''s user.';
COMMENT ON COLUMN audit_log.action IS 'Such as dead-letter.replay, lane.pause, push.cancel, broker.rebuild.';
COMMENT ON COLUMN audit_log.subject IS 'What was changed: kind and identifier, such as push/019aa2f0-….';

CREATE INDEX audit_log_subject ON audit_log (subject, id);
CREATE INDEX audit_log_actor ON audit_log (actor, id);

-- A replayed push has all of its attempts ahead of it, as a notification that is sent again has; a cancelled one says so.
ALTER TABLE push_notifications
    ADD COLUMN replayed_after integer NOT NULL DEFAULT 0,
    ADD COLUMN reason         text;
ALTER TABLE push_notifications
    ADD CONSTRAINT replays_are_counted CHECK (replayed_after BETWEEN 0 AND attempts) NOT VALID;

COMMENT ON COLUMN push_notifications.replayed_after IS 'Attempts before it was replayed last; further ones count from there.';
COMMENT ON COLUMN push_notifications.reason IS 'Why somebody has moved it by hand: REPLAYED or CANCELLED.';
