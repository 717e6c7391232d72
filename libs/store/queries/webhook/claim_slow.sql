WITH due AS (
    SELECT n.id, n.subscription_id, n.attempts, n.resent_after, s.url, s.version, s.failing_since IS NULL AS was_well,
           n.reason IS NOT DISTINCT FROM 'BACKLOG' AS backlog,
           -- What the promoter took out of the line; everything else goes behind those in it.
           coalesce(n.reason IN ('QUOTA', 'RATE', 'POSTPONED'), false) AS released,
           n.charged_on IS NULL OR (n.charged_on <> $7 AND n.attempts = 0) AS uncharged,
           coalesce(s.daily_quota, $5) AS quota, coalesce(s.requests_per_second, $6) AS rate,
           CASE WHEN s.deleted_at IS NOT NULL THEN 'SUBSCRIPTION_DELETED'
                WHEN s.state = 'DEACTIVATED' THEN 'SUBSCRIPTION_DEACTIVATED'
                WHEN s.state = 'PENDING_VERIFICATION' THEN 'UNVERIFIED'
                WHEN s.suspended THEN 'PAUSED' END AS obstacle
    FROM UNNEST($1::uuid[]) AS i(id)
    JOIN notifications n ON n.id = i.id
    JOIN subscriptions s ON s.id = n.subscription_id
    -- As in the fast claim, `CASE` keeps the planner to the ids.
    WHERE CASE n.status WHEN 'IN_MEMORY' THEN n.lease_token IS NULL WHEN 'PENDING' THEN true
          WHEN 'RETRY' THEN n.next_attempt_at <= $2 ELSE false END
      AND (SELECT enter_lane(l.name, l.changes) FROM lanes l WHERE l.name = 'reseller')
    ORDER BY n.id
    FOR UPDATE OF n),
-- Both rows are locked before anything is counted: what is read here is what is changed below.
budget AS (
    SELECT b.subscription_id, b.day, b.used, b.quota, b.release_at
    FROM subscription_budgets b
    WHERE b.subscription_id = ANY (ARRAY(SELECT DISTINCT subscription_id FROM due WHERE obstacle IS NULL))
    ORDER BY b.subscription_id FOR UPDATE),
pace AS (
    SELECT p.subscription_id, p.next_slot_at
    FROM subscription_paces p
    WHERE p.subscription_id = ANY (ARRAY(SELECT DISTINCT subscription_id FROM due
                                         WHERE obstacle IS NULL AND rate IS NOT NULL))
      -- Locked after the budgets, whatever the plan.
      AND (SELECT count(*) FROM budget) >= 0
    ORDER BY p.subscription_id FOR UPDATE),
-- The time once the locks are held: slots that passed while it waited for them would all be used at once.
moment AS MATERIALIZED (
    SELECT clock_timestamp() AS at
    FROM (SELECT count(*) FROM budget) AS b CROSS JOIN (SELECT count(*) FROM pace) AS p),
asked AS (
    SELECT d.*, p.next_slot_at, b.release_at IS NOT NULL AND NOT d.released AS behind,
           -- Without a row to count in it waits; `greatest` would take nothing for no use.
           CASE WHEN b.day IS NULL OR b.day > $7 THEN 0
                ELSE greatest(0, d.quota - greatest(0, b.used - b.quota::bigint * ($7 - b.day))) END AS free,
           count(*) FILTER (WHERE d.obstacle IS NULL AND d.uncharged
                              AND (b.release_at IS NULL OR d.released))
               OVER (PARTITION BY d.subscription_id ORDER BY d.id) AS rank
    -- What is locked is of subscriptions in `due`, so that FULL finds what LEFT would. That compared each row with each; FULL cannot.
    FROM due d
    FULL JOIN budget b ON b.subscription_id = d.subscription_id
    FULL JOIN pace p ON p.subscription_id = d.subscription_id),
