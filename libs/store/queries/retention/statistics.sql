-- Hops from one subscription to the next over the primary key: an index by hour would cost every delivery.
WITH RECURSIVE hop (id) AS (
    (SELECT subscription_id FROM delivery_statistics ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.subscription_id FROM delivery_statistics s WHERE s.subscription_id > h.id
            ORDER BY s.subscription_id LIMIT 1)
    FROM hop h WHERE h.id IS NOT NULL),
old AS (
    SELECT o.subscription_id, o.hour FROM hop h
    CROSS JOIN LATERAL (
        SELECT s.subscription_id, s.hour FROM delivery_statistics s
        WHERE s.subscription_id = h.id AND s.hour < $1 ORDER BY s.hour LIMIT $2) o
    LIMIT $2)
DELETE FROM delivery_statistics s USING old o
WHERE s.subscription_id = o.subscription_id AND s.hour = o.hour
