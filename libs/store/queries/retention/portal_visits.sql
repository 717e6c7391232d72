DELETE FROM portal_visits WHERE id IN (
    SELECT id FROM portal_visits WHERE ends_at < $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)
