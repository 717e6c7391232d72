-- What waits to be sent again and was accepted before that was delivered, and stays so.
WITH found AS (
    SELECT n.id, n.status, n.lease_token IS NOT NULL AS claimed,
           CASE WHEN n.status = 'GIVEN_UP' AND n.reason = 'CANCELLED' THEN n.finished_at END AS cancelled_at,
           (SELECT max(a.started_at + coalesce(a.millis, 0) * interval '1 millisecond') FROM delivery_attempts a
            WHERE a.notification_id = n.id AND a.number <= n.resent_after AND a.status = 'OK') AS delivered_at
    FROM notifications n WHERE n.id = ANY ($1)),
cancelled AS (
    UPDATE notifications n
    SET status = CASE WHEN f.delivered_at IS NULL THEN 'GIVEN_UP' ELSE 'SENT' END,
        reason = CASE WHEN f.delivered_at IS NULL THEN 'CANCELLED' END, next_attempt_at = NULL,
        leased_until = NULL, slot_at = NULL, finished_at = coalesce(f.delivered_at, $2), updated_at = $2
    FROM found f
    WHERE n.id = f.id AND NOT f.claimed AND f.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
      AND ($5::text IS NULL OR f.status = $5)
    RETURNING n.id, n.subscription_id, n.reseller_id, n.event_type, n.attempts, f.delivered_at),
letter AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                              event_type, target, attempts, detail, state, resolved_at, resolved_by, note)
    SELECT 'reseller', 'GIVEN_UP', 'delivery/cancelled', c.id, c.subscription_id, c.reseller_id,
           c.event_type, coalesce(endpoint_of(s.url), ''), c.attempts, 'cancelled by ' || $3, 'DISCARDED',
           $2, $3, coalesce(nullif(btrim($4), ''), 'cancelled')
    FROM cancelled c LEFT JOIN subscriptions s ON s.id = c.subscription_id
    WHERE c.delivered_at IS NULL)
SELECT f.status AS "status!", f.claimed AS "claimed!", c.id IS NOT NULL AS "cancelled!",
       c.delivered_at IS NOT NULL AS "delivered!", c.reseller_id AS "reseller_id?",
       f.cancelled_at AS "cancelled_at?",
       CASE WHEN f.cancelled_at IS NOT NULL THEN (
           SELECT resolved_by FROM dead_letters WHERE notification_id = f.id AND fingerprint = 'delivery/cancelled' LIMIT 1)
       END AS "cancelled_by?"
FROM found f LEFT JOIN cancelled c ON c.id = f.id
