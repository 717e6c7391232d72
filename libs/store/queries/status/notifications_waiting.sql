WITH RECURSIVE waiting AS (
    (SELECT subscription_id FROM notifications WHERE status = 'PENDING' ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT n.subscription_id FROM notifications n
            WHERE n.status = 'PENDING' AND n.subscription_id > w.subscription_id
            ORDER BY n.subscription_id LIMIT 1)
    FROM waiting w WHERE w.subscription_id IS NOT NULL),
failing AS (
    (SELECT subscription_id FROM notifications WHERE status = 'RETRY' ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT n.subscription_id FROM notifications n
            WHERE n.status = 'RETRY' AND n.subscription_id > f.subscription_id
            ORDER BY n.subscription_id LIMIT 1)
    FROM failing f WHERE f.subscription_id IS NOT NULL),
pending AS (
    SELECT count(*) AS subscriptions, min(head.created_at) AS since,
           (array_agg(s.id ORDER BY head.created_at, s.id))[1] AS worst
    FROM waiting w
    JOIN subscriptions s ON s.id = w.subscription_id
    CROSS JOIN LATERAL (
        SELECT n.created_at FROM notifications n
        WHERE n.subscription_id = s.id AND n.status = 'PENDING' ORDER BY n.id LIMIT 1) AS head
    WHERE s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL)
SELECT p.subscriptions AS "subscriptions!: Count", p.worst,
       extract(epoch FROM now() - p.since)::float8 AS "pending_for: Age",
       least((SELECT min(head.next_attempt_at) FROM failing f
              JOIN subscriptions s ON s.id = f.subscription_id
              CROSS JOIN LATERAL (
                  SELECT n.next_attempt_at FROM notifications n
                  WHERE n.subscription_id = s.id AND n.status = 'RETRY'
                  ORDER BY n.next_attempt_at, n.id LIMIT 1) AS head
              WHERE s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL),
             -- What is in line is not due; when to look at a line may be.
             (SELECT release_at FROM subscription_budgets WHERE release_at IS NOT NULL
              ORDER BY release_at LIMIT 1)) AS due_at
FROM pending p
