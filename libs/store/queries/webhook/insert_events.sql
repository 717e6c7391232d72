WITH input AS (
    SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                         $7::timestamptz[], $8::timestamptz[], $9::text[])
        AS i(id, event_id, reseller_id, type, body, patterns, occurred_at, created_at, traceparent)),
fanned AS (
    INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, leased_until,
                               payload_bytes, created_at, updated_at)
    SELECT notification_id(i.id, s.id), i.id, s.id, i.reseller_id, i.type,
           CASE WHEN $10 AND NOT s.suspended THEN 'IN_MEMORY' ELSE 'PENDING' END,
           CASE WHEN $10 AND NOT s.suspended THEN now() + $11::interval END,
           octet_length(i.body), i.created_at, i.created_at
    FROM input i
    JOIN subscriptions s ON s.reseller_id = i.reseller_id AND s.deleted_at IS NULL
    WHERE s.state IN ('ACTIVE', 'DEGRADED') AND s.event_types && string_to_array(i.patterns, ' ')
    RETURNING id, event, subscription_id, status),
-- One that became nothing says whom it missed, as this statement saw them. `NOT IN`, not `NOT EXISTS`: it is
-- answered by a hash of what was fanned out however few rows the planner expects, and the subscriptions are looked
-- at for these events alone.
stored AS (
    INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at, traceparent, missed)
    SELECT i.id, i.event_id, i.reseller_id, i.type, i.body, i.occurred_at, i.created_at, i.traceparent,
           CASE WHEN i.id NOT IN (SELECT event FROM fanned) THEN coalesce((
               SELECT jsonb_agg(jsonb_build_object('subscription', m.id, 'state', m.state, 'filtered', m.filtered,
                                                   'paused', m.suspended))
               FROM (SELECT s.id, s.state, s.suspended,
                            NOT s.event_types && string_to_array(i.patterns, ' ') AS filtered
                     FROM subscriptions s WHERE s.reseller_id = i.reseller_id AND s.deleted_at IS NULL
                     ORDER BY s.id LIMIT 100) AS m), '[]') END
    FROM input i)
SELECT id AS "id!", event AS "event!", subscription_id AS "subscription_id!", status AS "status!" FROM fanned
