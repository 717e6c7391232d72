WITH found AS (
    SELECT n.id, n.attempts, n.reason,
           -- Also what a service has rescued that was started too early: its last attempt began, and how it ended is not known.
           CASE WHEN n.lease_token IS NOT NULL OR n.reason = 'delivery/lease-lost' THEN 'sending'
                WHEN n.status = 'IN_MEMORY' THEN 'queued' ELSE lower(n.status) END AS class
    FROM UNNEST($1::uuid[]) AS i(id) JOIN notifications n ON n.id = i.id
    WHERE n.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
    ORDER BY n.id FOR UPDATE OF n),
ended AS (
    UPDATE notifications n
    SET status = 'GIVEN_UP', reason = 'delivery/possibly-sent', lease_token = NULL, leased_until = NULL, next_attempt_at = NULL,
        slot_at = NULL, finished_at = $2, updated_at = $2
    FROM found f WHERE n.id = f.id
    RETURNING n.id, n.subscription_id, n.reseller_id, n.event_type, n.attempts, f.class, f.reason AS waited_for),
attempt AS (
    UPDATE delivery_attempts a
    SET status = 'ERROR', error_type = 'OTHER', fingerprint = 'delivery/possibly-sent',
        error = 'the database was restored to a moment before an outcome was recorded; the notification may have been delivered'
    FROM found f
    WHERE f.class = 'sending' AND a.notification_id = f.id AND a.number = f.attempts AND a.status = 'IN_PROCESS'),
letter AS (
    -- An error of ours, so that no recovery of an endpoint sends it again by itself.
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id, event_type, target,
                              attempts, error_type, detail)
    SELECT 'reseller', 'GIVEN_UP', 'recovery/possibly-sent/' || e.class, e.id, e.subscription_id, e.reseller_id, e.event_type,
           coalesce(endpoint_of(s.url), ''), e.attempts, 'OTHER',
           'it was ' || e.class || coalesce(' (' || e.waited_for || ')', '')
           || ' at the moment that the database was restored to, and may have been delivered since'
    FROM ended e LEFT JOIN subscriptions s ON s.id = e.subscription_id)
SELECT count(*) AS "count!" FROM ended
