-- What a process had counted in the minute before its first one here is known of one that was started in it: nothing.
WITH span AS (
    SELECT date_trunc('minute', $6::timestamptz) - ($1::int - 1) * interval '1 minute' AS since,
           date_trunc('minute', $6::timestamptz) AS until),
reported AS (
    SELECT m.minute, m.counters, m.epoch, m.in_flight, m.slots,
           coalesce(lag(m.counters) OVER (PARTITION BY m.process ORDER BY m.minute),
                    CASE WHEN m.started_at >= m.minute THEN '{}'::jsonb END) AS before
    FROM span s JOIN process_minutes m ON m.minute >= s.since - interval '1 minute')
SELECT t.minute AS "minute!", count(r.counters) AS "processes!: Count",
       coalesce(sum(done.accepted), 0)::bigint AS "accepted!: Count",
       coalesce(sum(done.delivered), 0)::bigint AS "delivered!: Count",
       coalesce(sum(done.failed), 0)::bigint AS "failed!: Count",
       coalesce(sum(done.retried), 0)::bigint AS "retried!: Count",
       coalesce(sum(done.put_back), 0)::bigint AS "put_back!: Count",
       coalesce(sum(r.in_flight), 0)::bigint AS "in_flight!: Count",
       coalesce(sum(r.slots), 0)::bigint AS "slots!: Count",
       coalesce(array_agg(DISTINCT (r.epoch #>> '{}')::bigint)
                FILTER (WHERE jsonb_typeof(r.epoch) = 'number'), '{}') AS "epochs!"
FROM span s
CROSS JOIN LATERAL generate_series(s.since, s.until, interval '1 minute') AS t(minute)
LEFT JOIN reported r ON r.minute = t.minute
LEFT JOIN LATERAL (
    SELECT greatest(0, coalesce((r.counters ->> $2::text)::bigint, 0) - coalesce((r.before ->> $2::text)::bigint, 0)) AS accepted,
           greatest(0, coalesce((r.counters ->> $3::text)::bigint, 0) - coalesce((r.before ->> $3::text)::bigint, 0)) AS delivered,
           greatest(0, coalesce((r.counters ->> $4::text)::bigint, 0) - coalesce((r.before ->> $4::text)::bigint, 0)) AS failed,
           greatest(0, coalesce((r.counters ->> $5::text)::bigint, 0) - coalesce((r.before ->> $5::text)::bigint, 0)) AS retried,
           greatest(0, coalesce((r.counters ->> $7::text)::bigint, 0) - coalesce((r.before ->> $7::text)::bigint, 0)) AS put_back
    WHERE r.before IS NOT NULL) AS done ON true
GROUP BY t.minute ORDER BY t.minute
