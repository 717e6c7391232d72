-- Which services run, as they say themselves every few seconds. For people; no decision about a delivery is made on it.
SET LOCAL lock_timeout = '5s';

CREATE TABLE processes (
    id         uuid        NOT NULL,
    service    text        NOT NULL,
    host       text        NOT NULL,
    pid        integer     NOT NULL,
    version    text        NOT NULL,
    started_at timestamptz NOT NULL,
    beat_at    timestamptz NOT NULL,
    state      jsonb       NOT NULL,
    PRIMARY KEY (id, service)
) WITH (fillfactor = 50);

COMMENT ON COLUMN processes.id IS 'Of the process; several services may share one.';
COMMENT ON COLUMN processes.beat_at IS 'By the clock of the database, as started_at and the age that is made of it.';
COMMENT ON COLUMN processes.state IS
    'What it is missing, and its own counters, with those of the beat before: one row gives a rate.';

ALTER TABLE leases ADD COLUMN taken_at timestamptz;

COMMENT ON COLUMN leases.taken_at IS 'Since when its holder has it. For people only, as renewed_at.';
