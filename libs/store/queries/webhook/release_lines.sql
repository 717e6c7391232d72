WITH line AS (
    SELECT i.id AS subscription_id,
           s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL
           AND NOT EXISTS (SELECT FROM subscription_sidelines l
                           WHERE l.subscription_id = i.id AND l.lane = 'first'
                             AND l.outage_until BETWEEN now() AND now() + $15::interval
                           OFFSET 0) AS sendable,
           coalesce(s.requests_per_second, $9) IS NOT NULL AS rated,
           CASE WHEN b.day > $4 THEN 0
                ELSE greatest(0, ceil(coalesce(s.daily_quota, $8)
                                      * CASE WHEN h.created_at < $14 AND coalesce(b.changed_at < $14, true)
                                             THEN $5::float8 ELSE 1 END)
                                 - greatest(0, b.used - b.quota::bigint * ($4 - b.day))) END AS by_quota,
           CASE WHEN coalesce(s.requests_per_second, $9) IS NOT NULL
                THEN greatest(0, ceil(coalesce(s.requests_per_second, $9) * extract(epoch FROM
                         now() + $10::interval - CASE WHEN p.next_slot_at > now() + interval '7 seconds' THEN now()
                                                      ELSE greatest(p.next_slot_at, now()) END))) END AS by_rate
    FROM UNNEST($1::uuid[]) AS i(id)
    -- `OFFSET 0` keeps these from being joined: a plan made while the tables were empty compared each of their rows with each of the lines.
    CROSS JOIN LATERAL (
        SELECT day, used, quota, changed_at FROM subscription_budgets WHERE subscription_id = i.id OFFSET 0) b
    CROSS JOIN LATERAL (
        SELECT state, suspended, deleted_at, daily_quota, requests_per_second FROM subscriptions
        WHERE id = i.id OFFSET 0) s
    LEFT JOIN LATERAL (SELECT next_slot_at FROM subscription_paces WHERE subscription_id = i.id OFFSET 0) p ON true
    LEFT JOIN LATERAL (
        SELECT n.created_at FROM notifications n
        WHERE n.subscription_id = i.id AND n.status = 'SCHEDULED'
        ORDER BY n.next_attempt_at, n.id LIMIT 1) h ON true),
room AS (
    SELECT *, CASE WHEN sendable THEN least(by_quota, by_rate, $2::bigint)::bigint ELSE 0 END AS count FROM line),
-- One more than may go tells whether the line goes on.
first AS (
    SELECT r.subscription_id, o.id, o.status, o.created_at,
           row_number() OVER (PARTITION BY r.subscription_id ORDER BY o.next_attempt_at, o.id) AS rank,
           r.count
    FROM room r
    CROSS JOIN LATERAL (
        SELECT n.id, n.status, n.created_at, n.next_attempt_at FROM notifications n
        WHERE n.subscription_id = r.subscription_id AND n.status = 'SCHEDULED'
        ORDER BY n.next_attempt_at, n.id LIMIT r.count + 1) o),
going AS (
    SELECT id, status FROM first WHERE rank <= count ORDER BY rank, created_at, id LIMIT $3),
locked AS (
    SELECT n.id FROM going g
    -- Not the name of the status: it would let the planner read all that wait instead of these by id.
    JOIN notifications n ON n.id = g.id AND n.status = g.status
    FOR UPDATE OF n SKIP LOCKED),
promoted AS (
    UPDATE notifications n
    SET status = 'IN_MEMORY', leased_until = now() + $6::interval, next_attempt_at = NULL, updated_at = $7
    FROM locked l WHERE n.id = l.id
    RETURNING n.id, n.subscription_id, n.created_at),
looked_at AS (
    UPDATE subscription_budgets b
    SET release_at = CASE
            WHEN found.count IS NULL THEN NULL
            WHEN NOT r.sendable THEN now() + $11::interval
            -- Held up by nothing but its share, or by those of the others.
            WHEN gone.count = $2::bigint THEN now() + interval '100 ms'
            WHEN coalesce(gone.count, 0) < least(r.count, found.count) THEN now() + interval '100 ms'
            WHEN r.rated AND r.by_quota > 0 THEN now() + $12::interval
            WHEN r.by_quota > 0 THEN now() + $13::interval
            ELSE now() + $11::interval END
    FROM room r
    LEFT JOIN (SELECT subscription_id, count(*) AS count FROM first GROUP BY subscription_id) AS found
        ON found.subscription_id = r.subscription_id
    LEFT JOIN (SELECT subscription_id, count(*) AS count FROM promoted GROUP BY subscription_id) AS gone
        ON gone.subscription_id = r.subscription_id
    -- An array of one is looked up, as in the claims.
    WHERE b.subscription_id = ANY (ARRAY[r.subscription_id]))
SELECT id AS "id!", subscription_id AS "subscription_id!" FROM promoted ORDER BY created_at, id
