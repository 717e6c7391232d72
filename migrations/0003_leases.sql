-- One row per thing that only one replica may do at a time. `renewals` lets others watch, by their own monotonic clocks,
-- whether the holder is alive: nobody has to trust anybody's wall clock.
SET LOCAL lock_timeout = '5s';

CREATE TABLE leases (
    name       text        PRIMARY KEY,
    holder     uuid,
    epoch      bigint      NOT NULL DEFAULT 0,
    renewals   bigint      NOT NULL DEFAULT 0,
    renewed_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

COMMENT ON COLUMN leases.epoch IS 'Grows by one with every change of holder; writes that carry an old one are refused.';
COMMENT ON COLUMN leases.renewed_at IS 'For people only; no decision is made on it.';
