-- Locked in one order, so that two requests about the same ones wait for each other and never in a circle.
WITH found AS (
    SELECT n.id, n.subscription_id, n.event, n.event_type, n.status, s.state,
           n.lease_token IS NOT NULL AS claimed,
           n.status = 'GIVEN_UP' AND n.reason IS NOT DISTINCT FROM 'CANCELLED' AS cancelled,
           n.status = 'RETRY' AND n.next_attempt_at > $3 AS hastened
    FROM notifications n JOIN subscriptions s ON s.id = n.subscription_id AND s.deleted_at IS NULL
    WHERE n.id = ANY ($1) AND n.reseller_id = $2
    ORDER BY n.id
    FOR UPDATE OF n),
resent AS (
    UPDATE notifications n
    SET status = 'RETRY', next_attempt_at = $3,
        resent_after = CASE WHEN f.hastened THEN n.resent_after ELSE n.attempts END,
        resent_at = CASE WHEN f.hastened THEN n.resent_at ELSE $3 END,
        finished_at = NULL, reason = CASE WHEN f.hastened THEN n.reason ELSE 'RESENT' END,
        slot_at = NULL, updated_at = $3
    FROM found f
    WHERE n.id = f.id AND NOT f.cancelled
      AND (f.status IN ('SENT', 'FAILED', 'GIVEN_UP') OR f.hastened)
      AND f.state IN ('ACTIVE', 'DEGRADED')
    RETURNING n.id)
SELECT f.id AS "id!", f.subscription_id AS "subscription!", e.event_id AS "event_id?", f.event_type AS "event_type!",
       f.status AS "status!", f.state AS "state!", f.claimed AS "claimed!", f.cancelled AS "cancelled!",
       r.id IS NOT NULL AS "resent!"
FROM found f
LEFT JOIN resent r ON r.id = f.id
LEFT JOIN events e ON e.id = f.event
ORDER BY f.id
