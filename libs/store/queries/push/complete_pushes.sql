WITH input AS (
    SELECT DISTINCT ON (id, token) *
    FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::bigint[], $6::text[], $7::text[],
                $8::bigint[], $9::text[], $10::text[], $11::text[], $12::smallint[])
        AS i(id, token, status, next_attempt_at, millis, attempt_status, error_type, swrve_code,
             swrve_message, other_error, fingerprint, response_status)),
-- In the order of their ids, which a nested loop keeps. That a row is IN_MEMORY follows from its token, by a
-- constraint. Saying so would let the planner read everything that is leased instead of these rows by id.
claimed AS (
    UPDATE push_notifications p
    SET status = i.status, lease_token = NULL, leased_until = NULL, next_attempt_at = i.next_attempt_at,
        updated_at = now(),
        finished_at = CASE WHEN i.status IN ('SENT', 'FAILED', 'GIVEN_UP') THEN now() END
    FROM input i WHERE p.id = i.id AND p.lease_token = i.token
    RETURNING p.attempts, p.message_prototype_key, i.*),
attempt AS (
    UPDATE send_attempts a
    SET status = c.attempt_status, millis = c.millis, error_type = c.error_type,
        swrve_error_code = c.swrve_code, swrve_error_message = c.swrve_message,
        other_error_stack_trace = c.other_error, response_status = c.response_status
    FROM claimed c
    WHERE a.push_notification_id = c.id AND a.number = c.attempts),
-- What indexes hold is cut: an entry that is too long for them would be refused, and the batch with it.
dead AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, target, attempts, error_type, detail)
    SELECT 'push', c.status, left(coalesce(c.fingerprint, 'unknown'), 300), c.id,
           left(c.message_prototype_key, 200),
           coalesce(c.swrve_code::text, ''), c.attempts, c.error_type,
           coalesce(c.swrve_message, c.other_error, 'no detail')
    FROM claimed c
    WHERE c.status IN ('FAILED', 'GIVEN_UP'))
SELECT id AS "id!" FROM claimed
