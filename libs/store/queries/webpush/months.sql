SELECT p.month AS "month!", c.counted AS "clients!", c.connected AS "connected!", m.counted AS "messages!",
    pg_stat_get_live_tuples(p.clients) AS "clients_estimated!", pg_stat_get_live_tuples(p.messages) AS "messages_estimated!"
FROM (
    SELECT to_date(right(t.relname, 7), 'YYYY"m"MM') AS month, t.oid AS messages,
        to_regclass('webpush_clients_' || right(t.relname, 8))::oid AS clients
    FROM pg_inherits i JOIN pg_class t ON t.oid = i.inhrelid
    WHERE i.inhparent = 'webpush_messages'::regclass
) AS p
-- Counted up to a bound: a month of millions is not walked.
CROSS JOIN LATERAL (
    SELECT count(*) AS counted, count(few.node) AS connected
    FROM (SELECT node FROM webpush_clients WHERE month = p.month LIMIT $1) AS few
) AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS counted FROM (SELECT FROM webpush_messages WHERE month = p.month LIMIT $1) AS few
) AS m
WHERE p.clients IS NOT NULL
ORDER BY p.month
