WITH input AS (
    SELECT DISTINCT ON (id, token) *
    FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bigint[],
                $7::integer[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
        AS i(id, token, status, next_attempt_at, started_at, millis, response_status, response_body,
             error_type, error, fingerprint, health)),
-- In the order of their ids, which a nested loop keeps. That a row is IN_MEMORY follows from its token, by a
-- constraint. Saying so would let the planner read everything that is leased instead of these rows by id.
completed AS (
    UPDATE notifications n
    SET status = i.status, reason = CASE WHEN i.status = 'SENT' AND n.reason = 'QUOTA' THEN n.reason ELSE i.fingerprint END,
        lease_token = NULL, leased_until = NULL, slot_at = NULL,
        next_attempt_at = i.next_attempt_at, updated_at = $13,
        finished_at = CASE WHEN i.status = 'SENT' THEN $13::timestamptz END
    FROM input i WHERE n.id = i.id AND n.lease_token = i.token
    RETURNING n.id, n.attempts, n.subscription_id, i.started_at, i.millis, i.response_status,
              i.response_body, i.error_type, i.error, i.fingerprint, i.health),
attempt AS (
    UPDATE delivery_attempts a
    SET status = CASE WHEN c.error_type IS NULL THEN 'OK' ELSE 'ERROR' END, started_at = c.started_at,
        millis = c.millis, response_status = c.response_status, response_body = c.response_body,
        error_type = c.error_type, error = c.error, fingerprint = c.fingerprint
    FROM completed c
    WHERE a.notification_id = c.id AND a.number = c.attempts),
-- What began before the present state says nothing about it: it may have been at another endpoint. Whether any of them began later
-- shows in the latest, so that each subscription is looked at once and not for each of its notifications.
signals AS (
    SELECT c.subscription_id, coalesce(c.succeeded_at >= s.state_changed_at, false) AS success
    FROM (SELECT subscription_id, max(started_at) AS tried_at,
                 max(started_at) FILTER (WHERE health = 'SUCCESS') AS succeeded_at
          FROM completed WHERE health IN ('SUCCESS', 'FAILURE') GROUP BY subscription_id) AS c
    -- `OFFSET 0` keeps it behind what was completed, as in the fast claim.
    CROSS JOIN LATERAL (
        SELECT state_changed_at, failing_since FROM subscriptions WHERE id = c.subscription_id OFFSET 0) AS s
    WHERE c.tried_at >= s.state_changed_at
      -- Success alone is news only to those that have failed.
      AND (NOT $14 OR s.failing_since IS NOT NULL)),
touched AS (
    SELECT s.id, s.state AS previous, g.success AS healed
    FROM signals g JOIN subscriptions s ON s.id = g.subscription_id
    WHERE s.deleted_at IS NULL AND CASE
        WHEN g.success THEN s.failing_since IS NOT NULL
        -- Every failing attempt need not be noted, only that it still fails.
        ELSE s.failing_since IS NULL OR s.last_failure_at IS NULL
             OR s.last_failure_at < $13::timestamptz - interval '10 seconds' END
    ORDER BY s.id
    -- Not the strongest lock: charging and mailing only need the key to stay.
    FOR NO KEY UPDATE OF s),
changed AS (
    UPDATE subscriptions s
    SET failing_since = CASE WHEN NOT t.healed THEN coalesce(s.failing_since, $13) END,
        last_failure_at = CASE WHEN t.healed THEN s.last_failure_at ELSE $13 END,
        state = CASE WHEN t.healed AND t.previous = 'DEGRADED' THEN 'ACTIVE' ELSE s.state END,
        state_reason = CASE WHEN t.healed AND t.previous = 'DEGRADED' THEN 'RECOVERED'
                            ELSE s.state_reason END,
        state_changed_at = CASE WHEN t.healed AND t.previous = 'DEGRADED' THEN $13
                                ELSE s.state_changed_at END,
        updated_at = $13
    FROM touched t WHERE s.id = t.id
    RETURNING CASE WHEN s.state <> t.previous THEN mail_state_change(s.id, t.previous, $13) END)
SELECT id AS "id!" FROM completed
