WITH RECURSIVE waiting AS (
    (SELECT subscription_id, 1 AS place FROM notifications WHERE status = 'RETRY' AND subscription_id > $7
     ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT n.subscription_id FROM notifications n
            WHERE n.status = 'RETRY' AND n.subscription_id > w.subscription_id
            ORDER BY n.subscription_id LIMIT 1), w.place + 1
    FROM waiting w WHERE w.subscription_id IS NOT NULL AND w.place < $8),
sendable AS (
    SELECT s.id, s.requests_per_second IS NULL AS unpaced
    FROM waiting w JOIN subscriptions s ON s.id = w.subscription_id
    -- Those alone that have one due: the others must not make the shares smaller.
    WHERE (SELECT true FROM notifications n
           WHERE n.subscription_id = s.id AND n.status = 'RETRY' AND n.next_attempt_at <= $1 LIMIT 1)
      AND s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL
      AND NOT EXISTS (SELECT FROM subscription_sidelines l
                      WHERE l.subscription_id = s.id AND l.lane = 'retry'
                        AND (l.until > now() AND l.until <= now() + $5::interval
                             OR l.outage_until BETWEEN now() AND now() + $6::interval)
                      OFFSET 0)
      AND s.id NOT IN (SELECT UNNEST($9::uuid[]))),
-- As for first attempts.
share AS (
    SELECT LEAST($2, 2 * $3::bigint / GREATEST(count(*), 1) + 1) AS size FROM sendable),
read AS (
    SELECT s.id AS subscription_id, s.unpaced, o.id, o.status, o.next_attempt_at,
           count(*) OVER (PARTITION BY s.id) AS found, share.size,
           row_number() OVER (PARTITION BY s.id ORDER BY o.next_attempt_at, o.id) AS rank
    FROM share CROSS JOIN sendable s
    CROSS JOIN LATERAL (
        SELECT n.id, n.status, n.next_attempt_at FROM notifications n
        WHERE n.subscription_id = s.id AND n.status = 'RETRY'
          AND n.next_attempt_at <= $1
        ORDER BY n.next_attempt_at, n.id LIMIT share.size + 1) o),
overdue AS (
    SELECT id, status, next_attempt_at, unpaced, found > count(*) OVER (PARTITION BY subscription_id) AS more
    FROM (SELECT * FROM read WHERE rank <= size ORDER BY rank, next_attempt_at, id LIMIT $3) AS first_in_turn),
locked AS (
    SELECT n.id, o.more, o.more AND o.unpaced AS partly, o.next_attempt_at FROM overdue o
    -- As for first attempts.
    JOIN notifications n ON n.id = o.id AND n.status = o.status
    FOR UPDATE OF n SKIP LOCKED),
promoted AS (
    UPDATE notifications n
    SET status = 'IN_MEMORY', leased_until = now() + $4::interval, next_attempt_at = NULL, updated_at = $1,
        reason = CASE WHEN l.more THEN 'BACKLOG' END
    FROM locked l WHERE n.id = l.id
    RETURNING n.id, n.subscription_id, l.partly, l.next_attempt_at)
SELECT id, subscription_id, partly FROM (
    SELECT id, subscription_id, partly, next_attempt_at FROM promoted
    UNION ALL SELECT NULL, (SELECT subscription_id FROM waiting WHERE place = $8), NULL, NULL) AS row
ORDER BY next_attempt_at, id
