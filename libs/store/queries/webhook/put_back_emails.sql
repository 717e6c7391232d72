WITH mine AS (
    SELECT id, subscription_id, kind, occurrences, attempts, data, created_at,
           -- By the clock that is behind: a mail that is given up for its age cannot be brought back.
           created_at > least($6, now()) - $5::interval AS is_young
    FROM emails
    WHERE id = $1 AND status = 'SENDING' AND lease_token = $2
    FOR UPDATE),
other AS (
    SELECT id FROM emails
    WHERE (subscription_id, kind) = (SELECT subscription_id, kind FROM mine
                                     WHERE kind IN ('RETRIES_EXHAUSTED', 'DELIVERY_REFUSED',
                                                  'STATE_CHANGED', 'VERIFICATION_FAILED',
                                                  'DELIVERIES_RECOVERED'))
      AND status = 'PENDING'
    LIMIT 1 FOR UPDATE),
merged AS (
    UPDATE emails w
    SET occurrences = w.occurrences + m.occurrences, attempts = greatest(w.attempts, m.attempts),
        data = w.data || CASE m.kind
            WHEN 'RETRIES_EXHAUSTED'
                THEN jsonb_build_object('since', least((w.data ->> 'since')::timestamptz,
                                                       (m.data ->> 'since')::timestamptz))
            WHEN 'DELIVERY_REFUSED'
                THEN jsonb_build_object('since', least((w.data ->> 'since')::timestamptz,
                                                       (m.data ->> 'since')::timestamptz),
                                        'codes', coalesce(m.data -> 'codes', '{}')
                                                     || coalesce(w.data -> 'codes', '{}'))
            ELSE '{}'::jsonb END,
        created_at = greatest(w.created_at, m.created_at), last_error = $3,
        next_attempt_at = least(w.next_attempt_at, $4)
    FROM mine m, other y WHERE w.id = y.id
    RETURNING w.id),
gone AS (
    DELETE FROM emails e USING mine m WHERE e.id = m.id AND EXISTS (SELECT FROM merged)),
put_back AS (
    UPDATE emails e
    SET status = CASE WHEN m.is_young THEN 'PENDING' ELSE 'FAILED' END,
        next_attempt_at = CASE WHEN m.is_young THEN $4::timestamptz END,
        finished_at = CASE WHEN m.is_young THEN NULL ELSE $6::timestamptz END,
        last_error = $3, lease_token = NULL, leased_until = NULL
    FROM mine m WHERE e.id = m.id AND NOT EXISTS (SELECT FROM other)
    RETURNING e.status)
SELECT (SELECT status FROM put_back) AS status, EXISTS (SELECT FROM merged) AS "merged!"
