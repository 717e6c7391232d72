WITH silent AS (
    SELECT l.reseller_id FROM change_listeners l WHERE l.until < $1 FOR UPDATE SKIP LOCKED),
-- A listener goes after its last changes, which are found by it, and not before a transaction that has seen it is over.
ended AS (
    DELETE FROM change_listeners l USING silent s
    WHERE l.reseller_id = s.reseller_id AND l.until < $1::timestamptz - interval '1 hour'
      AND NOT EXISTS (SELECT FROM notification_changes n WHERE n.reseller_id = l.reseller_id))
DELETE FROM notification_changes n USING (
    SELECT c.reseller_id, c.xid, c.id
    FROM silent s CROSS JOIN LATERAL (
        SELECT o.reseller_id, o.xid, o.id FROM notification_changes o
        WHERE o.reseller_id = s.reseller_id ORDER BY o.xid, o.id LIMIT $2) AS c
    LIMIT $2) AS old
WHERE n.reseller_id = old.reseller_id AND n.xid = old.xid AND n.id = old.id
