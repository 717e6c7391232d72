-- The lock keeps it inactive until this has ended: what is activated at this moment loses nothing. As
-- `cancel_notifications` has it, what waits to be sent again and was accepted before that was delivered, and stays so.
WITH inactive AS (
    SELECT id, CASE WHEN deleted_at IS NULL THEN 'SUBSCRIPTION_DEACTIVATED'
                    ELSE 'SUBSCRIPTION_DELETED' END AS reason,
           CASE WHEN deleted_at IS NULL THEN 'deactivated' ELSE 'deleted' END AS how,
           endpoint_of(url) AS target
    FROM subscriptions WHERE id = $1 AND (state = 'DEACTIVATED' OR deleted_at IS NOT NULL)
    FOR SHARE),
pending AS (
    SELECT id, resent_after FROM notifications
    WHERE subscription_id = $1 AND status = 'PENDING' AND EXISTS (SELECT FROM inactive)
    ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED),
scheduled AS (
    SELECT id, resent_after FROM notifications
    WHERE subscription_id = $1 AND status = 'SCHEDULED' AND EXISTS (SELECT FROM inactive)
    ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED),
retries AS (
    SELECT id, resent_after FROM notifications
    WHERE subscription_id = $1 AND status = 'RETRY' AND EXISTS (SELECT FROM inactive)
    ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED),
waited AS MATERIALIZED (
    SELECT w.id, CASE WHEN w.resent_after > 0 THEN
               (SELECT max(a.started_at + coalesce(a.millis, 0) * interval '1 millisecond') FROM delivery_attempts a
                WHERE a.notification_id = w.id AND a.number <= w.resent_after AND a.status = 'OK') END AS delivered_at
    FROM (SELECT * FROM pending UNION ALL SELECT * FROM scheduled UNION ALL SELECT * FROM retries) w),
ended AS (
    UPDATE notifications n
    SET status = CASE WHEN w.delivered_at IS NULL THEN 'GIVEN_UP' ELSE 'SENT' END,
        reason = CASE WHEN w.delivered_at IS NULL THEN (SELECT reason FROM inactive) END, next_attempt_at = NULL,
        slot_at = NULL, finished_at = coalesce(w.delivered_at, $3), updated_at = $3
    FROM waited w
    WHERE n.id = w.id
    RETURNING n.id, n.subscription_id, n.reseller_id, n.event_type, n.attempts, w.delivered_at),
letter AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                              event_type, target, attempts, detail, state, resolved_at, resolved_by, note)
    SELECT 'reseller', 'GIVEN_UP', 'delivery/subscription-' || i.how, e.id, e.subscription_id,
           e.reseller_id, e.event_type, i.target, e.attempts, 'its subscription was ' || i.how, 'DISCARDED',
           $3, 'postrider', 'its subscription was ' || i.how
    FROM ended e CROSS JOIN inactive i
    WHERE e.delivered_at IS NULL)
SELECT count(*) AS "count!", count(*) FILTER (WHERE delivered_at IS NULL) AS "given_up!" FROM ended
