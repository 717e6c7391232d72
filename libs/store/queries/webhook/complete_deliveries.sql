WITH input AS (
    SELECT DISTINCT ON (id, token) *
    FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bigint[],
                $7::integer[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
        AS i(id, token, status, next_attempt_at, started_at, millis, response_status, response_body,
             error_type, error, fingerprint, health)),
-- In the order of their ids, which a nested loop keeps. That a row is IN_MEMORY follows from its token, by a
-- constraint. Saying so would let the planner read everything that is leased instead of these rows by id.
claimed AS (
    UPDATE notifications n
    SET status = i.status, reason = CASE WHEN i.status = 'SENT' AND n.reason = 'QUOTA' THEN n.reason ELSE i.fingerprint END,
        lease_token = NULL, leased_until = NULL, slot_at = NULL,
        next_attempt_at = i.next_attempt_at, updated_at = $13,
        finished_at = CASE WHEN i.status IN ('SENT', 'FAILED', 'GIVEN_UP') THEN $13::timestamptz END
    FROM input i WHERE n.id = i.id AND n.lease_token = i.token
    RETURNING n.attempts, n.resent_after, n.subscription_id, n.reseller_id, n.event_type, i.*),
attempt AS (
    UPDATE delivery_attempts a
    SET status = CASE WHEN c.error_type IS NULL THEN 'OK' ELSE 'ERROR' END, started_at = c.started_at,
        millis = c.millis, response_status = c.response_status, response_body = c.response_body,
        error_type = c.error_type, error = c.error, fingerprint = c.fingerprint
    FROM claimed c
    WHERE a.notification_id = c.id AND a.number = c.attempts),
dead AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                              event_type, target, attempts, error_type, detail)
    SELECT 'reseller', c.status, coalesce(c.fingerprint, 'unknown'), c.id, c.subscription_id, c.reseller_id,
           c.event_type, coalesce((SELECT endpoint_of(a.url) FROM delivery_attempts a
                                   WHERE a.notification_id = c.id AND a.number = c.attempts), ''),
           c.attempts, c.error_type, coalesce(c.error, 'no detail')
    FROM claimed c WHERE c.status IN ('FAILED', 'GIVEN_UP')),
-- What began before the present state says nothing about it: it may have been at another endpoint.
current AS (
    SELECT c.subscription_id, c.status, c.event_type, c.error, c.error_type, c.response_status,
           CASE WHEN c.started_at >= s.state_changed_at THEN c.health ELSE 'NONE' END AS health,
           c.response_status BETWEEN 400 AND 499 AND c.response_status <> 410
               AND (c.status = 'FAILED'
                    -- What is tried again for the subscription's sake is told of when it is refused first.
                    OR c.status = 'RETRY' AND s.retry_client_errors
                       AND c.response_status NOT IN (408, 425, 429)
                       AND NOT EXISTS (SELECT FROM delivery_attempts a
                                       WHERE a.notification_id = c.id AND a.number > c.resent_after
                                         AND a.number < c.attempts AND a.response_status BETWEEN 400 AND 499
                                         AND a.response_status NOT IN (408, 425, 429))) AS refused
    FROM claimed c JOIN subscriptions s ON s.id = c.subscription_id),
signals AS (
    SELECT subscription_id, bool_or(health = 'SUCCESS') AS success,
           bool_or(health IN ('FAILURE', 'GONE')) AS failure, bool_or(health = 'GONE') AS gone,
           (array_agg(CASE WHEN response_status = 410 THEN 'GONE' ELSE 'REDIRECTED' END)
                FILTER (WHERE health = 'GONE'))[1] AS gone_reason,
           count(*) FILTER (WHERE status = 'GIVEN_UP') AS exhausted,
           -- What the endpoint failed at goes before what failed on our side, of which the mail gets no error, and tells another thing.
           (array_agg(event_type ORDER BY error_type = 'OTHER') FILTER (WHERE status = 'GIVEN_UP'))[1] AS exhausted_type,
           (array_agg(CASE WHEN error_type <> 'OTHER' THEN left(error, 500) END ORDER BY error_type = 'OTHER')
                FILTER (WHERE status = 'GIVEN_UP'))[1] AS exhausted_error,
           -- A redirect and 410 deactivate, of which another mail tells.
           count(*) FILTER (WHERE refused) AS refused,
           (array_agg(event_type) FILTER (WHERE refused))[1] AS refused_type,
           (array_agg(response_status) FILTER (WHERE refused))[1] AS refused_status,
           jsonb_object_agg(response_status, true) FILTER (WHERE refused) AS refused_codes,
           bool_and(status = 'RETRY') FILTER (WHERE refused) AS refused_retried
    FROM current GROUP BY subscription_id),
