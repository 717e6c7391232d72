-- As `cancel_notifications` has it: what waits to be sent again and was accepted before that was delivered, and stays so.
WITH pending AS (
    SELECT id, status, reason, resent_after FROM notifications
    WHERE subscription_id = $1 AND status = 'PENDING' AND id < $2 AND coalesce(resent_at, created_at) < $3
    ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED),
scheduled AS (
    SELECT id, status, reason, resent_after FROM notifications
    WHERE subscription_id = $1 AND status = 'SCHEDULED' AND id < $2 AND coalesce(resent_at, created_at) < $3
    ORDER BY next_attempt_at, id LIMIT $4 FOR UPDATE SKIP LOCKED),
retries AS (
    SELECT id, status, reason, resent_after FROM notifications
    WHERE subscription_id = $1 AND status = 'RETRY' AND id < $2 AND coalesce(resent_at, created_at) < $3
    ORDER BY next_attempt_at, id LIMIT $4 FOR UPDATE SKIP LOCKED),
waited AS MATERIALIZED (
    SELECT w.*, CASE WHEN w.resent_after > 0 THEN
               (SELECT max(a.started_at + coalesce(a.millis, 0) * interval '1 millisecond') FROM delivery_attempts a
                WHERE a.notification_id = w.id AND a.number <= w.resent_after AND a.status = 'OK') END AS delivered_at
    FROM (SELECT * FROM pending UNION ALL SELECT * FROM scheduled UNION ALL SELECT * FROM retries) w),
ended AS (
    UPDATE notifications n
    SET status = CASE WHEN w.delivered_at IS NULL THEN 'GIVEN_UP' ELSE 'SENT' END,
        reason = CASE WHEN w.delivered_at IS NULL THEN 'EXPIRED' END, next_attempt_at = NULL, slot_at = NULL,
        finished_at = coalesce(w.delivered_at, $5), updated_at = $5
    FROM waited w
    WHERE n.id = w.id
    RETURNING n.id, n.subscription_id, n.reseller_id, n.event_type, n.attempts, w.status AS waited_as,
              w.reason AS waited_for, w.delivered_at),
letter AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                              event_type, target, attempts, detail)
    SELECT 'reseller', 'GIVEN_UP', 'delivery/expired', e.id, e.subscription_id, e.reseller_id, e.event_type,
           coalesce(endpoint_of(s.url), ''), e.attempts,
           'waited for too long, as ' || e.waited_as || coalesce(' (' || e.waited_for || ')', '')
    FROM ended e LEFT JOIN subscriptions s ON s.id = e.subscription_id
    WHERE e.delivered_at IS NULL)
SELECT count(*) AS "count!", count(*) FILTER (WHERE delivered_at IS NULL) AS "given_up!" FROM ended