charged AS (
    SELECT a.*, CASE
               WHEN a.obstacle IS NOT NULL THEN a.obstacle
               WHEN NOT a.uncharged THEN NULL
               WHEN a.behind AND a.free > 0 AND a.rate IS NOT NULL THEN 'RATE'
               WHEN a.behind OR a.rank > coalesce(a.free, 0) THEN 'QUOTA' END AS obstacle_or_line
    FROM asked a),
slotted AS (
    -- Further ahead than slots are given out is what an earlier version reserved, or a clock that was set back.
    SELECT c.*, m.at, CASE WHEN c.obstacle_or_line IS NULL AND c.rate IS NOT NULL AND c.next_slot_at IS NOT NULL THEN
               CASE WHEN c.next_slot_at > m.at + $8::interval + interval '5 seconds' THEN m.at
                    ELSE greatest(c.next_slot_at, m.at) END + interval '1 second' / c.rate
               * (count(*) FILTER (WHERE c.obstacle_or_line IS NULL)
                      OVER (PARTITION BY c.subscription_id ORDER BY c.id) - 1) END AS slot_at
    FROM charged c CROSS JOIN moment m),
planned AS (
    SELECT s.*, CASE
               WHEN s.obstacle_or_line IS NOT NULL THEN s.obstacle_or_line
               WHEN s.slot_at > s.at + $8::interval OR (s.slot_at IS NULL AND s.rate IS NOT NULL) THEN 'RATE'
               ELSE 'CLAIM' END AS verdict,
           -- As `cancel_notifications` has it: what was accepted before it was to be sent again stays delivered.
           CASE WHEN s.obstacle IN ('SUBSCRIPTION_DELETED', 'SUBSCRIPTION_DEACTIVATED') AND s.resent_after > 0 THEN
               (SELECT max(a.started_at + coalesce(a.millis, 0) * interval '1 millisecond') FROM delivery_attempts a
                WHERE a.notification_id = s.id AND a.number <= s.resent_after AND a.status = 'OK') END AS delivered_at
    FROM slotted s),
counted AS (
    UPDATE subscription_budgets b
    SET day = CASE WHEN g.granted > 0 THEN $7 ELSE b.day END,
        used = CASE WHEN g.granted > 0
                    THEN greatest(0, b.used - b.quota::bigint * ($7 - b.day)) + g.granted ELSE b.used END,
        quota = CASE WHEN g.granted > 0 THEN g.quota ELSE b.quota END,
        release_at = CASE WHEN g.left > 0 THEN coalesce(b.release_at, now()) ELSE b.release_at END
    FROM (SELECT subscription_id, quota, count(*) FILTER (WHERE verdict = 'CLAIM' AND uncharged) AS granted,
                 count(*) FILTER (WHERE verdict IN ('QUOTA', 'RATE') AND attempts = 0) AS left
          FROM planned GROUP BY subscription_id, quota) AS g
    -- As in the fast claim, an array of one is looked up.
    WHERE b.subscription_id = ANY (ARRAY[g.subscription_id])
      AND (g.granted > 0 OR (g.left > 0 AND b.release_at IS NULL))),
paced AS (
    UPDATE subscription_paces p
    SET next_slot_at = g.last_slot_at + g.step, asked_at = now(), span = g.count * g.step
    FROM (SELECT subscription_id, max(slot_at) AS last_slot_at, interval '1 second' / max(rate) AS step,
                 count(*) AS count
          FROM planned WHERE verdict = 'CLAIM' AND slot_at IS NOT NULL GROUP BY subscription_id) AS g
    WHERE p.subscription_id = ANY (ARRAY[g.subscription_id])),
