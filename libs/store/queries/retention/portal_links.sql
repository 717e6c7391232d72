DELETE FROM portal_links WHERE id IN (
    SELECT id FROM portal_links WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
