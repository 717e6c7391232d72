WITH input AS (
    SELECT * FROM UNNEST($1::uuid[], $2::uuid[], $3::timestamptz[]) AS i(id, token, postponed_to)),
claimed AS (
    SELECT n.id, n.subscription_id, n.attempts, n.charged_on, i.postponed_to FROM notifications n JOIN input i ON n.id = i.id
    -- That it is IN_MEMORY follows; saying so would let the planner read everything that is leased.
    WHERE n.lease_token = i.token
    ORDER BY n.id
    FOR UPDATE OF n),
released AS (
    UPDATE notifications n
    SET status = CASE WHEN c.attempts > 1 THEN 'RETRY' WHEN c.postponed_to IS NULL THEN 'PENDING'
                      ELSE 'SCHEDULED' END,
        next_attempt_at = CASE WHEN c.attempts > 1 THEN coalesce(c.postponed_to, $4)
                               WHEN c.postponed_to IS NOT NULL THEN n.created_at END,
        reason = CASE WHEN c.postponed_to IS NOT NULL THEN 'POSTPONED' END,
        charged_on = CASE WHEN c.attempts > 1 OR c.postponed_to IS NULL THEN n.charged_on END,
        attempts = c.attempts - 1, lease_token = NULL, leased_until = NULL, updated_at = $4
    FROM claimed c WHERE n.id = c.id
    RETURNING n.id),
-- A first attempt that is put off waits in the line of its subscription, which is looked at when the time has come,
-- and gives back what it was charged: only what is claimed counts.
counted AS (
    SELECT b.subscription_id, b.day FROM subscription_budgets b
    WHERE b.subscription_id = ANY (ARRAY(SELECT DISTINCT subscription_id FROM claimed
                                         WHERE postponed_to IS NOT NULL AND attempts = 1))
    ORDER BY b.subscription_id FOR UPDATE),
in_line AS (
    UPDATE subscription_budgets b
    SET release_at = greatest(b.release_at, now() + p.delay), used = greatest(0, b.used - p.charged)
    FROM (SELECT c.subscription_id, min(c.postponed_to) - $4::timestamptz AS delay,
                 count(*) FILTER (WHERE c.charged_on = o.day) AS charged
          FROM claimed c JOIN counted o ON o.subscription_id = c.subscription_id
          WHERE c.postponed_to IS NOT NULL AND c.attempts = 1 GROUP BY c.subscription_id) AS p
    -- An array of one is looked up, as in the claims.
    WHERE b.subscription_id = ANY (ARRAY[p.subscription_id])),
attempt AS (
    DELETE FROM delivery_attempts a USING claimed c
    WHERE a.notification_id = c.id AND a.number = c.attempts AND a.status = 'IN_PROCESS')
SELECT id AS "id!" FROM released
