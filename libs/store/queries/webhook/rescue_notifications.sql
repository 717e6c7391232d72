WITH lost AS (
    SELECT id, lease_token IS NOT NULL AS claimed, attempts,
           CASE WHEN lease_token IS NOT NULL
                     AND attempts - resent_after > (SELECT CASE s.retry_plan WHEN 'DAY' THEN $4::integer ELSE $2::integer END
                                                    FROM subscriptions s WHERE s.id = n.subscription_id)
                THEN 'GIVEN_UP'
                WHEN attempts > 0 THEN 'RETRY' ELSE 'PENDING' END AS next
    FROM notifications n
    WHERE status = 'IN_MEMORY' AND leased_until < now()
    ORDER BY leased_until LIMIT $1 FOR UPDATE SKIP LOCKED),
rescued AS (
    UPDATE notifications n
    SET status = l.next, lease_token = NULL, leased_until = NULL, slot_at = NULL, updated_at = $3,
        next_attempt_at = CASE WHEN l.next = 'RETRY' THEN $3::timestamptz END,
        finished_at = CASE WHEN l.next = 'GIVEN_UP' THEN $3::timestamptz END,
        reason = CASE WHEN l.claimed THEN 'delivery/lease-lost' END
    FROM lost l WHERE n.id = l.id
    RETURNING n.id, n.status, n.attempts, n.subscription_id, n.reseller_id, n.event_type),
attempt AS (
    UPDATE delivery_attempts a
    SET status = 'ERROR', error_type = 'OTHER', fingerprint = 'delivery/lease-lost',
        error = 'the lease ran out before an outcome was recorded; the notification may have been delivered'
    FROM lost l
    WHERE l.claimed AND a.notification_id = l.id AND a.number = l.attempts AND a.status = 'IN_PROCESS'),
dead AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                              event_type, target, attempts, error_type, detail)
    SELECT 'reseller', 'GIVEN_UP', 'delivery/lease-lost', r.id, r.subscription_id, r.reseller_id,
           r.event_type, coalesce((SELECT endpoint_of(a.url) FROM delivery_attempts a
                                   WHERE a.notification_id = r.id AND a.number = r.attempts), ''), r.attempts,
           'OTHER', 'the lease of the last allowed attempt ran out before an outcome was recorded'
    FROM rescued r WHERE r.status = 'GIVEN_UP'),
exhausted AS (
    SELECT subscription_id, count(*) AS count, min(event_type) AS event_type
    FROM rescued WHERE status = 'GIVEN_UP' GROUP BY subscription_id),
mail AS (
    -- No error: the endpoint is not at fault, which the mail says.
    SELECT mail_exhausted(subscription_id, count, event_type, NULL, $3)
    FROM exhausted ORDER BY subscription_id)
SELECT count(*) FILTER (WHERE status = 'PENDING') AS "pending!: Count",
       count(*) FILTER (WHERE status = 'RETRY') AS "retry!: Count",
       count(*) FILTER (WHERE status = 'GIVEN_UP') AS "given_up!: Count"
FROM rescued
-- Read, since a SELECT that nothing reads is not run.
WHERE (SELECT count(*) FROM mail) IS NOT NULL
