WITH found AS (
    SELECT p.id, p.attempts,
           -- Also what a service has rescued that was started too early: its last attempt began, and how it ended is not known.
           CASE WHEN p.lease_token IS NOT NULL
                     OR (SELECT starts_with(a.other_error_stack_trace, 'the lease ran out') FROM send_attempts a
                         WHERE a.push_notification_id = p.id AND a.number = p.attempts)
                THEN 'sending' WHEN p.status = 'IN_MEMORY' THEN 'queued' ELSE lower(p.status) END AS class
    FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
    WHERE p.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
    ORDER BY p.id FOR UPDATE OF p),
ended AS (
    UPDATE push_notifications p
    SET status = 'GIVEN_UP', lease_token = NULL, leased_until = NULL, next_attempt_at = NULL, finished_at = $2, updated_at = $2
    FROM found f WHERE p.id = f.id
    RETURNING p.id, p.attempts, p.message_prototype_key, f.class),
attempt AS (
    UPDATE send_attempts a
    SET status = 'ERROR', error_type = 'OTHER',
        other_error_stack_trace = 'the database was restored to a moment before an outcome was recorded; the push may have been sent'
    FROM found f
    WHERE f.class = 'sending' AND a.push_notification_id = f.id AND a.number = f.attempts AND a.status = 'IN_PROCESS'),
letter AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, attempts, error_type, detail)
    SELECT 'push', 'GIVEN_UP', 'recovery/possibly-sent/' || class, id, left(message_prototype_key, 200), attempts, 'OTHER',
           'it was ' || class || ' at the moment that the database was restored to, and may have been sent since'
    FROM ended)
SELECT count(*) AS "count!" FROM ended
