WITH silent AS (
    DELETE FROM change_listeners WHERE until < $1)
DELETE FROM notification_changes WHERE (reseller_id, xid, id) IN (
    SELECT c.reseller_id, c.xid, c.id FROM notification_changes c
    WHERE NOT EXISTS (SELECT FROM change_listeners l WHERE l.reseller_id = c.reseller_id AND l.until >= $1)
    LIMIT $2 FOR UPDATE SKIP LOCKED)
