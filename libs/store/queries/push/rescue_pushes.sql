WITH lost AS (
    SELECT id, attempts, lease_token IS NOT NULL AS claimed,
           lease_token IS NOT NULL AND attempts - replayed_after >= $2 AS spent
    FROM push_notifications
    WHERE status = 'IN_MEMORY' AND leased_until < now()
    ORDER BY leased_until LIMIT $1 FOR UPDATE SKIP LOCKED),
rescued AS (
    UPDATE push_notifications p
    SET status = CASE WHEN l.spent THEN 'GIVEN_UP' ELSE 'PENDING' END,
        finished_at = CASE WHEN l.spent THEN now() END,
        lease_token = NULL, leased_until = NULL, updated_at = now()
    FROM lost l WHERE p.id = l.id
    RETURNING p.id, p.status, p.attempts, p.message_prototype_key),
attempt AS (
    UPDATE send_attempts a
    SET status = 'ERROR', error_type = 'OTHER',
        other_error_stack_trace = 'the lease ran out before an outcome was recorded; '
                                  'the push may have been sent'
    FROM lost l
    WHERE l.claimed AND a.push_notification_id = l.id AND a.number = l.attempts
      AND a.status = 'IN_PROCESS'),
dead AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, attempts, error_type, detail)
    SELECT 'push', 'GIVEN_UP', 'other/lease-lost', id, left(message_prototype_key, 200), attempts, 'OTHER',
           'the lease of the last allowed attempt ran out before an outcome was recorded'
    FROM rescued WHERE status = 'GIVEN_UP')
SELECT count(*) FILTER (WHERE status = 'PENDING') AS "pending!: Count", 0::bigint AS "retry!: Count",
       count(*) FILTER (WHERE status = 'GIVEN_UP') AS "given_up!: Count"
FROM rescued
