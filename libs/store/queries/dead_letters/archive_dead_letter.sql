WITH dead_letter AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, push_id, notification_id, subscription_id, reseller_id,
                              event_type, prototype, detail, message)
    SELECT $6, $2, left($3, 300), CASE WHEN $6 = 'push' THEN $1::uuid END, CASE WHEN $6 = 'reseller' THEN $1::uuid END,
           n.subscription_id, n.reseller_id, n.event_type, left(p.message_prototype_key, 200), $4, $5
    FROM (VALUES (1)) AS one
    LEFT JOIN push_notifications p ON $6 = 'push' AND p.id = $1
    LEFT JOIN notifications n ON $6 = 'reseller' AND n.id = $1),
queued_push AS (
    SELECT id FROM push_notifications
    WHERE $6 = 'push' AND id = $1 AND leased_until IS NOT NULL AND lease_token IS NULL
    FOR UPDATE),
push AS (
    UPDATE push_notifications p SET status = 'PENDING', leased_until = NULL, updated_at = now()
    FROM queued_push q WHERE p.id = q.id
    RETURNING p.id),
queued_notification AS (
    SELECT id FROM notifications
    WHERE $6 = 'reseller' AND id = $1 AND leased_until IS NOT NULL AND lease_token IS NULL
    FOR UPDATE),
notification AS (
    UPDATE notifications n
    SET status = CASE WHEN n.attempts = 0 THEN 'PENDING' ELSE 'RETRY' END, leased_until = NULL,
        next_attempt_at = CASE WHEN n.attempts > 0 THEN now() END, updated_at = now()
    FROM queued_notification q WHERE n.id = q.id
    RETURNING n.id)
SELECT (SELECT count(*) FROM push) + (SELECT count(*) FROM notification) AS "count!"
