WITH input AS (
    SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                         $7::timestamptz[], $8::timestamptz[], $9::text[])
        AS i(id, event_id, reseller_id, type, body, patterns, occurred_at, created_at, traceparent)),
fanned AS (
    INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, leased_until,
                               payload_bytes, created_at, updated_at, reason)
    SELECT notification_id(i.id, s.id), i.id, s.id, i.reseller_id, i.type,
           CASE WHEN s.goes THEN 'IN_MEMORY' ELSE 'PENDING' END,
           CASE WHEN s.goes THEN now() + $11::interval END,
           octet_length(i.body), i.created_at, i.created_at, CASE WHEN NOT s.serves THEN 'UNVERIFIED' END
    FROM input i
    JOIN (SELECT id, reseller_id, event_types, deleted_at, state IN ('ACTIVE', 'DEGRADED') AS serves,
                 $10 AND NOT suspended AND state IN ('ACTIVE', 'DEGRADED') AS goes,
                 -- The endpoint was moved and has not answered its challenge yet: what comes meanwhile waits for that.
                 state = 'PENDING_VERIFICATION' AND state_reason = 'ENDPOINT_CHANGED' AS moves
          FROM subscriptions) AS s ON s.reseller_id = i.reseller_id AND s.deleted_at IS NULL
    WHERE (s.serves OR s.moves) AND s.event_types && string_to_array(i.patterns, ' ')
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
               FROM (SELECT s.id, s.suspended,
                            -- One that moves misses nothing for it.
                            CASE WHEN s.state = 'PENDING_VERIFICATION' AND s.state_reason = 'ENDPOINT_CHANGED'
                                 THEN 'ACTIVE' ELSE s.state END AS state,
                            NOT s.event_types && string_to_array(i.patterns, ' ') AS filtered
                     FROM subscriptions s WHERE s.reseller_id = i.reseller_id AND s.deleted_at IS NULL
                     ORDER BY s.id LIMIT 100) AS m), '[]') END
    FROM input i)
SELECT id AS "id!", event AS "event!", subscription_id AS "subscription_id!", status AS "status!" FROM fanned
