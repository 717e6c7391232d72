WITH letters AS (
    SELECT j.job, d.lane, d.fingerprint, d.push_id, d.notification_id
    FROM UNNEST($1::uuid[]) AS j(job) CROSS JOIN LATERAL (
        SELECT lane, fingerprint, push_id, notification_id FROM dead_letters
        WHERE job_id = j.job AND state = 'REPLAYED' ORDER BY id LIMIT $2) AS d),
subjects AS (
    SELECT job, coalesce(push_id, notification_id) AS subject, min(lane) AS lane, min(fingerprint) AS fingerprint,
           count(*) AS letters
    FROM letters GROUP BY 1, 2),
fates AS (
    SELECT s.*, CASE WHEN t.status IS NULL THEN 'GONE'
                     WHEN t.status = 'SENT' THEN 'DELIVERED'
                     WHEN t.status = 'GIVEN_UP' AND t.reason = 'CANCELLED' THEN 'CANCELLED'
                     WHEN t.status IN ('FAILED', 'GIVEN_UP') THEN 'FAILED_AGAIN'
                     ELSE 'WAITING' END AS fate
    FROM subjects s LEFT JOIN LATERAL (
        SELECT status, reason FROM push_notifications WHERE id = s.subject
        UNION ALL SELECT status, reason FROM notifications WHERE id = s.subject LIMIT 1) AS t ON true),
ends AS (
    SELECT f.*, CASE WHEN f.fate = 'FAILED_AGAIN' THEN coalesce(
        (SELECT d.fingerprint FROM dead_letters d WHERE d.push_id = f.subject AND d.state = 'OPEN' LIMIT 1),
        (SELECT d.fingerprint FROM dead_letters d WHERE d.notification_id = f.subject AND d.state = 'OPEN' LIMIT 1)
    ) END AS failure
    FROM fates f)
SELECT job AS "job!", lane AS "lane!: Name<DeadLetterLane>", fingerprint AS "fingerprint!", fate AS "fate!: Name<Fate>", failure,
       count(*) AS "count!: Count", sum(letters)::bigint AS "letters!: Count"
FROM ends GROUP BY job, lane, fingerprint, fate, failure ORDER BY job, lane, fingerprint
