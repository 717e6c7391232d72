WITH letters AS (
    SELECT j.job, d.lane, d.fingerprint, d.push_id, d.notification_id, d.created_at, d.resolved_at
    FROM UNNEST($1::uuid[]) AS j(job) CROSS JOIN LATERAL (
        SELECT lane, fingerprint, push_id, notification_id, created_at, resolved_at FROM dead_letters
        WHERE job_id = j.job AND state = 'REPLAYED' ORDER BY id LIMIT $2) AS d),
subjects AS (
    SELECT job, coalesce(push_id, notification_id) AS subject, min(lane) AS lane, min(fingerprint) AS fingerprint,
           max(created_at) AS written_at, max(resolved_at) AS replayed_at, count(*) AS letters
    FROM letters GROUP BY 1, 2),
-- What failed after the replay failed again, whatever came of a later replay: `find_dead_letters.sql` says the same of one dead letter.
failures AS (
    SELECT s.*, f.failure
    FROM subjects s CROSS JOIN LATERAL (
        SELECT (array_agg(o.fingerprint ORDER BY o.created_at, o.id))[1] AS failure
        FROM (
            SELECT id, fingerprint, reason, state, created_at, resolved_at FROM dead_letters WHERE push_id = s.subject
            UNION ALL
            SELECT id, fingerprint, reason, state, created_at, resolved_at FROM dead_letters WHERE notification_id = s.subject) AS o
        WHERE o.reason IN ('FAILED', 'GIVEN_UP') AND o.fingerprint NOT IN ('other/cancelled', 'delivery/cancelled')
          AND (o.state = 'OPEN' OR o.created_at > s.written_at AND o.resolved_at > s.replayed_at)) AS f),
fates AS (
    SELECT s.*, CASE WHEN s.failure IS NOT NULL THEN 'FAILED_AGAIN'
                     WHEN t.status IS NULL THEN 'GONE'
                     WHEN t.status = 'SENT' THEN 'DELIVERED'
                     WHEN t.status = 'GIVEN_UP' AND t.reason = 'CANCELLED' THEN 'CANCELLED'
                     WHEN t.status IN ('FAILED', 'GIVEN_UP') THEN 'FAILED_AGAIN'
                     ELSE 'WAITING' END AS fate
    FROM failures s LEFT JOIN LATERAL (
        SELECT status, reason FROM push_notifications WHERE id = s.subject
        UNION ALL SELECT status, reason FROM notifications WHERE id = s.subject LIMIT 1) AS t ON true)
SELECT job AS "job!", lane AS "lane!: Name<DeadLetterLane>", fingerprint AS "fingerprint!", fate AS "fate!: Name<Fate>", failure,
       count(*) AS "count!: Count", sum(letters)::bigint AS "letters!: Count"
FROM fates GROUP BY job, lane, fingerprint, fate, failure ORDER BY job, lane, fingerprint
