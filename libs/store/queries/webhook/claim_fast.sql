WITH due AS (
    SELECT n.id, n.subscription_id, s.url, s.version, s.failing_since IS NULL AS was_well,
           coalesce(s.daily_quota, $5) AS quota,
           n.reason IS NOT DISTINCT FROM 'BACKLOG' AS backlog,
           n.charged_on IS NULL OR (n.charged_on <> $7 AND n.attempts = 0) AS uncharged
    FROM UNNEST($1::uuid[]) AS i(id)
    JOIN notifications n ON n.id = i.id
    -- `OFFSET 0` keeps it behind the notifications. The planner takes next to no subscription to be left by the last
    -- condition, and joined all of them with all ids before it looked for notifications: 5,000 look-ups for 100 claims.
    CROSS JOIN LATERAL (
        SELECT url, version, failing_since, daily_quota FROM subscriptions
        WHERE id = n.subscription_id AND state IN ('ACTIVE', 'DEGRADED') AND deleted_at IS NULL AND NOT suspended
          AND coalesce(requests_per_second, $6) IS NULL
        OFFSET 0) AS s
    -- `CASE` keeps the planner to the ids: as conditions these would have it read all that is leased, waits or is to be retried along
    -- their indexes, which it takes for empty when the tables were last analysed while nothing waited.
    WHERE CASE n.status WHEN 'IN_MEMORY' THEN n.lease_token IS NULL WHEN 'PENDING' THEN true
          WHEN 'RETRY' THEN n.next_attempt_at <= $2 ELSE false END
      AND (SELECT enter_lane(l.name, l.changes) FROM lanes l WHERE l.name = 'reseller')
    ORDER BY n.id
    FOR UPDATE OF n),
-- Lists instead of rows, which would have to be joined again, each with each.
asked AS (
    SELECT subscription_id, url, version, was_well, quota, count(*) FILTER (WHERE uncharged) AS count,
           array_agg(id) AS ids, array_agg(backlog) AS backlogs
    FROM due GROUP BY subscription_id, url, version, was_well, quota ORDER BY subscription_id),
-- The condition holds for the row as it is when it is locked, whichever process charged it meanwhile. What is carried over from
-- earlier days is counted as in the whole claim.
charged AS (
    UPDATE subscription_budgets b
    SET day = $7, used = greatest(0, b.used - b.quota::bigint * ($7 - b.day)) + a.count, quota = a.quota
    FROM asked a
    -- An array of one is looked up, whatever the planner thinks. A plan made while the table was empty, and kept, read all of it for
    -- each claim, and compared each row with each.
    WHERE b.subscription_id = ANY (ARRAY[a.subscription_id]) AND a.count > 0 AND b.day <= $7 AND b.release_at IS NULL
      AND greatest(0, b.used - b.quota::bigint * ($7 - b.day)) + a.count <= a.quota
    RETURNING a.url, a.version, a.was_well, a.ids, a.backlogs),
granted AS (
    SELECT g.url, g.version, g.was_well, u.id, u.backlog
    FROM (SELECT * FROM charged
          UNION ALL SELECT url, version, was_well, ids, backlogs FROM asked WHERE count = 0) AS g
    CROSS JOIN LATERAL unnest(g.ids, g.backlogs) AS u(id, backlog)),
claimed AS (
    UPDATE notifications n
    SET status = 'IN_MEMORY', attempts = n.attempts + 1, lease_token = $3, next_attempt_at = NULL,
        leased_until = CASE
            WHEN n.leased_until BETWEEN now() + $4::interval AND now() + $4::interval + $8::interval
            THEN n.leased_until ELSE now() + $4::interval END,
        charged_on = CASE WHEN n.charged_on IS NULL OR (n.charged_on <> $7 AND n.attempts = 0) THEN $7
                          ELSE n.charged_on END,
        -- That it waited for the quota stays for its story, until an attempt fails.
        reason = CASE WHEN n.reason = 'QUOTA' AND n.attempts = 0 THEN n.reason END, updated_at = $2
    FROM granted g WHERE n.id = g.id
    RETURNING n.id, n.event, n.attempts, n.resent_after, n.resent_at, n.created_at, n.subscription_id, g.url, g.version,
              g.was_well, g.backlog),
attempt AS (
    INSERT INTO delivery_attempts (notification_id, number, status, started_at, url)
    SELECT id, attempts, 'IN_PROCESS', $2, url FROM claimed)
SELECT c.id AS "id!", c.attempts AS "attempts!", c.resent_after AS "resent_after!",
       c.subscription_id AS "subscription_id!", NULL::float8 AS wait, 'CLAIM' AS "verdict!",
       c.version AS "version!", c.was_well AS "was_well!", c.backlog AS "backlog!",
       e.event_id AS "event_id?", e.type AS "event_type?", e.body AS "body?", e.created_at AS "accepted_at?",
       e.traceparent,
       -- What a replay makes is younger than its event.
       (c.resent_at IS NOT NULL OR c.created_at > e.created_at) IS TRUE AS "again!"
FROM claimed c LEFT JOIN events e ON e.id = c.event
