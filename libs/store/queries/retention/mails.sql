DELETE FROM emails WHERE id IN (
    SELECT id FROM emails WHERE finished_at < $1 ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)
