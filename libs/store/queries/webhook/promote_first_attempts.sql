WITH RECURSIVE waiting AS (
    (SELECT subscription_id, 1 AS place FROM notifications WHERE status = 'PENDING' AND subscription_id > $7
     ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT n.subscription_id FROM notifications n
            WHERE n.status = 'PENDING' AND n.subscription_id > w.subscription_id
            ORDER BY n.subscription_id LIMIT 1), w.place + 1
    FROM waiting w WHERE w.subscription_id IS NOT NULL AND w.place < $8),
sendable AS (
    -- An engine does not come back for one whose requests per second are used up.
    SELECT s.id, s.requests_per_second IS NULL AS unpaced
    FROM waiting w JOIN subscriptions s ON s.id = w.subscription_id
    WHERE s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL
      -- `OFFSET 0` keeps it from being joined: a plan made while the table was empty compared each of its rows with each of these.
      AND NOT EXISTS (SELECT FROM subscription_sidelines l
                      WHERE l.subscription_id = s.id AND l.lane = 'first'
                        AND (l.until > now() AND l.until <= now() + $5::interval
                             OR l.outage_until BETWEEN now() AND now() + $6::interval)
                      OFFSET 0)
      -- Looked up in a hash of them.
      AND s.id NOT IN (SELECT UNNEST($9::uuid[]))),
-- What there may be room for of each. One more is read, so that it is known of each whether it has more.
share AS (
    SELECT LEAST($2, 2 * $3::bigint / GREATEST(count(*), 1) + 1) AS size FROM sendable),
read AS (
    SELECT s.id AS subscription_id, s.unpaced, o.id, o.status,
           count(*) OVER (PARTITION BY s.id) AS found, share.size,
           row_number() OVER (PARTITION BY s.id ORDER BY o.id) AS rank
    FROM share CROSS JOIN sendable s
    CROSS JOIN LATERAL (
        SELECT n.id, n.status FROM notifications n
        WHERE n.subscription_id = s.id AND n.status = 'PENDING' ORDER BY n.id LIMIT share.size + 1) o),
oldest AS (
    SELECT id, status, unpaced, found > count(*) OVER (PARTITION BY subscription_id) AS more
    -- The first one of each before the second of any.
    FROM (SELECT * FROM read WHERE rank <= size ORDER BY rank, id LIMIT $3) AS first_in_turn),
locked AS (
    SELECT n.id, o.more, o.more AND o.unpaced AS partly FROM oldest o
    -- Not the name of the status: it would let the planner read all that wait instead of these by id.
    JOIN notifications n ON n.id = o.id AND n.status = o.status
    FOR UPDATE OF n SKIP LOCKED),
promoted AS (
    UPDATE notifications n
    SET status = 'IN_MEMORY', leased_until = now() + $4::interval, updated_at = $1,
        reason = CASE WHEN l.more THEN 'BACKLOG' END
    FROM locked l WHERE n.id = l.id
    RETURNING n.id, n.subscription_id, l.partly)
SELECT id, subscription_id, partly FROM promoted
-- Last, where the next one goes on, unless this one has come to the end.
UNION ALL SELECT NULL, (SELECT subscription_id FROM waiting WHERE place = $8), NULL
ORDER BY id