touched AS (
    SELECT s.id, s.state AS previous, g.success AND NOT g.gone AS healed,
           g.gone AND s.state IN ('ACTIVE', 'DEGRADED') AS gone, g.gone_reason
    FROM signals g JOIN subscriptions s ON s.id = g.subscription_id
    WHERE s.deleted_at IS NULL AND CASE
        WHEN g.gone AND s.state IN ('ACTIVE', 'DEGRADED') THEN true
        WHEN g.success AND NOT g.gone THEN s.failing_since IS NOT NULL
        -- Every failing attempt need not be noted, only that it still fails.
        ELSE g.failure AND (s.failing_since IS NULL OR s.last_failure_at IS NULL
                            OR s.last_failure_at < $13::timestamptz - interval '10 seconds') END
    ORDER BY s.id
    -- Not the strongest lock: charging and mailing only need the key to stay.
    FOR NO KEY UPDATE OF s),
changed AS (
    UPDATE subscriptions s
    SET failing_since = CASE WHEN NOT t.healed THEN coalesce(s.failing_since, $13) END,
        last_failure_at = CASE WHEN t.healed THEN s.last_failure_at ELSE $13 END,
        state = CASE WHEN t.gone THEN 'DEACTIVATED'
                     WHEN t.healed AND t.previous = 'DEGRADED' THEN 'ACTIVE'
                     ELSE s.state END,
        state_reason = CASE WHEN t.gone THEN t.gone_reason
                            WHEN t.healed AND t.previous = 'DEGRADED' THEN 'RECOVERED'
                            ELSE s.state_reason END,
        state_changed_at = CASE WHEN t.gone OR t.healed AND t.previous = 'DEGRADED' THEN $13
                                ELSE s.state_changed_at END,
        updated_at = $13
    FROM touched t WHERE s.id = t.id
    RETURNING CASE WHEN s.state <> t.previous THEN mail_state_change(s.id, t.previous, $13) END),
exhausted_mail AS (
    SELECT mail_exhausted(subscription_id, exhausted, exhausted_type, exhausted_error, $13)
    FROM signals WHERE exhausted > 0 ORDER BY subscription_id),
refused_mail AS (
    INSERT INTO emails AS e (id, kind, subscription_id, recipient, data, occurrences, next_attempt_at,
                             created_at)
    SELECT gen_random_uuid(), 'DELIVERY_REFUSED', s.id, s.email,
           jsonb_build_object('url', s.url, 'description', s.description, 'resellerId', s.reseller_id,
                              'eventType', g.refused_type, 'status', g.refused_status,
                              'codes', g.refused_codes, 'since', $13::timestamptz,
                              'retried', g.refused_retried),
           g.refused,
           -- A status that no mail of the last hour told is told at once. A mail of an earlier version names none, and stands for each.
           greatest($13, (SELECT min(coalesce(told.until, '-infinity'))
                          FROM jsonb_object_keys(g.refused_codes) AS c(code)
                          LEFT JOIN LATERAL (
                              SELECT coalesce(l.finished_at, $13) + interval '1 hour' AS until FROM emails l
                              WHERE l.subscription_id = s.id AND l.kind = 'DELIVERY_REFUSED'
                                AND l.status <> 'PENDING' AND ((l.data -> 'codes') ? c.code) IS NOT FALSE
                              ORDER BY l.created_at DESC LIMIT 1) AS told ON true)),
           $13
    FROM signals g JOIN subscriptions s ON s.id = g.subscription_id
    WHERE g.refused > 0 AND s.deleted_at IS NULL
    ORDER BY s.id
    ON CONFLICT (subscription_id) WHERE kind = 'DELIVERY_REFUSED' AND status = 'PENDING' DO UPDATE
    SET occurrences = e.occurrences + excluded.occurrences, recipient = excluded.recipient,
        -- What is told at once is not hidden behind what was told within the hour.
        data = CASE WHEN excluded.next_attempt_at > greatest($13, e.next_attempt_at) THEN e.data
                    ELSE excluded.data END
            || jsonb_build_object('since', e.data -> 'since', 'codes',
                                  coalesce(e.data -> 'codes', '{}') || (excluded.data -> 'codes')),
        next_attempt_at = CASE WHEN (e.data -> 'codes') @> (excluded.data -> 'codes') THEN e.next_attempt_at
                               ELSE least(e.next_attempt_at, excluded.next_attempt_at) END,
        created_at = greatest(e.created_at, excluded.created_at))
-- Read, since a SELECT that nothing reads is not run.
SELECT id AS "id!" FROM claimed WHERE (SELECT count(*) FROM exhausted_mail) IS NOT NULL
