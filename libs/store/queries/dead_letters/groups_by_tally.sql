WITH span AS MATERIALIZED (
    SELECT coalesce($7::timestamptz, '-infinity') AS since, coalesce($8::timestamptz, 'infinity') AS until),
hours AS (
    SELECT t.lane, t.fingerprint, t.target, t.hour, sum(t.letters)::bigint AS letters, p.since, p.until
    FROM span p CROSS JOIN LATERAL (
        SELECT * FROM dead_letter_tallies t
        WHERE t.state = ANY ($1::text[]) AND t.lane = ANY ($2::text[]) AND t.reason = ANY ($3::text[])
          AND ($4::text IS NULL OR t.fingerprint = $4 OR $5::boolean AND starts_with(t.fingerprint, $4))
          AND ($6::text IS NULL OR t.target = $6)
          AND t.hour > p.since - interval '1 hour' AND t.hour < p.until
          -- Without a time, the totals below say all.
          AND ($7::timestamptz IS NOT NULL OR $8::timestamptz IS NOT NULL)) AS t
    GROUP BY t.lane, t.fingerprint, t.target, t.hour, p.since, p.until HAVING sum(t.letters) > 0),
counted AS MATERIALIZED (
    SELECT h.lane, h.fingerprint, h.target, h.since, h.until, whole,
           CASE WHEN whole THEN h.letters ELSE (
               SELECT count(*) FROM (
                   SELECT FROM UNNEST($1::text[]) AS s(state) JOIN dead_letters d
                       ON d.state = s.state AND d.lane = h.lane AND d.fingerprint = h.fingerprint
                       AND d.target = h.target AND d.created_at >= greatest(h.hour, h.since)
                       AND d.created_at < least(h.hour + interval '1 hour', h.until)
                       AND d.reason = ANY ($3::text[])
                   LIMIT $9) AS found) END AS letters
    FROM hours h
    CROSS JOIN LATERAL (
        SELECT h.hour >= h.since AND h.hour + interval '1 hour' <= h.until AS whole) AS w),
kinds AS (
    SELECT lane, fingerprint, target, since, until, sum(letters)::bigint AS letters, bool_or(cut) AS cut
    FROM (SELECT lane, fingerprint, target, since, until, letters, NOT whole AND letters >= $9 AS cut FROM counted
          UNION ALL
          SELECT t.lane, t.fingerprint, t.target, p.since, p.until, t.letters, false
          FROM span p CROSS JOIN dead_letter_totals t
          WHERE $7::timestamptz IS NULL AND $8::timestamptz IS NULL
            AND t.state = ANY ($1::text[]) AND t.lane = ANY ($2::text[]) AND t.reason = ANY ($3::text[])
            AND ($4::text IS NULL OR t.fingerprint = $4 OR $5::boolean AND starts_with(t.fingerprint, $4))
            AND ($6::text IS NULL OR t.target = $6)) AS both_sources
    GROUP BY lane, fingerprint, target, since, until HAVING sum(letters) > 0),
largest AS (
    SELECT k.*, sum(letters) OVER ()::bigint AS total, bool_or(cut) OVER () AS at_least
    FROM kinds k ORDER BY letters DESC, lane, fingerprint, target LIMIT $10)
SELECT g.lane AS "lane!", g.fingerprint AS "fingerprint!", g.target AS "target!", g.letters AS "letters!",
       f.created_at AS "first_seen!", l.created_at AS "last_seen!", l.id AS "sample!", l.detail AS "detail!",
       g.total AS "total!", g.at_least AS "at_least!"
FROM largest g
CROSS JOIN LATERAL (
    SELECT min(d.created_at) AS created_at
    FROM UNNEST($1::text[]) AS s(state) CROSS JOIN LATERAL (
        SELECT d.created_at FROM dead_letters d
        WHERE d.state = s.state AND d.lane = g.lane AND d.fingerprint = g.fingerprint
          AND d.target = g.target AND d.created_at >= g.since AND d.created_at < g.until
          AND d.reason = ANY ($3::text[])
        ORDER BY d.created_at, d.id LIMIT 1) AS d) AS f
CROSS JOIN LATERAL (
    SELECT d.created_at, d.id, d.detail
    FROM UNNEST($1::text[]) AS s(state) CROSS JOIN LATERAL (
        SELECT d.created_at, d.id, d.detail FROM dead_letters d
        WHERE d.state = s.state AND d.lane = g.lane AND d.fingerprint = g.fingerprint
          AND d.target = g.target AND d.created_at >= g.since AND d.created_at < g.until
          AND d.reason = ANY ($3::text[])
        ORDER BY d.created_at DESC, d.id DESC LIMIT 1) AS d
    ORDER BY d.created_at DESC, d.id DESC LIMIT 1) AS l
ORDER BY g.letters DESC, g.lane, g.fingerprint, g.target
