-- Dead letters by the million: lists that begin anywhere in the order of time, and counts that cost as much as there are
-- kinds of failures, not as there are letters.
SET LOCAL lock_timeout = '5s';

-- Whoever completes attempts waits until this is through: no letter may come between the count and the triggers.
LOCK TABLE dead_letters IN SHARE ROW EXCLUSIVE MODE;

-- Scheme, host and port of a URL: what failures of one receiver have in common. Credentials are left out.
CREATE FUNCTION endpoint_of(url text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN left(lower(regexp_replace(url, '^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*@)?([^/?#]*).*$', '\1\3')), 300);

-- What the letters so far are about. What indexes hold is cut, since an entry that is too long for them would be refused.
UPDATE dead_letters SET fingerprint = left(fingerprint, 300) WHERE length(fingerprint) > 300;
UPDATE dead_letters d
SET prototype = left(p.message_prototype_key, 200),
    target = coalesce((SELECT a.swrve_error_code::text FROM send_attempts a
                       WHERE a.push_notification_id = p.id AND a.number = d.attempts), '')
FROM push_notifications p
WHERE d.push_id = p.id;
UPDATE dead_letters d
SET reseller_id = n.reseller_id, subscription_id = n.subscription_id, event_type = n.event_type,
    target = coalesce((SELECT endpoint_of(a.url) FROM delivery_attempts a
                       WHERE a.notification_id = n.id AND a.number = d.attempts), '')
FROM notifications n
WHERE d.notification_id = n.id;

-- Each list is a range of one of these; those of one kind share all columns but the time. A letter that was resolved
-- stays in them, under another state.
CREATE INDEX dead_letters_by_reason ON dead_letters (state, lane, reason, created_at, id);
CREATE INDEX dead_letters_by_group ON dead_letters (state, lane, fingerprint, target, created_at, id);
CREATE INDEX dead_letters_by_subscription ON dead_letters (state, subscription_id, created_at, id)
    WHERE subscription_id IS NOT NULL;
CREATE INDEX dead_letters_by_reseller ON dead_letters (state, reseller_id, created_at, id)
    WHERE reseller_id IS NOT NULL;
CREATE INDEX dead_letters_by_event_type ON dead_letters (state, event_type, created_at, id)
    WHERE event_type IS NOT NULL;
CREATE INDEX dead_letters_by_prototype ON dead_letters (state, prototype, created_at, id)
    WHERE prototype IS NOT NULL;
DROP INDEX dead_letters_newest;
DROP INDEX dead_letters_fingerprint;

-- Letters come in bursts, and most of what happens to one later is that it is resolved.
ALTER TABLE dead_letters SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 1);

-- How many letters there are of each kind and hour, kept by triggers in the transaction that changes a letter. A count is
-- the sum of its rows: a change takes any row of the kind that nobody else is changing, or makes another one. So nobody
-- ever waits for a tally, and no two can wait for each other, in whatever order they change letters.
CREATE TABLE dead_letter_tallies (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state       text        NOT NULL,
    lane        text        NOT NULL,
    reason      text        NOT NULL,
    fingerprint text        NOT NULL,
    target      text        NOT NULL,
    hour        timestamptz NOT NULL,
    letters     bigint      NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

COMMENT ON COLUMN dead_letter_tallies.hour IS 'In which the letters were created; begins with the hour of UTC.';
COMMENT ON COLUMN dead_letter_tallies.letters IS
    'May be negative: letters may be counted off another row than the one that they were counted on.';

CREATE INDEX dead_letter_tallies_kind ON dead_letter_tallies (state, lane, fingerprint, target, hour, reason);

CREATE FUNCTION change_dead_letter_tallies(changes dead_letter_tallies[]) RETURNS void
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
END
$$;

CREATE FUNCTION hour_of(at timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN date_bin('1 hour', at, '2000-01-01 00:00:00+00');

-- The triggers fire for statements that touched no letter too, as most completions do: those pay a glance.
CREATE FUNCTION tally_dead_letters() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF EXISTS (SELECT FROM come) THEN
            PERFORM change_dead_letter_tallies(ARRAY(
                SELECT (0, state, lane, reason, fingerprint, target, hour_of(created_at), count(*))::dead_letter_tallies
                FROM come GROUP BY state, lane, reason, fingerprint, target, hour_of(created_at)));
        END IF;
    ELSIF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT FROM gone) THEN
            PERFORM change_dead_letter_tallies(ARRAY(
                SELECT (0, state, lane, reason, fingerprint, target, hour_of(created_at), -count(*))::dead_letter_tallies
                FROM gone GROUP BY state, lane, reason, fingerprint, target, hour_of(created_at)));
        END IF;
    ELSIF EXISTS (SELECT FROM come) THEN
        PERFORM change_dead_letter_tallies(ARRAY(
            SELECT (0, state, lane, reason, fingerprint, target, hour, sum(letters))::dead_letter_tallies
            FROM (SELECT state, lane, reason, fingerprint, target, hour_of(created_at) AS hour, 1 AS letters FROM come
                  UNION ALL
                  SELECT state, lane, reason, fingerprint, target, hour_of(created_at), -1 FROM gone) AS both_sides
            GROUP BY state, lane, reason, fingerprint, target, hour HAVING sum(letters) <> 0));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION forget_dead_letter_tallies() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    TRUNCATE dead_letter_tallies;
    RETURN NULL;
END
$$;

CREATE TRIGGER dead_letters_come AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS come
    FOR EACH STATEMENT EXECUTE FUNCTION tally_dead_letters();
CREATE TRIGGER dead_letters_change AFTER UPDATE ON dead_letters
    REFERENCING OLD TABLE AS gone NEW TABLE AS come
    FOR EACH STATEMENT EXECUTE FUNCTION tally_dead_letters();
CREATE TRIGGER dead_letters_go AFTER DELETE ON dead_letters
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION tally_dead_letters();
CREATE TRIGGER dead_letters_truncated AFTER TRUNCATE ON dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION forget_dead_letter_tallies();

INSERT INTO dead_letter_tallies (state, lane, reason, fingerprint, target, hour, letters)
SELECT state, lane, reason, fingerprint, target, hour_of(created_at), count(*)
FROM dead_letters GROUP BY state, lane, reason, fingerprint, target, hour_of(created_at);
