DELETE FROM event_keys
WHERE (scope, key) IN (
    SELECT scope, key FROM event_keys WHERE created_at < $1
    ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
