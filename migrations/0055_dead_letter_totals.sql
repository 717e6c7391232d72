-- What is read again and again of a million dead letters costs as much as there are kinds of failures, however many days they are of: the
-- totals of each kind are kept as its tallies by the hour are (see 0015).
SET LOCAL lock_timeout = '5s';

-- No dead letter may come or change between the sum and the new function.
LOCK TABLE dead_letters IN SHARE ROW EXCLUSIVE MODE;

CREATE TABLE dead_letter_totals (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state       text   NOT NULL,
    lane        text   NOT NULL,
    reason      text   NOT NULL,
    fingerprint text   NOT NULL,
    target      text   NOT NULL,
    letters     bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE dead_letter_totals IS 'dead_letter_tallies summed over all hours; a count is the sum of its rows here too.';

CREATE INDEX dead_letter_totals_kind ON dead_letter_totals (state, lane, fingerprint, target, reason);

CREATE OR REPLACE FUNCTION change_dead_letter_tallies(changes dead_letter_tallies[]) RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    -- The lock reads a row as it is now, not as it was when the statement began.
    WITH found AS MATERIALIZED (
        SELECT c.state, c.lane, c.reason, c.fingerprint, c.target, c.hour, c.letters, free.id, free.letters AS before
        FROM unnest(changes) AS c LEFT JOIN LATERAL (
            SELECT t.id, t.letters FROM dead_letter_tallies t
            WHERE t.state = c.state AND t.lane = c.lane AND t.fingerprint = c.fingerprint AND t.target = c.target
              AND t.hour = c.hour AND t.reason = c.reason
            LIMIT 1 FOR UPDATE SKIP LOCKED) AS free ON true),
    changed AS (
        UPDATE dead_letter_tallies t SET letters = f.before + f.letters
        FROM found f WHERE t.id = f.id AND f.before + f.letters <> 0),
    emptied AS (
        DELETE FROM dead_letter_tallies t USING found f WHERE t.id = f.id AND f.before + f.letters = 0)
    INSERT INTO dead_letter_tallies (state, lane, reason, fingerprint, target, hour, letters)
    SELECT f.state, f.lane, f.reason, f.fingerprint, f.target, f.hour, f.letters FROM found f WHERE f.id IS NULL;
    WITH found AS MATERIALIZED (
        SELECT c.state, c.lane, c.reason, c.fingerprint, c.target, c.letters, free.id, free.letters AS before
        FROM (SELECT state, lane, reason, fingerprint, target, sum(letters)::bigint AS letters FROM unnest(changes)
              GROUP BY state, lane, reason, fingerprint, target HAVING sum(letters) <> 0) AS c
        LEFT JOIN LATERAL (
            SELECT t.id, t.letters FROM dead_letter_totals t
            WHERE t.state = c.state AND t.lane = c.lane AND t.fingerprint = c.fingerprint AND t.target = c.target
              AND t.reason = c.reason
            LIMIT 1 FOR UPDATE SKIP LOCKED) AS free ON true),
    changed AS (
        UPDATE dead_letter_totals t SET letters = f.before + f.letters
        FROM found f WHERE t.id = f.id AND f.before + f.letters <> 0),
    emptied AS (
        DELETE FROM dead_letter_totals t USING found f WHERE t.id = f.id AND f.before + f.letters = 0)
    INSERT INTO dead_letter_totals (state, lane, reason, fingerprint, target, letters)
    SELECT f.state, f.lane, f.reason, f.fingerprint, f.target, f.letters FROM found f WHERE f.id IS NULL;
END
$$;

CREATE OR REPLACE FUNCTION forget_dead_letter_tallies() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    TRUNCATE dead_letter_tallies, dead_letter_totals;
    RETURN NULL;
END
$$;

INSERT INTO dead_letter_totals (state, lane, reason, fingerprint, target, letters)
SELECT state, lane, reason, fingerprint, target, sum(letters) FROM dead_letter_tallies
GROUP BY state, lane, reason, fingerprint, target HAVING sum(letters) <> 0;