changed AS (
    UPDATE notifications n
    SET status = CASE
            WHEN p.verdict = 'CLAIM' THEN 'IN_MEMORY'
            WHEN p.delivered_at IS NOT NULL THEN 'SENT'
            WHEN p.verdict IN ('SUBSCRIPTION_DELETED', 'SUBSCRIPTION_DEACTIVATED') THEN 'GIVEN_UP'
            WHEN n.attempts > 0 THEN 'RETRY'
            WHEN p.verdict IN ('QUOTA', 'RATE') THEN 'SCHEDULED'
            ELSE 'PENDING' END,
        next_attempt_at = CASE
            WHEN p.verdict NOT IN ('QUOTA', 'RATE', 'PAUSED', 'UNVERIFIED') THEN NULL
            WHEN n.attempts > 0 AND p.verdict = 'RATE' THEN $2::timestamptz + $11::interval
            WHEN n.attempts > 0 THEN $2::timestamptz + $9::interval
            WHEN p.verdict IN ('QUOTA', 'RATE') THEN n.created_at END,
        -- As in the fast claim.
        reason = CASE
            WHEN p.verdict = 'CLAIM' THEN CASE WHEN n.reason = 'QUOTA' AND n.attempts = 0 THEN n.reason END
            WHEN p.delivered_at IS NULL THEN p.verdict END,
        charged_on = CASE WHEN NOT p.uncharged THEN n.charged_on WHEN p.verdict = 'CLAIM' THEN $7::date END,
        slot_at = NULL,
        attempts = n.attempts + CASE WHEN p.verdict = 'CLAIM' THEN 1 ELSE 0 END,
        lease_token = CASE WHEN p.verdict = 'CLAIM' THEN $3::uuid END,
        leased_until = CASE
            WHEN p.verdict <> 'CLAIM' THEN NULL
            WHEN n.leased_until BETWEEN now() + $4::interval AND now() + $4::interval + $10::interval
            THEN n.leased_until ELSE now() + $4::interval END,
        finished_at = CASE
            WHEN p.verdict IN ('SUBSCRIPTION_DELETED', 'SUBSCRIPTION_DEACTIVATED')
            THEN coalesce(p.delivered_at, $2::timestamptz) END,
        updated_at = $2
    FROM planned p WHERE n.id = p.id
    RETURNING n.id, n.event, n.attempts, n.resent_after, n.resent_at, n.created_at, n.subscription_id, p.slot_at, p.verdict,
              p.url, p.version, p.was_well, p.backlog, p.delivered_at, n.reseller_id, n.event_type),
attempt AS (
    INSERT INTO delivery_attempts (notification_id, number, status, started_at, url)
    SELECT id, attempts, 'IN_PROCESS', $2, url FROM changed WHERE verdict = 'CLAIM'),
-- As `end_inactive` writes them.
letter AS (
    INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                              event_type, target, attempts, detail, state, resolved_at, resolved_by, note)
    SELECT 'reseller', 'GIVEN_UP', 'delivery/subscription-' || a.how, a.id, a.subscription_id,
           a.reseller_id, a.event_type, endpoint_of(a.url), a.attempts, 'its subscription was ' || a.how,
           'DISCARDED', $2, 'postrider', 'its subscription was ' || a.how
    FROM (SELECT *, CASE verdict WHEN 'SUBSCRIPTION_DELETED' THEN 'deleted' ELSE 'deactivated' END AS how
          FROM changed
          WHERE verdict IN ('SUBSCRIPTION_DELETED', 'SUBSCRIPTION_DEACTIVATED') AND delivered_at IS NULL) AS a)
SELECT c.id AS "id!", c.attempts AS "attempts!", c.resent_after AS "resent_after!",
       c.subscription_id AS "subscription_id!",
       extract(epoch FROM c.slot_at - clock_timestamp())::float8 AS wait,
       CASE WHEN c.delivered_at IS NULL THEN c.verdict ELSE 'DELIVERED' END AS "verdict!", c.version AS "version!", c.was_well AS "was_well!",
       c.backlog AS "backlog!", e.event_id AS "event_id?", e.type AS "event_type?", e.body AS "body?",
       e.created_at AS "accepted_at?", e.traceparent,
       -- What a replay makes is younger than its event.
       (c.resent_at IS NOT NULL OR c.created_at > e.created_at) IS TRUE AS "again!"
FROM changed c LEFT JOIN events e ON e.id = c.event AND c.verdict = 'CLAIM'
