-- Reads all that waits, while no service runs. What waits for a sending window that begins after $1 was not sent before: it is the one time that
-- nothing hastens.
SELECT 'push' AS "lane!: Name<_>", 'pending' AS "class!", count(*) AS "count!: Count"
FROM push_notifications WHERE status = 'PENDING' HAVING count(*) > 0
UNION ALL
SELECT 'push', 'queued', count(*)
FROM push_notifications WHERE status = 'IN_MEMORY' AND lease_token IS NULL HAVING count(*) > 0
UNION ALL
SELECT 'push', 'retry', count(*)
FROM push_notifications WHERE status = 'RETRY' HAVING count(*) > 0
UNION ALL
SELECT 'push', 'scheduled', count(*)
FROM push_notifications WHERE status = 'SCHEDULED' AND next_attempt_at < $1 HAVING count(*) > 0
UNION ALL
SELECT 'push', 'sending', count(*)
FROM push_notifications WHERE status = 'IN_MEMORY' AND lease_token IS NOT NULL HAVING count(*) > 0
UNION ALL
SELECT 'reseller', 'pending', count(*)
FROM notifications WHERE status = 'PENDING' HAVING count(*) > 0
UNION ALL
SELECT 'reseller', 'queued', count(*)
FROM notifications WHERE status = 'IN_MEMORY' AND lease_token IS NULL HAVING count(*) > 0
UNION ALL
SELECT 'reseller', 'retry', count(*)
FROM notifications WHERE status = 'RETRY' HAVING count(*) > 0
UNION ALL
SELECT 'reseller', 'scheduled', count(*)
FROM notifications WHERE status = 'SCHEDULED' HAVING count(*) > 0
UNION ALL
SELECT 'reseller', 'sending', count(*)
FROM notifications WHERE status = 'IN_MEMORY' AND lease_token IS NOT NULL HAVING count(*) > 0
