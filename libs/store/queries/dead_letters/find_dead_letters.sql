SELECT d.id, d.lane AS "lane: Name<_>", d.state AS "state: Name<_>", d.reason AS "reason: Name<_>", d.fingerprint,
       d.target, d.detail, d.push_id AS push, d.notification_id AS notification,
       d.subscription_id AS subscription, d.reseller_id AS reseller, d.event_type, d.prototype,
       d.attempts AS "attempts!: Nullable<Count>", d.error_type, d.created_at, d.resolved_at, d.resolved_by, d.note,
       d.job_id AS job,
       CASE WHEN d.state <> 'REPLAYED' THEN NULL
            WHEN f.failed THEN 'FAILED_AGAIN'
            WHEN t.status IS NULL THEN 'GONE'
            WHEN t.status = 'SENT' THEN 'DELIVERED'
            WHEN t.status = 'GIVEN_UP' AND t.reason = 'CANCELLED' THEN 'CANCELLED'
            WHEN t.status IN ('FAILED', 'GIVEN_UP') THEN 'FAILED_AGAIN'
            ELSE 'WAITING' END AS "outcome!: Nullable<Name<_>>"
FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place) JOIN dead_letters d ON d.id = i.id
LEFT JOIN LATERAL (
    SELECT status, reason FROM push_notifications WHERE d.state = 'REPLAYED' AND id = d.push_id
    UNION ALL
    SELECT status, reason FROM notifications WHERE d.state = 'REPLAYED' AND id = d.notification_id LIMIT 1) AS t ON true
-- What failed after the replay failed again, whatever came of a later replay: `job_outcomes.sql` says the same of all of a job.
LEFT JOIN LATERAL (
    SELECT true AS failed
    FROM (
        SELECT reason, fingerprint, state, created_at, resolved_at FROM dead_letters WHERE push_id = d.push_id
        UNION ALL
        SELECT reason, fingerprint, state, created_at, resolved_at FROM dead_letters WHERE notification_id = d.notification_id) AS o
    WHERE d.state = 'REPLAYED' AND o.reason IN ('FAILED', 'GIVEN_UP')
      AND o.fingerprint NOT IN ('other/cancelled', 'delivery/cancelled')
      AND (o.state = 'OPEN' OR o.created_at > d.created_at AND o.resolved_at > d.resolved_at)
    LIMIT 1) AS f ON true
ORDER BY i.place
